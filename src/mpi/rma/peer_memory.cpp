#include "mpi/rma/peer_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/uio.h>

#include "mpi/rma/tuning.hpp"

namespace warren::rma {

bool PeerMemory::read_span(std::byte* to, const iovec* pieces, std::size_t count) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(pieces[0].iov_base);
    std::uintptr_t end = begin;
    for (std::size_t i = 0; i < count; ++i) {
        const auto place = reinterpret_cast<std::uintptr_t>(pieces[i].iov_base);
        if (place < end) {
            return false; // not in rising order
        }
        end = place + pieces[i].iov_len;
    }
    const std::size_t bytes = end - begin;
    if (bytes > std::min(count * bytes_per_piece, largest_span)) {
        return false;
    }
    const std::unique_ptr<std::byte[]> span(new std::byte[bytes]);
    const iovec local = {.iov_base = span.get(), .iov_len = bytes};
    const iovec remote = {.iov_base = pieces[0].iov_base, .iov_len = bytes};
    if (process_vm_readv(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes)) {
        return false; // a gap may have no memory
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(to, span.get() + (reinterpret_cast<std::uintptr_t>(pieces[i].iov_base) - begin),
                    pieces[i].iov_len);
        to += pieces[i].iov_len;
    }
    return true;
}

Error PeerMemory::copy(void* own, MPI_Count first, MPI_Count bytes, bool writes) {
    iovec pieces[pieces_per_call];
    auto* mine = static_cast<std::byte*>(own);
    while (bytes > 0) {
        MPI_Count covered = 0;
        const std::size_t count = layout_.type->pieces(layout_.base, layout_.count, first, bytes,
                                                       pieces, pieces_per_call, covered);
        if (!writes && count > 2 && read_span(mine, pieces, count)) {
            mine += covered;
            first += covered;
            bytes -= covered;
            continue;
        }
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
