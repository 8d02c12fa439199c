#include "mpi/message/laid_out.hpp"

namespace warren::message {

void LaidOut::write(const void* self, std::uint64_t first, std::uint64_t bytes, std::byte* to) {
    const Buffer& buffer = static_cast<const LaidOut*>(self)->buffer_;
    buffer.type->pack_part(buffer.base, buffer.count, static_cast<MPI_Count>(first),
                           static_cast<MPI_Count>(bytes), to);
}

void LaidOut::take(std::uint64_t first, const std::byte* data, std::uint64_t bytes) const {
    buffer_.type->unpack_part(data, static_cast<MPI_Count>(first), static_cast<MPI_Count>(bytes),
                              buffer_.base, buffer_.count);
}

} // namespace warren::message
