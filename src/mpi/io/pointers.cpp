// The file pointers of a rank and of all, in etypes of the view; ordered accesses.

#include <algorithm>

#include "mpi/io/file.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {

// From the first etype that lies behind the end of the file on, for MPI_SEEK_END.
Error File::find_position(MPI_Offset offset, int whence, MPI_Offset current,
                          MPI_Offset& position) const {
    MPI_Offset base = 0;
    switch (whence) {
    case MPI_SEEK_SET:
        break;
    case MPI_SEEK_CUR:
        base = current;
        break;
    case MPI_SEEK_END: {
        std::uint64_t end = 0;
        if (Error error = file_->size(end)) {
            return error;
        }
        const MPI_Count etype = view_->etype_bytes();
        base = etype == 0 ? 0 : (view_->bytes_before(end) + etype - 1) / etype;
        break;
    }
    default:
        return fail(MPI_ERR_ARG,
                    "whence = %d is none of MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END", whence);
    }
    MPI_Offset found = 0;
    if (__builtin_add_overflow(base, offset, &found) || found < 0) {
        return fail(MPI_ERR_ARG, "offset = %lld leads before the beginning of the view",
                    static_cast<long long>(offset));
    }
    position = found;
    return {};
}

Error File::seek(MPI_Offset offset, int whence) {
    if (Error error = check_not_sequential("seeking")) {
        return error;
    }
    return find_position(offset, whence, individual_pointer_, individual_pointer_);
}

Error File::position(MPI_Offset& offset) const {
    if (Error error = check_not_sequential("individual pointer")) {
        return error;
    }
    offset = individual_pointer_;
    return {};
}

Error File::seek_shared(MPI_Offset offset, int whence) {
    Error own = check_not_sequential("seeking");
    // Nobody moves the pointer before all have come.
    if (Error error = agree_on(WholeCall::seek_shared, offset, "offset", own)) {
        return error;
    }
    if (Error error = agree_on(WholeCall::seek_shared, whence, "whence", {})) {
        return error;
    }
    Error result;
    if (communicator_.rank() == 0) {
        MPI_Offset position = 0;
        result = shared_pointer_.get(position);
        result = result ? result : find_position(offset, whence, position, position);
        if (!result) {
            shared_pointer_.set(position);
        }
    }
    return share_result(result);
}

Error File::position_shared(MPI_Offset& offset) {
    if (Error error = check_not_sequential("position")) {
        return error;
    }
    return shared_pointer_.get(offset);
}

Error File::byte_offset(MPI_Offset offset, MPI_Offset& bytes) const {
    if (Error error = check_position(offset, 0)) {
        return error;
    }
    bytes = static_cast<MPI_Offset>(view_->empty() ? view_->displacement()
                                                   : view_->place(offset * view_->etype_bytes()));
    return {};
}

// Moves the shared pointer; `begin`: where it was.
Error File::advance_shared(MPI_Count etypes, MPI_Offset& begin) {
    if (std::atomic<std::int64_t>* pointer = shared_pointer_.word()) {
        std::int64_t found = pointer->load(std::memory_order_relaxed);
        do {
            if (Error error = check_position(found, etypes)) {
                return error;
            }
        } while (!pointer->compare_exchange_weak(found, found + etypes, std::memory_order_relaxed));
        begin = found;
        return {};
    }
    if (Error error = shared_pointer_.add(etypes, begin)) {
        return error;
    }
    Error error = check_position(begin, etypes);
    if (error) {
        std::int64_t before = 0;
        shared_pointer_.add(-etypes, before).drop(); // as if nothing had been tried
    }
    return error;
}

// Where an ordered access begins: behind the data of the ranks before. All ranks call this, also
// those that have an error of their own.
Error File::order(Error own, Part part, MPI_Count etypes, MPI_Offset& begin) {
    int turn = 0;
    AccessPlan& told = next_plan(turn);
    told.bytes = static_cast<std::uint64_t>(etypes);
    told.refused = own ? own.error_class() : MPI_SUCCESS;
    told.part = own ? Part::unknown : part;
    Error waited = tell_all(&told, sizeof told);
    if (Error error = waited ? Error() : check_parts(turn)) {
        if (own) {
            error.drop();
            return own;
        }
        return error;
    }
    MPI_Count before = 0;
    MPI_Count sum = 0;
    int failed = MPI_SUCCESS;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        const AccessPlan& plan = control_.rank(rank).plans[turn];
        failed = failed != MPI_SUCCESS ? failed : plan.refused;
        before = rank == communicator_.rank() ? sum : before;
        // (Too many are too many for the largest file, too.)
        sum = std::min(sum + static_cast<MPI_Count>(plan.bytes), largest_offset + 1);
    }
    FileControl& file = control_.file();
    if (communicator_.rank() == 0 && failed == MPI_SUCCESS && !waited) {
        Error error = advance_shared(sum, file.ordered_begin);
        file.ordered_begin = error ? -1 - std::int64_t{error.error_class()} : file.ordered_begin;
        error.drop();
    }
    waited = waited ? waited : hear_first(&file.ordered_begin, sizeof file.ordered_begin);
    if (own) {
        waited.drop();
        return own;
    }
    if (waited || failed != MPI_SUCCESS) {
        return waited ? waited : fail(failed, "another rank can't take part in the access");
    }
    if (file.ordered_begin < 0) {
        return fail(static_cast<int>(-1 - file.ordered_begin),
                    "the data of all ranks leads beyond the largest file");
    }
    begin = file.ordered_begin + before;
    return {};
}

// Accesses at the shared pointer; a rank's data follows that of the ranks before it.
Error File::ordered(Access& access, MPI_Count& bytes) {
    bytes = 0;
    access.pointer = Pointer::shared;
    FileData prepared;
    Error own = split_.kind != Split::none ? fail(MPI_ERR_IO, "a split collective access is active")
                                           : check(access);
    own = own ? own : prepare(access, prepared);
    MPI_Offset begin = 0;
    const Part part =
        access.direction == Direction::read ? Part::reads_ordered : Part::writes_ordered;
    if (Error error = order(own, part, access.etypes, begin)) {
        return error;
    }
    access.first = begin * view_->etype_bytes();
    return carry_out(access, prepared, false, bytes);
}

} // namespace warren::io
