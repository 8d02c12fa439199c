// Walk: goes over a part of a buffer's data in the order of its type map, and hands the memory that
// it meets to an action: a block, evenly spaced blocks, or blocks at a list of places. Packing,
// unpacking and listing are such actions.
//
// An action has
//   block(memory, at, bytes)
//   blocks(memory, stride, at, at_stride, count, bytes)
//   scattered(base, places, at, count, bytes)
// where `at` says which byte of the part comes first, and at_stride the distance to the next
// block's in the data; in_order: blocks have to come in the order of data (else an array of
// structures may be walked field by field); and enough(): stop. Thread rule: a value of one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/layout.hpp"
#include "mpi/datatype/tuning.hpp"

namespace warren::datatype {

// Memory is addressed by integers: a base may be MPI_BOTTOM, with absolute addresses as offsets.
using Address = std::uintptr_t;

template <typename Action>
class Walk {
  public:
    explicit Walk(Action& action) : action_(action) {}

    // Bytes [first, first + bytes) of the data of `count` elements at base.
    void part(const Datatype& type, const void* base, MPI_Count count, MPI_Count first,
              MPI_Count bytes) {
        const auto memory = reinterpret_cast<Address>(base);
        if (bytes <= 0) {
            return;
        }
        if (type.contiguous) {
            action_.block(memory + static_cast<Address>(first), 0, bytes);
        } else if (type.layout != nullptr) [[likely]] {
            elements(*type.layout, type, memory, count, first, bytes);
        } else if (const auto pair = body_of(type)) {
            elements(*pair, type, memory, count, first, bytes);
        } else {
            // One block that does not fill its extent (MPI_DOUBLE_INT).
            part_of_step({.offset = 0,
                          .stride = type.extent,
                          .count = count,
                          .bytes = type.size,
                          .start = 0,
                          .inner = nullptr},
                         memory, 0, first, bytes);
        }
    }

  private:
    void elements(const Body& body, const Datatype& type, Address memory, MPI_Count count,
                  MPI_Count first, MPI_Count bytes) {
        if (count == 1) {
            if (bytes == type.size) {
                whole_body(body, memory, 0);
            } else {
                part_of_body(body, memory, 0, first, bytes);
            }
            return;
        }
        // The whole buffer as one step: count elements at the type's extent.
        Step all{.offset = 0,
                 .stride = type.extent,
                 .count = count,
                 .bytes = type.size,
                 .start = 0,
                 .inner = &body};
        if (body.is_block()) {
            memory += static_cast<Address>(body.steps[0].offset);
            all.inner = nullptr;
        }
        part_of_step(all, memory, 0, first, bytes);
    }

    void whole_body(const Body& body, Address memory, MPI_Count at) {
        for (const Step& step : body.steps) {
            if (step.places != nullptr) {
                action_.scattered(memory, step.places, at + step.start, step.count, step.bytes);
            } else {
                repeats(step, memory + static_cast<Address>(step.offset), at + step.start,
                        step.count);
            }
            if (action_.enough()) {
                return;
            }
        }
    }

    // `count` repeats of a step that has no places, the first at memory.
    void repeats(const Step& step, Address memory, MPI_Count at, MPI_Count count) {
        if (step.inner == nullptr) {
            action_.blocks(memory, step.stride, at, step.bytes, count, step.bytes);
            return;
        }
        if constexpr (!Action::in_order) {
            if (count >= 4 && all_single_blocks(*step.inner)) {
                fields(step, memory, at, count);
                return;
            }
        }
        for (MPI_Count i = 0; i < count && !action_.enough(); ++i) {
            whole_body(*step.inner, memory, at);
            memory += static_cast<Address>(step.stride);
            at += step.bytes;
        }
    }

    // Repeats of a body of a few blocks (an array of structures): field by field, so that the inner
    // loop is one of blocks of a constant size, in portions that stay in the first-level cache.
    void fields(const Step& step, Address memory, MPI_Count at, MPI_Count count) {
        const MPI_Count portion = std::max<MPI_Count>(portion_bytes / step.bytes, 1);
        for (MPI_Count done = 0; done < count; done += portion) {
            const MPI_Count now = std::min(portion, count - done);
            for (const Step& field : step.inner->steps) {
                action_.blocks(memory + static_cast<Address>(field.offset), step.stride,
                               at + field.start, step.bytes, now, field.bytes);
            }
            memory += static_cast<Address>(step.stride * now);
            at += step.bytes * now;
        }
    }

    static bool all_single_blocks(const Body& body) {
        return body.steps.size() <= field_limit &&
               std::all_of(body.steps.begin(), body.steps.end(),
                           [](const Step& step) { return step.is_block(); });
    }

    // Bytes [skip, skip + bytes) of a body's data.
    void part_of_body(const Body& body, Address memory, MPI_Count at, MPI_Count skip,
                      MPI_Count bytes) {
        auto step =
            std::upper_bound(body.steps.begin(), body.steps.end(), skip,
                             [](MPI_Count place, const Step& s) { return place < s.start; }) -
            1;
        while (bytes > 0 && !action_.enough()) {
            const MPI_Count into = skip - step->start;
            const MPI_Count now = std::min(bytes, step->count * step->bytes - into);
            part_of_step(*step, memory + static_cast<Address>(step->offset), at, into, now);
            skip += now;
            at += now;
            bytes -= now;
            ++step;
        }
    }

    void part_of_step(const Step& step, Address memory, MPI_Count at, MPI_Count skip,
                      MPI_Count bytes) {
        MPI_Count repeat = skip / step.bytes;
        skip %= step.bytes;
        if (skip != 0) {
            const MPI_Count head = std::min(bytes, step.bytes - skip);
            part_of_repeat(step, repeat, memory, at, skip, head);
            ++repeat;
            at += head;
            bytes -= head;
        }
        const MPI_Count whole = bytes / step.bytes;
        if (whole != 0 && !action_.enough()) {
            if (step.places != nullptr) {
                action_.scattered(memory, step.places + repeat, at, whole, step.bytes);
            } else {
                repeats(step, memory + static_cast<Address>(step.stride * repeat), at, whole);
            }
        }
        const MPI_Count tail = bytes % step.bytes;
        if (tail != 0 && !action_.enough()) {
            part_of_repeat(step, repeat + whole, memory, at + step.bytes * whole, 0, tail);
        }
    }

    void part_of_repeat(const Step& step, MPI_Count repeat, Address memory, MPI_Count at,
                        MPI_Count skip, MPI_Count bytes) {
        memory += static_cast<Address>(step.places != nullptr ? step.places[repeat]
                                                              : step.stride * repeat);
        if (step.inner == nullptr) {
            action_.block(memory + static_cast<Address>(skip), at, bytes);
        } else {
            part_of_body(*step.inner, memory, at, skip, bytes);
        }
    }

    Action& action_;
};

} // namespace warren::datatype
