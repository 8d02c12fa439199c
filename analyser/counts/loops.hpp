// Blocks that repeat themselves, whose turns are counted together (turns.hpp):
//
//     begin:    store where each site is; to turns_begin, which sets how many turns are left
//     turn:     the program's instructions but the last
//               unless that branches back, go to out
//               one less is left; if there are any, go to turn
//               go to exit, with flags that make the branch there go back to begin
//     out:      to turns_end
//     exit:     the last instruction, a conditional branch to the block's beginning
//
// The branch from `exit` to `begin` leaves the block's code, so that signals arrive and others can
// stop the thread. When DynamoRIO makes a trace of a block that runs often, the number of
// successive turns is known: if it is small, each turn is counted alone, which costs less.
//
// Invariant: at the program's instructions all registers and flags have the program's values.
// Thread rule: called by DynamoRIO.
#pragma once

#include <cstdint>

#include "analyser/counts/counters.hpp"
#include "dr_api.h"

namespace warren::locality::counts {

// The thread's storage that the inserted code uses.
struct LoopStorage {
    opnd_t left;      // Turns::left is there
    opnd_t addresses; // the address of Turns::next is there
    opnd_t site;      // what the stub is told …
    opnd_t back;      // … and where it goes from there
    opnd_t kept[2];   // registers
    opnd_t flags;
    app_pc stub;
};

// Turns the block, which begins at `begin`, into such a loop. False: the block is unchanged.
bool insert_loop(void* context, instrlist_t* block, app_pc begin, bool for_trace,
                 const Layout& layout, std::int64_t widest, const LoopStorage& storage);

} // namespace warren::locality::counts
