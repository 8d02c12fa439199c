#include "datatype/copy_blocks.hpp"

#include <cstdint>

namespace warren::datatype {

void copy_blocks(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
                 MPI_Count count, MPI_Count bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (to_stride == bytes && from_stride == bytes) {
        std::memcpy(to, from, size * static_cast<std::size_t>(count));
        return;
    }
    switch (bytes) {
    case 1:
        return copy_fixed<1>(to, to_stride, from, from_stride, count);
    case 2:
        return copy_fixed<2>(to, to_stride, from, from_stride, count);
    case 4:
        return copy_fixed<4>(to, to_stride, from, from_stride, count);
    case 8:
        return copy_fixed<8>(to, to_stride, from, from_stride, count);
    case 12:
        return copy_fixed<12>(to, to_stride, from, from_stride, count);
    case 16:
        return copy_fixed<16>(to, to_stride, from, from_stride, count);
    case 24:
        return copy_fixed<24>(to, to_stride, from, from_stride, count);
    case 32:
        return copy_fixed<32>(to, to_stride, from, from_stride, count);
    case 48:
        return copy_fixed<48>(to, to_stride, from, from_stride, count);
    case 64:
        return copy_fixed<64>(to, to_stride, from, from_stride, count);
    default:
        for (; count > 0; --count) {
            std::memcpy(to, from, size);
            to = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(to) + to_stride);
            from = reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(from) +
                                                      from_stride);
        }
    }
}

} // namespace warren::datatype
