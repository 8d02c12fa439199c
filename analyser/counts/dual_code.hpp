// Dual code of mode sample: a block of the program's code becomes a counting and a plain copy, and
// each execution chooses one. So no code is discarded and no thread is stopped when a burst begins
// or ends.
//
//     begin:    subtract the block's instructions from the thread's budget; if that is not
//               negative, go to plain
//               the copy that counts
//     leave:    go to exit
//     plain:    the program's instructions
//     exit:     the last of them, if that is a branch or a system call
//
// A block that repeats itself chooses once for several turns, which follow each other at `plain`: a
// choice per turn would take as long as a turn of a short loop. The turns after the first are
// subtracted when they end. So a burst may begin some turns late; it ends in time.
//
// Invariant: at `plain`, `exit` and behind `begin` all registers and flags have the program's
// values. Thread rule: called by DynamoRIO.
#pragma once

#include "dr_api.h"

namespace warren::locality::counts {

struct DualCode {
    instr_t* begin = nullptr; // a label; null: there is one copy only
    instr_t* first = nullptr; // of the copy that counts
    instr_t* leave = nullptr; // the branch
    instr_t* plain = nullptr; // a label
    instr_t* last = nullptr;  // of both copies; null: they share none
    bool flags_live = false;  // at the beginning, known from insert_choice() on
};

// Makes dual code of a block that begins at `begin` and has so many instructions. Call in the first
// pass, before other passes insert branches.
DualCode make_dual_code(void* context, instrlist_t* block, app_pc begin, unsigned instructions);

// Call in the insertion pass, when it is at `begin` and at `plain`.
void insert_choice(void* context, instrlist_t* block, DualCode& dual, unsigned instructions);
void insert_plain(void* context, instrlist_t* block, const DualCode& dual);

} // namespace warren::locality::counts
