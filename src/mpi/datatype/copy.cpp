// Datatype::pack_part and unpack_part: packed data from and to a layout.
#include <cstring>

#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/datatype/tuning.hpp"
#include "mpi/datatype/walk.hpp"

namespace warren::datatype {

namespace {

struct Pack {
    static constexpr bool in_order = false;
    static constexpr bool enough() { return false; }

    void block(Address memory, MPI_Count at, MPI_Count bytes) const {
        std::memcpy(packed + at, reinterpret_cast<const std::byte*>(memory),
                    static_cast<std::size_t>(bytes));
    }
    void blocks(Address memory, MPI_Count stride, MPI_Count at, MPI_Count at_stride,
                MPI_Count count, MPI_Count bytes) const {
        copy_blocks(packed + at, at_stride, reinterpret_cast<const std::byte*>(memory), stride,
                    count, bytes);
    }
    void scattered(Address base, const MPI_Count* places, MPI_Count at, MPI_Count count,
                   MPI_Count bytes) const {
        gather_blocks(packed + at, reinterpret_cast<const std::byte*>(base), places, count, bytes);
    }

    std::byte* packed;
};

struct Unpack {
    static constexpr bool in_order = false;
    static constexpr bool enough() { return false; }

    void block(Address memory, MPI_Count at, MPI_Count bytes) const {
        std::memcpy(reinterpret_cast<std::byte*>(memory), packed + at,
                    static_cast<std::size_t>(bytes));
    }
    void blocks(Address memory, MPI_Count stride, MPI_Count at, MPI_Count at_stride,
                MPI_Count count, MPI_Count bytes) const {
        copy_blocks(reinterpret_cast<std::byte*>(memory), stride, packed + at, at_stride, count,
                    bytes, target);
    }
    void scattered(Address base, const MPI_Count* places, MPI_Count at, MPI_Count count,
                   MPI_Count bytes) const {
        scatter_blocks(reinterpret_cast<std::byte*>(base), places, packed + at, count, bytes);
    }

    const std::byte* packed;
    Target target;
};

// Whether `count` elements touch more memory than the caches keep until its use, in whole lines.
// Only then stores bypass the caches.
bool exceeds_caches(const Datatype& type, MPI_Count count) {
    return type.layout != nullptr && type.size >= type.layout->blocks * least_streamed_block &&
           count * type.size >= cache_bytes;
}

} // namespace

void Datatype::pack_part(const void* base, MPI_Count count, MPI_Count first, MPI_Count bytes,
                         void* packed) const {
    Pack action{static_cast<std::byte*>(packed)};
    Walk<Pack>(action).part(*this, base, count, first, bytes);
}

void Datatype::unpack_part(const void* packed, MPI_Count first, MPI_Count bytes, void* base,
                           MPI_Count count) const {
    const Target target = exceeds_caches(*this, count) ? Target::memory : Target::cache;
    Unpack action{static_cast<const std::byte*>(packed), target};
    Walk<Unpack>(action).part(*this, base, count, first, bytes);
    if (target == Target::memory) [[unlikely]] {
        stream_fence();
    }
}

void* Datatype::one_piece(const void* base, MPI_Count count) const {
    const auto memory = reinterpret_cast<Address>(base);
    if (contiguous) {
        return reinterpret_cast<void*>(memory);
    }
    // One block spans its true extent; two overlapping ones may too, so the layout has to agree.
    const bool block = layout == nullptr ? size == true_extent : layout->is_block();
    if (!block || (count > 1 && extent != size)) {
        return nullptr;
    }
    return reinterpret_cast<void*>(memory + static_cast<Address>(true_lower_bound));
}

} // namespace warren::datatype
