#include "datatype/copy_blocks.hpp"

#include <cstdint>

namespace warren::datatype {

namespace {

// Calls a generic function with the block size as a constant where it is a usual one, else with 0.
template <typename Function>
void with_constant_size(MPI_Count bytes, Function function) {
    switch (bytes) {
    case 1:
        return function.template operator()<1>();
    case 2:
        return function.template operator()<2>();
    case 4:
        return function.template operator()<4>();
    case 8:
        return function.template operator()<8>();
    case 12:
        return function.template operator()<12>();
    case 16:
        return function.template operator()<16>();
    case 24:
        return function.template operator()<24>();
    case 32:
        return function.template operator()<32>();
    case 48:
        return function.template operator()<48>();
    case 64:
        return function.template operator()<64>();
    default:
        return function.template operator()<0>();
    }
}

bool is_far(MPI_Count stride) {
    constexpr MPI_Count far = 512; // fewer than eight blocks on a page
    return stride >= far || stride <= -far;
}

// base + place as an integer: base may be MPI_BOTTOM, and the place an absolute address.
template <typename Byte>
Byte* at(Byte* base, MPI_Count place) {
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(base) + place);
}

} // namespace

void copy_blocks(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
                 MPI_Count count, MPI_Count bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (count == 1 || (to_stride == bytes && from_stride == bytes)) {
        std::memcpy(to, from, size * static_cast<std::size_t>(count));
        return;
    }
    with_constant_size(bytes, [=]<std::size_t fixed>() {
        if constexpr (fixed == 0) {
            for (MPI_Count i = 0; i < count; ++i) {
                std::memcpy(at(to, i * to_stride), at(from, i * from_stride), size);
            }
        } else if (count >= 8 && (is_far(to_stride) || is_far(from_stride))) {
            copy_fixed<fixed, true>(to, to_stride, from, from_stride, count);
        } else {
            copy_fixed<fixed, false>(to, to_stride, from, from_stride, count);
        }
    });
}

void gather_blocks(std::byte* to, const std::byte* base, const MPI_Count* places, MPI_Count count,
                   MPI_Count bytes) {
    with_constant_size(bytes, [=]<std::size_t fixed>() {
        const std::size_t size = fixed != 0 ? fixed : static_cast<std::size_t>(bytes);
        for (MPI_Count i = 0; i < count; ++i) {
            std::memcpy(to + size * static_cast<std::size_t>(i), at(base, places[i]), size);
        }
    });
}

void scatter_blocks(std::byte* base, const MPI_Count* places, const std::byte* from,
                    MPI_Count count, MPI_Count bytes) {
    with_constant_size(bytes, [=]<std::size_t fixed>() {
        const std::size_t size = fixed != 0 ? fixed : static_cast<std::size_t>(bytes);
        for (MPI_Count i = 0; i < count; ++i) {
            std::memcpy(at(base, places[i]), from + size * static_cast<std::size_t>(i), size);
        }
    });
}

} // namespace warren::datatype
