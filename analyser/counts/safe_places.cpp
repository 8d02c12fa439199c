#include "analyser/counts/safe_places.hpp"

#include "analyser/counts/storage.hpp"
#include "drmgr.h"

namespace warren::locality::counts {
namespace {

std::size_t first_note;

bool restorable(void*, bool restore_memory, dr_restore_state_info_t* info) {
    byte* at = info->fragment_info.cache_start_pc;
    if (at == nullptr || info->raw_mcontext == nullptr || info->raw_mcontext->pc < at) {
        return true;
    }
    if (info->fragment_info.ilist == nullptr) {
        // The state in code that is to be deleted can't be told. A thread that is to be moved
        // leaves such code soon, as nothing leads to it any more. A fault in it must not be
        // refused.
        return restore_memory;
    }
    bool is_safe = true;
    for (instr_t* instruction = instrlist_first(info->fragment_info.ilist);
         instruction != nullptr && at <= info->raw_mcontext->pc;
         instruction = instr_get_next(instruction)) {
        if (instr_is_label(instruction)) {
            const auto note = reinterpret_cast<std::size_t>(instr_get_note(instruction));
            is_safe = note == first_note + safe || (is_safe && note != first_note + unsafe);
        } else if (at == info->raw_mcontext->pc) {
            return is_safe;
        }
        at += instr_length(dr_get_current_drcontext(), instruction);
    }
    return true;
}

} // namespace

bool start_safe_places() {
    first_note = drmgr_reserve_note_range(notes);
    return first_note != DRMGR_NOTE_NONE && drmgr_register_restore_state_ex_event(restorable);
}

instr_t* label_of(void* context, Note note) {
    instr_t* const label = INSTR_CREATE_label(context);
    instr_set_note(label, reinterpret_cast<void*>(first_note + note));
    return label;
}

void insert_flags_kept(void* context, instrlist_t* block, instr_t* where) {
    instrlist_meta_preinsert(block, where, label_of(context, unsafe));
    instrlist_meta_preinsert(
        block, where,
        INSTR_CREATE_mov_st(context, slot(program_rax_slot), opnd_create_reg(DR_REG_RAX)));
    dr_save_arith_flags_to_reg(context, block, where, DR_REG_RAX);
}

void insert_flags_restored(void* context, instrlist_t* block, instr_t* where) {
    dr_restore_arith_flags_from_reg(context, block, where, DR_REG_RAX);
    instrlist_meta_preinsert(
        block, where,
        INSTR_CREATE_mov_ld(context, opnd_create_reg(DR_REG_RAX), slot(program_rax_slot)));
    instrlist_meta_preinsert(block, where, label_of(context, safe));
}

void insert_subtraction(void* context, instrlist_t* block, instr_t* where, unsigned count) {
    const opnd_t rax = opnd_create_reg(DR_REG_RAX);
    const auto insert = [&](instr_t* instruction) {
        instrlist_meta_preinsert(block, where, instruction);
    };
    insert(label_of(context, unsafe));
    insert(INSTR_CREATE_mov_st(context, slot(program_rax_slot), rax));
    insert(INSTR_CREATE_mov_ld(context, rax, slot(budget_slot)));
    insert(INSTR_CREATE_lea(
        context, rax,
        opnd_create_base_disp(DR_REG_RAX, DR_REG_NULL, 0, -static_cast<int>(count), OPSZ_lea)));
    insert(INSTR_CREATE_mov_st(context, slot(budget_slot), rax));
    insert(INSTR_CREATE_mov_ld(context, rax, slot(program_rax_slot)));
    insert(label_of(context, safe));
}

} // namespace warren::locality::counts
