#include "mpi/rma/peer_memory.hpp"

#include <cerrno>
#include <cstring>
#include <sys/uio.h>

namespace warren::rma {

namespace {

// Pieces per system call; the kernel takes 1,024.
constexpr std::size_t pieces_per_call = 256;

} // namespace

Error PeerMemory::copy(void* own, MPI_Count first, MPI_Count bytes, bool writes) {
    iovec pieces[pieces_per_call];
    auto* mine = static_cast<std::byte*>(own);
    while (bytes > 0) {
        MPI_Count covered = 0;
        const std::size_t count = layout_.type->pieces(layout_.base, layout_.count, first, bytes,
                                                       pieces, pieces_per_call, covered);
        const iovec local = {.iov_base = mine, .iov_len = static_cast<std::size_t>(covered)};
        const ssize_t copied = writes ? process_vm_writev(pid_, &local, 1, pieces, count, 0)
                                      : process_vm_readv(pid_, &local, 1, pieces, count, 0);
        if (copied <= 0) {
            return failed(copied < 0 ? errno : EFAULT);
        }
        // Fewer than asked for: the kernel says why when it is asked for the rest.
        mine += copied;
        first += copied;
        bytes -= copied;
    }
    return {};
}

Error PeerMemory::failed(int reason) {
    switch (reason) {
    case EPERM:
    case EACCES:
    case ENOSYS:
        refusal_ = reason;
        return fail(MPI_ERR_UNSUPPORTED_OPERATION, "copying memory of rank %u: %s", peer_,
                    std::strerror(reason));
    case EFAULT:
        return fail(MPI_ERR_RMA_RANGE,
                    "the process of rank %u has no memory at the target's place, or may not use it "
                    "so",
                    peer_);
    case ESRCH:
        return fail(MPI_ERR_PROC_ABORTED, "the process of rank %u has ended", peer_);
    default:
        return fail(MPI_ERR_OTHER, "copying memory of rank %u: %s", peer_, std::strerror(reason));
    }
}

} // namespace warren::rma
