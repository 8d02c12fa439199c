// Code that keeps registers and flags without drreg, and marks for DynamoRIO where such code has
// the program's state: not between a label `unsafe` and the next one `safe`. DynamoRIO asks for a
// thread's state at any place, and is to try again there. Nothing there can fault. Thread rule:
// start once per process; the rest is called by DynamoRIO.
#pragma once

#include <cstddef>

#include "dr_api.h"

namespace warren::locality::counts {

enum Note : std::size_t { unsafe, safe, notes }; // what follows such a label

bool start_safe_places();
instr_t* label_of(void* context, Note note);

// Moves the flags to RAX before `where`; program_rax_slot keeps RAX until they are restored.
// insert_subtraction, which uses that slot too, must not stand between.
void insert_flags_kept(void* context, instrlist_t* block, instr_t* where);
void insert_flags_restored(void* context, instrlist_t* block, instr_t* where);
// Subtracts from the budget without changing flags.
void insert_subtraction(void* context, instrlist_t* block, instr_t* where, unsigned count);

} // namespace warren::locality::counts
