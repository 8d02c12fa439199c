#include "locality/counts/safe_places.hpp"

#include "drmgr.h"

namespace warren::locality::counts {
namespace {

std::size_t first_note;

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

bool start_safe_places() {
    first_note = drmgr_reserve_note_range(notes);
    return first_note != DRMGR_NOTE_NONE && drmgr_register_restore_state_ex_event(restorable);
}

instr_t* label_of(void* context, Note note) {
    instr_t* const label = INSTR_CREATE_label(context);
    instr_set_note(label, reinterpret_cast<void*>(first_note + note));
    return label;
}

} // namespace warren::locality::counts
