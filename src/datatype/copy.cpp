// Datatype::pack_part and unpack_part: packed data from and to a layout.
#include <algorithm>
#include <cstring>

#include "datatype/copy_blocks.hpp"
#include "datatype/datatype.hpp"
#include "datatype/layout.hpp"

namespace warren::datatype {

namespace {

// Memory is addressed by integers: a base may be MPI_BOTTOM, with absolute addresses as offsets.
using Address = std::uintptr_t;

enum class Direction { pack, unpack };

template <Direction direction>
struct Copier {
    static void blocks(Address memory, MPI_Count stride, std::byte* packed, MPI_Count packed_stride,
                       MPI_Count count, MPI_Count bytes) {
        auto* there = reinterpret_cast<std::byte*>(memory);
        if constexpr (direction == Direction::pack) {
            copy_blocks(packed, packed_stride, there, stride, count, bytes);
        } else {
            copy_blocks(there, stride, packed, packed_stride, count, bytes);
        }
    }

    static void block(Address memory, std::byte* packed, MPI_Count bytes) {
        auto* there = reinterpret_cast<std::byte*>(memory);
        if constexpr (direction == Direction::pack) {
            std::memcpy(packed, there, static_cast<std::size_t>(bytes));
        } else {
            std::memcpy(there, packed, static_cast<std::size_t>(bytes));
        }
    }

    static void whole_body(const Body& body, Address memory, std::byte* packed) {
        for (const Step& step : body.steps) {
            if (step.places != nullptr) {
                scattered(step, memory, packed + step.start, 0, step.count);
            } else {
                repeats(step, memory + step.offset, packed + step.start, step.count);
            }
        }
    }

    // Irregular blocks from number `first` on; memory is the base of their body.
    static void scattered(const Step& step, Address memory, std::byte* packed, MPI_Count first,
                          MPI_Count count) {
        auto* base = reinterpret_cast<std::byte*>(memory);
        if constexpr (direction == Direction::pack) {
            gather_blocks(packed, base, step.places + first, count, step.bytes);
        } else {
            scatter_blocks(base, step.places + first, packed, count, step.bytes);
        }
    }

    // `count` repeats of a step that has no places, the first at memory.
    static void repeats(const Step& step, Address memory, std::byte* packed, MPI_Count count) {
        if (step.inner == nullptr) {
            blocks(memory, step.stride, packed, step.bytes, count, step.bytes);
        } else if (count >= 4 && all_single_blocks(*step.inner)) {
            fields(step, memory, packed, count);
        } else {
            for (MPI_Count i = 0; i < count; ++i) {
                whole_body(*step.inner, memory, packed);
                memory += step.stride;
                packed += step.bytes;
            }
        }
    }

    // Repeats of a body of a few blocks (an array of structures): field by field, so that the inner
    // loop is one of blocks of a constant size, in portions that stay in the first-level cache.
    static void fields(const Step& step, Address memory, std::byte* packed, MPI_Count count) {
        constexpr MPI_Count portion_bytes = 8192;
        const MPI_Count portion = std::max<MPI_Count>(portion_bytes / step.bytes, 1);
        for (MPI_Count done = 0; done < count; done += portion) {
            const MPI_Count now = std::min(portion, count - done);
            for (const Step& field : step.inner->steps) {
                blocks(memory + field.offset, step.stride, packed + field.start, step.bytes, now,
                       field.bytes);
            }
            memory += step.stride * now;
            packed += step.bytes * now;
        }
    }

    static bool all_single_blocks(const Body& body) {
        constexpr std::size_t field_limit = 32;
        return body.steps.size() <= field_limit &&
               std::all_of(body.steps.begin(), body.steps.end(),
                           [](const Step& step) { return step.is_block(); });
    }

    // Bytes [skip, skip + bytes) of a body's data.
    static void part_of_body(const Body& body, Address memory, std::byte* packed, MPI_Count skip,
                             MPI_Count bytes) {
        auto step = std::upper_bound(body.steps.begin(), body.steps.end(), skip,
                                     [](MPI_Count at, const Step& s) { return at < s.start; }) -
                    1;
        while (bytes > 0) {
            const MPI_Count into = skip - step->start;
            const MPI_Count now = std::min(bytes, step->count * step->bytes - into);
            part_of_step(*step, memory + step->offset, packed, into, now);
            skip += now;
            packed += now;
            bytes -= now;
            ++step;
        }
    }

    static void part_of_step(const Step& step, Address memory, std::byte* packed, MPI_Count skip,
                             MPI_Count bytes) {
        MPI_Count repeat = skip / step.bytes;
        skip %= step.bytes;
        if (skip != 0) {
            const MPI_Count head = std::min(bytes, step.bytes - skip);
            part_of_repeat(step, repeat, memory, packed, skip, head);
            ++repeat;
            packed += head;
            bytes -= head;
        }
        const MPI_Count whole = bytes / step.bytes;
        if (whole != 0 && step.places != nullptr) {
            scattered(step, memory, packed, repeat, whole);
        } else if (whole != 0) {
            repeats(step, memory + step.stride * repeat, packed, whole);
        }
        const MPI_Count tail = bytes % step.bytes;
        if (tail != 0) {
            part_of_repeat(step, repeat + whole, memory, packed + step.bytes * whole, 0, tail);
        }
    }

    static void part_of_repeat(const Step& step, MPI_Count repeat, Address memory,
                               std::byte* packed, MPI_Count skip, MPI_Count bytes) {
        memory += step.places != nullptr ? step.places[repeat] : step.stride * repeat;
        if (step.inner == nullptr) {
            block(memory + skip, packed, bytes);
        } else {
            part_of_body(*step.inner, memory, packed, skip, bytes);
        }
    }

    static void part(const Datatype& type, const void* base, MPI_Count count, MPI_Count first,
                     MPI_Count bytes, std::byte* packed) {
        if (bytes <= 0) {
            return;
        }
        auto memory = reinterpret_cast<Address>(base);
        if (type.contiguous) {
            block(memory + first, packed, bytes);
            return;
        }
        // The whole buffer as one step: count elements at the type's extent.
        Step all{.offset = 0,
                 .stride = type.extent,
                 .count = count,
                 .bytes = type.size,
                 .start = 0,
                 .inner = type.layout};
        std::shared_ptr<const Body> pair;
        if (type.layout == nullptr) {
            pair = body_of(type);
            all.inner = pair.get();
        } else if (type.layout->is_block()) {
            memory += type.layout->steps[0].offset;
            all.inner = nullptr;
        }
        part_of_step(all, memory, packed, first, bytes);
    }
};

} // namespace

void Datatype::pack_part(const void* base, MPI_Count count, MPI_Count first, MPI_Count bytes,
                         void* packed) const {
    Copier<Direction::pack>::part(*this, base, count, first, bytes,
                                  static_cast<std::byte*>(packed));
}

void Datatype::unpack_part(const void* packed, MPI_Count first, MPI_Count bytes, void* base,
                           MPI_Count count) const {
    // Only read: blocks() copies from `packed` in this direction.
    auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(packed));
    Copier<Direction::unpack>::part(*this, base, count, first, bytes, from);
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
    return reinterpret_cast<void*>(memory + true_lower_bound);
}

} // namespace warren::datatype
