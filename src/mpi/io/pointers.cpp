// The file pointers of a rank and of all, in etypes of the view.

#include "mpi/io/file.hpp"

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
    std::atomic<std::int64_t>& pointer = control_.file().shared_pointer;
    // Nobody moves the pointer before all have come.
    if (Error error = agree_on(offset, "offset", own)) {
        return error;
    }
    Error result;
    if (communicator_.rank() == 0) {
        MPI_Offset position = 0;
        result = find_position(offset, whence, pointer.load(std::memory_order_relaxed), position);
        if (!result) {
            pointer.store(position, std::memory_order_relaxed);
        }
    }
    return share_result(result);
}

Error File::position_shared(MPI_Offset& offset) const {
    if (Error error = check_not_sequential("position")) {
        return error;
    }
    offset = control_.file().shared_pointer.load(std::memory_order_relaxed);
    return {};
}

Error File::byte_offset(MPI_Offset offset, MPI_Offset& bytes) const {
    MPI_Offset byte = 0;
    if (offset < 0 || __builtin_mul_overflow(offset, view_->etype_bytes(), &byte)) {
        return fail(MPI_ERR_ARG, "offset = %lld is no offset in the view",
                    static_cast<long long>(offset));
    }
    bytes = static_cast<MPI_Offset>(view_->empty() ? view_->displacement() : view_->place(byte));
    return {};
}

} // namespace warren::io
