#include "locality/counts/copies.hpp"

#include "drmgr.h"
#include "drreg.h"

namespace warren::locality::counts {
namespace {

reg_id_t segment;
unsigned scratch; // where the program's RAX is kept, in DynamoRIO's thread-local storage

enum Note : std::size_t { unsafe, safe, notes }; // what follows such a label

std::size_t first_note;

instr_t* label_of(void* context, Note note) {
    instr_t* const label = INSTR_CREATE_label(context);
    instr_set_note(label, reinterpret_cast<void*>(first_note + note));
    return label;
}

bool ends_block(instr_t* instruction) {
    return instr_is_syscall(instruction) || instr_is_cti(instruction) ||
           instr_is_interrupt(instruction);
}

opnd_t kept() {
    return opnd_create_far_base_disp(segment, DR_REG_NULL, DR_REG_NULL, 0,
                                     static_cast<int>(scratch), OPSZ_8);
}

// Before `where`.
void restore_flags(void* context, instrlist_t* block, instr_t* where) {
    dr_restore_arith_flags_from_reg(context, block, where, DR_REG_RAX);
    instrlist_meta_preinsert(block, where,
                             INSTR_CREATE_mov_ld(context, opnd_create_reg(DR_REG_RAX), kept()));
    instrlist_meta_preinsert(block, where, label_of(context, safe));
}

// Where RAX and the flags aren't the program's, a thread's state can't be told: DynamoRIO, which
// wants it of threads at any place, is to try again. Nothing there can fault.
bool restorable(void*, bool, dr_restore_state_info_t* info) {
    byte* at = info->fragment_info.cache_start_pc;
    if (at == nullptr || info->raw_mcontext == nullptr || info->raw_mcontext->pc < at) {
        return true;
    }
    if (info->fragment_info.ilist == nullptr) {
        return true; // not of those that have an unsafe part, which keep nothing
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

bool start_copies(reg_id_t of_storage, unsigned scratch_offset) {
    segment = of_storage;
    scratch = scratch_offset;
    first_note = drmgr_reserve_note_range(notes);
    return first_note != DRMGR_NOTE_NONE && drmgr_register_restore_state_ex_event(restorable);
}

Copies copy_block(void* context, instrlist_t* block) {
    instr_t* const last = instrlist_last_app(block);
    instr_t* const first = instrlist_first(block);
    if (last == nullptr) {
        return {};
    }
    Copies copies;
    copies.last = ends_block(last) ? last : nullptr;
    instr_t* const exit = INSTR_CREATE_label(context);
    // Registers that counting uses are restored where the copy ends, which is no block's end.
    drreg_set_bb_properties(context,
                            static_cast<drreg_bb_properties_t>(DRREG_IGNORE_CONTROL_FLOW |
                                                               DRREG_USER_RESTORES_AT_BB_END));
    copies.begin = INSTR_CREATE_label(context);
    instrlist_meta_preinsert(block, first, copies.begin);
    for (instr_t* instruction = first; instruction != nullptr && instruction != copies.last;
         instruction = instr_get_next(instruction)) {
        instr_t* const copy = instr_clone(context, instruction);
        instrlist_preinsert(block, first, copy);
        copies.first = copies.first == nullptr ? copy : copies.first;
    }
    // Not one of ours for now, so that all registers are taken to be in use behind it.
    copies.leave = INSTR_CREATE_jmp(context, opnd_create_instr(exit));
    instrlist_preinsert(block, first, copies.leave);
    copies.first = copies.first == nullptr ? copies.leave : copies.first;
    copies.plain = INSTR_CREATE_label(context);
    instrlist_meta_preinsert(block, first, copies.plain);
    if (copies.last != nullptr) {
        instrlist_meta_preinsert(block, copies.last, exit);
    } else {
        instrlist_meta_append(block, exit);
    }
    return copies;
}

void insert_choice(void* context, instrlist_t* block, Copies& copies, opnd_t budget,
                   unsigned instructions) {
    bool dead = false;
    drreg_are_aflags_dead(context, copies.begin, &dead);
    copies.flags_live = !dead;
    const auto insert = [&](instr_t* instruction) {
        instrlist_meta_preinsert(block, copies.begin, instruction);
    };
    if (copies.flags_live) {
        insert(label_of(context, unsafe));
        insert(INSTR_CREATE_mov_st(context, kept(), opnd_create_reg(DR_REG_RAX)));
        dr_save_arith_flags_to_reg(context, block, copies.begin, DR_REG_RAX);
    }
    insert(INSTR_CREATE_sub(context, budget, OPND_CREATE_INT32(static_cast<int>(instructions))));
    insert(INSTR_CREATE_jcc(context, OP_jns, opnd_create_instr(copies.plain)));
    if (copies.flags_live) {
        restore_flags(context, block, copies.begin);
    }
}

void insert_plain(void* context, instrlist_t* block, const Copies& copies) {
    if (copies.flags_live) {
        // Between the label and what is behind it, which the pass has fetched already.
        instr_t* const behind = instr_get_next(copies.plain);
        instrlist_meta_preinsert(block, behind, label_of(context, unsafe));
        restore_flags(context, block, behind);
    }
}

} // namespace warren::locality::counts
