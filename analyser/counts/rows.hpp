// Instructions that repeat themselves, counted by multiplication, by a call: rep movs, stos and
// lods before they run; in mode sample also those that may end early (rep cmps, scas), behind them.
// Thread rule: called by DynamoRIO.
#pragma once

#include "dr_api.h"

namespace warren::locality::counts {

void insert_row(void* context, instrlist_t* block, instr_t* where);
// Before a search: what it has in RCX, which must have the program's value; it is `search` then.
// Before what follows: the call.
void insert_search(void* context, instrlist_t* block, instr_t* where, bool begins,
                   instr_t*& search);

} // namespace warren::locality::counts
