// Stubs that call warren_counts_event from inline code, on a stack of the thread's own.
//
// There are two. The first keeps all registers but not the flags. The second, for code that seldom
// runs (seldom.hpp), keeps the flags but not RAX, whose value is in a slot already, and returns at
// once outside bursts. Thread rule: make_stubs() once per process; the rest any.
#pragma once

#include "analyser/counts/counters.hpp"
#include "dr_api.h"

namespace warren::locality::counts {

bool make_stubs(bool bursts);

app_pc stub();

// Branches to the stub, with the address in a register, which may be `scratch`. The stub returns to
// `back`.
void insert_way_to_stub(void* context, instrlist_t* block, instr_t* where, const Site* site,
                        Event event, reg_id_t address, reg_id_t scratch, instr_t* back);
// Branches to the stub for burst_turn, which has neither address nor site.
void insert_way_to_turn(void* context, instrlist_t* block, instr_t* where, reg_id_t scratch,
                        instr_t* back);
// Branches to the second stub, with the address in RAX, which is the scratch register too.
void insert_seldom_way(void* context, instrlist_t* block, instr_t* where, const Site* site,
                       Event event, instr_t* back);

} // namespace warren::locality::counts
