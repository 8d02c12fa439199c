// Rows, instructions that repeat themselves, are counted by multiplication in a call: rep movs,
// stos and lods before they run; in mode sample also rep cmps and scas, which may end early, behind
// them. Thread rule: called by DynamoRIO.
#pragma once

#include "dr_api.h"

namespace warren::locality::counts {

void insert_row(void* context, instrlist_t* block, instr_t* where);
// Before a search it stores RCX, which must have the program's value; the instruction is `search`
// then. Before the next instruction it inserts the call.
void insert_search(void* context, instrlist_t* block, instr_t* where, bool begins,
                   instr_t*& search);

} // namespace warren::locality::counts
