// The calling thread's words for inline code, in DynamoRIO's thread-local storage, which an
// instruction reaches by a segment. Thread rule: start_storage() once per process, before threads
// run; the words are the thread's own.
#pragma once

#include "dr_api.h"

namespace warren::locality::counts {

enum Slot : unsigned {
    words_slot,
    instructions_slot,
    address_slot, // what the stub is told; so is the next …
    site_slot,
    return_slot, // … and where it goes from there
    program_stack_slot,
    own_stack_slot,
    thread_slot,
    budget_slot,      // mode sample
    program_rax_slot, // the same
    row_slot,         // the same: the turns that a search has before it
    turns_left_slot,  // mode counts; so is the next
    turns_slot,
    kept_slot, // of both modes, as the next: registers that inline code uses for a while
    kept_too_slot,
    flags_slot, // mode counts: the flags, within loops
    slots
};

bool start_storage();

// A slot as an instruction's operand.
opnd_t slot(Slot which);
// The upper half of the budget, which tells whether the thread is in a burst.
opnd_t half_of_budget();
// All slots of the calling thread.
void** own_slots();

} // namespace warren::locality::counts
