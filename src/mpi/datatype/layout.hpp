// Layout: a derived type's blocks of memory as a small tree of loops.
//
// A body is a list of steps in the order of the type map; a step repeats a block of memory or
// another body at a constant stride. So a vector of a million blocks is one step, and a vector of
// vectors two. Blocks of one size in irregular places are one step too, with a list of places.
// Bodies are immutable and shared: a type made from another refers to its body.
//
// Every step knows how much of its body's data comes before it, so any byte of the packed data is
// found in O(depth · log steps), and no cursor needs to be kept between parts of a message.
// Thread rule: immutable once built, any thread may copy.
// Invariants: counts ≥ 1 and bytes ≥ 1 in every step; a body has at least one step;
// start increases from step to step, and start of the last + count * bytes = the body's bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi.h"
#include "mpi/datatype/tuning.hpp"

namespace warren::datatype {

struct Datatype;
struct Body;

struct Step {
    MPI_Count offset;  // from the base of the body
    MPI_Count stride;  // from one repeat to the next, any sign
    MPI_Count count;   // repeats
    MPI_Count bytes;   // data of one repeat
    MPI_Count start;   // data of the body before this step
    const Body* inner; // what is repeated; null: a block of memory
    // Irregular blocks: where each lies from the base of the body. Offset and stride are 0 then.
    const MPI_Count* places = nullptr;

    bool is_block() const { return inner == nullptr && count == 1; }
};

struct Body {
    std::vector<Step> steps;
    std::vector<std::shared_ptr<const Body>> inner; // keeps the steps' bodies
    std::vector<MPI_Count> places;                  // of all steps that have some
    MPI_Count blocks = 0;                           // of memory, some of which may touch

    // All of it is one block of memory.
    bool is_block() const { return steps.size() == 1 && steps[0].is_block(); }
};

// The body of a type that is not one block, or null. Of the predefined types only pairs with a gap
// inside (MPI_SHORT_INT) need one, and get it here each time: their constants hold no pointers.
std::shared_ptr<const Body> body_of(const Datatype& type);

// Writes a body in the order of the type map, joining what is adjacent or evenly spaced.
class LayoutBuilder {
  public:
    // `count` elements of a type, the first at offset, each stride after the one before.
    void repeat(const Datatype& type, MPI_Count offset, MPI_Count count, MPI_Count stride);

    // The body so far; null when there is no data in it.
    std::shared_ptr<const Body> finish();

    // More than step_limit steps or place_limit places were needed; the layout is incomplete.
    bool too_large() const { return too_large_; }

  private:
    void block(MPI_Count offset, MPI_Count bytes);
    void strided(MPI_Count offset, MPI_Count bytes, MPI_Count count, MPI_Count stride);
    void push(const Step& step);
    void flush();
    bool extend_last(MPI_Count offset, MPI_Count bytes);
    void settle();
    void list_blocks(Step& list, const Step& step);

    std::unique_ptr<Body> body_ = std::make_unique<Body>();
    // The last block, which the next may extend.
    MPI_Count block_offset_ = 0;
    MPI_Count block_bytes_ = 0; // 0: none
    MPI_Count data_ = 0;        // of the steps in body_
    bool too_large_ = false;
};

} // namespace warren::datatype
