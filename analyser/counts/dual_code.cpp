#include "analyser/counts/dual_code.hpp"

#include <vector>

#include "analyser/counts/block_accesses.hpp"
#include "analyser/counts/safe_places.hpp"
#include "analyser/counts/storage.hpp"
#include "drmgr.h"
#include "drreg.h"

namespace warren::locality::counts {
namespace {

bool ends_block(instr_t* instruction) {
    return instr_is_syscall(instruction) || instr_is_cti(instruction) ||
           instr_is_interrupt(instruction);
}

// Number of turns that follow each other outside bursts. 1: the block doesn't repeat itself.
unsigned turns_of(instr_t* first, instr_t* last, app_pc begin, unsigned instructions) {
    constexpr unsigned most_turns = 24;
    constexpr unsigned most_instructions = 256; // of all turns
    if (first == last || !instr_is_cbr(last) || opposite_of(last) == OP_INVALID ||
        !opnd_is_pc(instr_get_target(last)) || opnd_get_pc(instr_get_target(last)) != begin) {
        return 1;
    }
    for (instr_t* instruction = first; instruction != last;
         instruction = instr_get_next(instruction)) {
        // A call precedes these instructions and is inserted only once.
        if (instr_is_app(instruction) && (is_row(instruction) || is_search(instruction))) {
            return 1;
        }
    }
    const unsigned turns = most_instructions / instructions;
    return turns < 1 ? 1 : turns < most_turns ? turns : most_turns;
}

// Inserts the other turns before the last one, [first, exit); each goes to `exit` if the loop ends
// with it. Behind them it inserts the subtraction for the turns that were executed.
void repeat(void* context, instrlist_t* block, instr_t* first, instr_t* exit, unsigned turns,
            int leaves_by, unsigned instructions) {
    std::vector<instr_t*> ways; // of the turns from the second on
    for (unsigned turn = 1; turn < turns; ++turn) {
        for (instr_t* instruction = first; instruction != exit;
             instruction = instr_get_next(instruction)) {
            if (instr_is_app(instruction)) {
                instrlist_preinsert(block, first, instr_clone(context, instruction));
            }
        }
        instr_t* const way = turn == 1 ? exit : INSTR_CREATE_label(context);
        instrlist_meta_preinsert(block, first,
                                 INSTR_CREATE_jcc(context, leaves_by, opnd_create_instr(way)));
        if (turn > 1) {
            ways.push_back(way);
        }
    }
    insert_subtraction(context, block, exit, (turns - 1) * instructions);
    for (; !ways.empty(); ways.pop_back()) {
        instrlist_meta_preinsert(block, exit, INSTR_CREATE_jmp(context, opnd_create_instr(exit)));
        instrlist_meta_preinsert(block, exit, ways.back());
        insert_subtraction(context, block, exit, static_cast<unsigned>(ways.size()) * instructions);
    }
}

} // namespace

DualCode make_dual_code(void* context, instrlist_t* block, app_pc begin, unsigned instructions) {
    instr_t* const last = instrlist_last_app(block);
    instr_t* const first = instrlist_first(block);
    if (last == nullptr) {
        return {};
    }
    DualCode dual;
    dual.last = ends_block(last) ? last : nullptr;
    instr_t* const exit = INSTR_CREATE_label(context);
    // Registers that counting uses are restored at the end of the copy, which is no block's end.
    drreg_set_bb_properties(context,
                            static_cast<drreg_bb_properties_t>(DRREG_IGNORE_CONTROL_FLOW |
                                                               DRREG_USER_RESTORES_AT_BB_END));
    dual.begin = INSTR_CREATE_label(context);
    instrlist_meta_preinsert(block, first, dual.begin);
    for (instr_t* instruction = first; instruction != nullptr && instruction != dual.last;
         instruction = instr_get_next(instruction)) {
        instr_t* const copy = instr_clone(context, instruction);
        instrlist_preinsert(block, first, copy);
        dual.first = dual.first == nullptr ? copy : dual.first;
    }
    // For now it is an instruction of the program, so that drreg takes all registers to be in use
    // behind it.
    dual.leave = INSTR_CREATE_jmp(context, opnd_create_instr(exit));
    instrlist_preinsert(block, first, dual.leave);
    dual.first = dual.first == nullptr ? dual.leave : dual.first;
    dual.plain = INSTR_CREATE_label(context);
    instrlist_meta_preinsert(block, first, dual.plain);
    if (dual.last != nullptr) {
        instrlist_meta_preinsert(block, dual.last, exit);
    } else {
        instrlist_meta_append(block, exit);
    }
    const unsigned turns =
        dual.last == nullptr ? 1 : turns_of(first, dual.last, begin, instructions);
    if (turns > 1) {
        repeat(context, block, first, exit, turns, opposite_of(last), instructions);
    }
    return dual;
}

void insert_choice(void* context, instrlist_t* block, DualCode& dual, unsigned instructions) {
    bool dead = false;
    drreg_are_aflags_dead(context, dual.begin, &dead);
    dual.flags_live = !dead;
    const auto insert = [&](instr_t* instruction) {
        instrlist_meta_preinsert(block, dual.begin, instruction);
    };
    if (dual.flags_live) {
        insert_flags_kept(context, block, dual.begin);
    }
    insert(INSTR_CREATE_sub(context, slot(budget_slot),
                            OPND_CREATE_INT32(static_cast<int>(instructions))));
    insert(INSTR_CREATE_jcc(context, OP_jns, opnd_create_instr(dual.plain)));
    if (dual.flags_live) {
        insert_flags_restored(context, block, dual.begin);
    }
}

void insert_plain(void* context, instrlist_t* block, const DualCode& dual) {
    if (dual.flags_live) {
        // Inserts between the label and the next instruction, which the pass has fetched already.
        instr_t* const behind = instr_get_next(dual.plain);
        instrlist_meta_preinsert(block, behind, label_of(context, unsafe));
        insert_flags_restored(context, block, behind);
    }
}

} // namespace warren::locality::counts
