// Mode sample: blocks that run seldom, which are all that are in no trace yet. To make their code
// takes longer than to run it, so it is little: there is one copy, which counts the block's
// instructions, and before each site the address is computed and goes by a stub (stub.hpp), which
// comes back at once outside bursts. Registers are kept where they are needed: no register is
// reserved with drreg. Blocks that can never be in a trace (code that modifies itself, moves to fs
// or gs, what is too big) go by the stub for ever.
//
// Invariant: at the program's instructions all registers have the program's values, and so have
// flags that are read before they are written.
// Thread rule: called by DynamoRIO.
#pragma once

#include "analyser/counts/block_accesses.hpp"
#include "dr_api.h"

namespace warren::locality::counts {

// At the beginning of a block whose accesses are left alone: counts its instructions.
void insert_seldom_count(void* context, instrlist_t* block, instr_t* where, unsigned instructions);

// At the block's beginning: counts its instructions, and begins or ends a burst.
void insert_seldom_begin(void* context, instrlist_t* block, instr_t* where, unsigned instructions);

void insert_seldom_site(void* context, instrlist_t* block, instr_t* where, const Group& group);

} // namespace warren::locality::counts
