// Code of mode sample for blocks that run seldom: all that are in no trace yet. Making their code
// takes longer than running it, so it is short. There is one copy, which counts the block's
// instructions. At each site it computes the address and calls a stub (stub.hpp) that returns at
// once outside bursts. Registers are saved where they are needed, without drreg. Blocks that can
// never be in a trace (self-modifying code, moves to fs or gs, blocks that are too big) call the
// stub always.
//
// Invariant: at the program's instructions all registers have the program's values, and so have
// flags that are read before they are written.
// Thread rule: called by DynamoRIO.
#pragma once

#include "analyser/counts/block_accesses.hpp"
#include "dr_api.h"

namespace warren::locality::counts {

// For the beginning of a block whose accesses are not counted: counts its instructions.
void insert_seldom_count(void* context, instrlist_t* block, instr_t* where, unsigned instructions);

// For the beginning of other blocks: counts the instructions, and begins or ends a burst.
void insert_seldom_begin(void* context, instrlist_t* block, instr_t* where, unsigned instructions);

void insert_seldom_site(void* context, instrlist_t* block, instr_t* where, const Group& group);

} // namespace warren::locality::counts
