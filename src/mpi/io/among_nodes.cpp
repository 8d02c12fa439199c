// Files of ranks on several nodes, or of several worlds, which share no memory.
//
// Each rank has a copy of the control block. What a node's ranks would read there after a barrier,
// these tell each other by messages. The file system is shared; who uses it locks bytes by the
// system (access_guard.hpp).

#include <cstring>
#include <new>

#include "base/invariant.hpp"
#include "mpi/coll/agreement.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/io/file.hpp"

namespace warren::io {

bool File::is_shared_elsewhere() const {
    const Rank& rank = engine_.rank();
    return spans_nodes_ || file_->remote() || rank.size != rank.world_size;
}

namespace {

Buffer bytes_at(void* base, std::size_t bytes) {
    return {
        .base = base, .count = static_cast<MPI_Count>(bytes), .type = &datatype::basic(MPI_BYTE)};
}

// A rank tells plans, and numbers.
constexpr std::size_t most_told_bytes = sizeof(AccessPlan);

} // namespace

// The copy, and behind it room for what ranks tell.
Error File::make_own_control() {
    const auto ranks = static_cast<std::size_t>(communicator_.size());
    const std::size_t bytes = ControlBlock::bytes(ranks) + ranks * most_told_bytes;
    own_control_.reset(new (std::nothrow) ControlLine[bytes / sizeof(ControlLine) + 1]());
    if (own_control_ == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for a file of %zu ranks", ranks);
    }
    control_ = ControlBlock(own_control_[0].bytes);
    return {};
}

Error File::tell_all(void* own, std::size_t bytes) {
    if (!spans_nodes_) {
        return barrier();
    }
    WARREN_INVARIANT(bytes <= most_told_bytes, "files: there is room for what a rank tells");
    const auto ranks = static_cast<std::size_t>(communicator_.size());
    std::byte* const told = own_control_[0].bytes + ControlBlock::bytes(ranks);
    if (Error error = coll::Collectives(engine_, communicator_)
                          .allgather(bytes_at(own, bytes), coll::Blocks(bytes_at(told, bytes)))) {
        return error;
    }
    const auto place = static_cast<std::byte*>(own) -
                       reinterpret_cast<std::byte*>(&control_.rank(communicator_.rank()));
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        if (rank != communicator_.rank()) {
            std::memcpy(reinterpret_cast<std::byte*>(&control_.rank(rank)) + place,
                        told + static_cast<std::size_t>(rank) * bytes, bytes);
        }
    }
    return {};
}

Error File::hear_first(void* part, std::size_t bytes) {
    return spans_nodes_ ? coll::Collectives(engine_, communicator_).bcast(bytes_at(part, bytes), 0)
                        : barrier();
}

// Collective, once the file is open at all ranks.
Error File::make_pointer() {
    // (Windows don't reach other worlds.)
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        if (communicator_.endpoint(rank) >= engine_.rank().world_size) {
            return {};
        }
    }
    std::int64_t begin = control_.file().shared_pointer.load(std::memory_order_relaxed);
    if (Error error = shared_pointer_.make(server_, engine_, communicator_)) {
        return error;
    }
    if (communicator_.rank() == 0) {
        shared_pointer_.set(begin);
    }
    return barrier(); // before anybody moves it
}

// Each node has pages of its own.
Error File::synchronise_nodes() {
    Error error = agree(file_->sync());
    if (!error && file_->caches_by_locks()) {
        // It forgets pages that others have changed.
        constexpr std::uint64_t all = ~std::uint64_t{0};
        file_->lock(SystemFile::Lock::shared, 0, all).drop();
        file_->lock(SystemFile::Lock::none, 0, all).drop();
    }
    return error;
}

} // namespace warren::io
