// Code that keeps registers and flags without drreg, and where in such code a thread's state can be
// told: not where they aren't the program's, between a label `unsafe` and the next one `safe`.
// DynamoRIO, which wants it of threads at any place, is to try again there; nothing there can
// fault. Thread rule: start once per process; the rest is called by DynamoRIO.
#pragma once

#include <cstddef>

#include "dr_api.h"

namespace warren::locality::counts {

enum Note : std::size_t { unsafe, safe, notes }; // what follows such a label

bool start_safe_places();
instr_t* label_of(void* context, Note note);

// Before `where`: the flags go to RAX, whose value is kept in program_rax_slot, until they are
// restored: insert_subtraction, which uses the slot too, must not stand between.
void insert_flags_kept(void* context, instrlist_t* block, instr_t* where);
void insert_flags_restored(void* context, instrlist_t* block, instr_t* where);
// From the budget, with no flag changed.
void insert_subtraction(void* context, instrlist_t* block, instr_t* where, unsigned count);

} // namespace warren::locality::counts
