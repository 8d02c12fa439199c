#include "analyser/counts/rows.hpp"

#include "analyser/counts/block_accesses.hpp"
#include "analyser/counts/counters.hpp"
#include "analyser/counts/instrument.hpp"
#include "analyser/counts/storage.hpp"
#include "drmgr.h"
#include "drreg.h"

namespace warren::locality::counts {
namespace {

constexpr std::uint64_t direction_flag = 0x400; // downwards

struct Caller {
    dr_mcontext_t machine;
    ThreadCounters* thread;
    void** slots;
};

Caller caller() {
    Caller result;
    result.machine.size = sizeof result.machine;
    result.machine.flags = static_cast<dr_mcontext_flags_t>(DR_MC_INTEGER | DR_MC_CONTROL);
    dr_get_mcontext(dr_get_current_drcontext(), &result.machine);
    result.slots = own_slots();
    result.thread = static_cast<ThreadCounters*>(result.slots[thread_slot]);
    program_stack_is(*result.thread, result.machine.xsp);
    return result;
}

void count_row_of(app_pc instruction, int opcode, uint bytes) {
    const Caller by = caller();
    const dr_mcontext_t& machine = by.machine;
    ThreadCounters* const thread = by.thread;
    const std::uint64_t times = machine.xcx;
    if (times == 0) {
        return;
    }
    const std::uint64_t back = (machine.xflags & direction_flag) != 0 ? (times - 1) * bytes : 0;
    const auto pc = reinterpret_cast<std::uint64_t>(instruction);
    if (opcode != OP_rep_stos) {
        count_row(*thread, machine.xsi - back, times, bytes, reading, pc);
    }
    if (opcode != OP_rep_lods) {
        count_row(*thread, machine.xdi - back, times, bytes, writing, pc);
    }
}

// Called behind a search, which may have ended early.
void count_search_of(app_pc instruction, int opcode, uint bytes) {
    const Caller by = caller();
    const auto before = reinterpret_cast<std::uint64_t>(by.slots[row_slot]);
    if (before <= by.machine.xcx) {
        return;
    }
    const std::uint64_t times = before - by.machine.xcx;
    // The address is behind the last element; when going downwards, before it.
    const std::uint64_t from =
        (by.machine.xflags & direction_flag) != 0 ? bytes : std::uint64_t{0} - times * bytes;
    const auto pc = reinterpret_cast<std::uint64_t>(instruction);
    count_row(*by.thread, by.machine.xdi + from, times, bytes, reading, pc);
    if (opcode == OP_rep_cmps || opcode == OP_repne_cmps) {
        count_row(*by.thread, by.machine.xsi + from, times, bytes, reading, pc);
    }
}

} // namespace

void insert_row(void* context, instrlist_t* block, instr_t* where) {
    const uint bytes = bytes_of_row(where);
    dr_insert_clean_call_ex(context, block, where, reinterpret_cast<void*>(count_row_of),
                            static_cast<dr_cleancall_save_t>(DR_CLEANCALL_READS_APP_CONTEXT), 3,
                            OPND_CREATE_INTPTR(instr_get_app_pc(where)),
                            OPND_CREATE_INT32(instr_get_opcode(where)), OPND_CREATE_INT32(bytes));
}

void insert_search(void* context, instrlist_t* block, instr_t* where, bool begins,
                   instr_t*& search) {
    if (instr_t* const before = search) {
        search = nullptr;
        dr_insert_clean_call_ex(context, block, where, reinterpret_cast<void*>(count_search_of),
                                static_cast<dr_cleancall_save_t>(DR_CLEANCALL_READS_APP_CONTEXT), 3,
                                OPND_CREATE_INTPTR(instr_get_app_pc(before)),
                                OPND_CREATE_INT32(instr_get_opcode(before)),
                                OPND_CREATE_INT32(bytes_of_row(before)));
    }
    if (begins) {
        instrlist_meta_preinsert(
            block, where,
            INSTR_CREATE_mov_st(context, slot(row_slot), opnd_create_reg(DR_REG_RCX)));
        search = where;
    }
}

} // namespace warren::locality::counts
