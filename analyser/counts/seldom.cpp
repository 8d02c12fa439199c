#include "analyser/counts/seldom.hpp"

#include "analyser/counts/bursts.hpp"
#include "analyser/counts/counters.hpp"
#include "analyser/counts/safe_places.hpp"
#include "analyser/counts/sites.hpp"
#include "analyser/counts/storage.hpp"
#include "analyser/counts/stub.hpp"
#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"

namespace warren::locality::counts {
namespace {

// The flags at `where` are written before anything reads them.
bool flags_are_free(void* context, instr_t* where) {
    bool dead = false;
    return drreg_are_aflags_dead(context, where, &dead) == DRREG_SUCCESS && dead;
}

} // namespace

void insert_seldom_count(void* context, instrlist_t* block, instr_t* where, unsigned instructions) {
    if (flags_are_free(context, where)) {
        instrlist_meta_preinsert(
            block, where,
            INSTR_CREATE_sub(context, slot(budget_slot),
                             OPND_CREATE_INT32(static_cast<int>(instructions))));
    } else {
        insert_subtraction(context, block, where, instructions);
    }
}

void insert_seldom_begin(void* context, instrlist_t* block, instr_t* where, unsigned instructions) {
    const auto insert = [&](instr_t* instruction) {
        instrlist_meta_preinsert(block, where, instruction);
    };
    const bool free = flags_are_free(context, where);
    if (!free) {
        insert_flags_kept(context, block, where);
    }
    instr_t* const on = INSTR_CREATE_label(context);
    insert(INSTR_CREATE_sub(context, slot(budget_slot),
                            OPND_CREATE_INT32(static_cast<int>(instructions))));
    insert(INSTR_CREATE_jcc(context, OP_jns, opnd_create_instr(on)));
    insert(INSTR_CREATE_cmp(context, half_of_budget(), OPND_CREATE_INT32(in_burst_half)));
    insert(INSTR_CREATE_jcc(context, OP_jz, opnd_create_instr(on)));
    instr_t* const back = INSTR_CREATE_label(context);
    const opnd_t rcx = opnd_create_reg(DR_REG_RCX);
    insert(label_of(context, unsafe));
    insert(INSTR_CREATE_mov_st(context, slot(kept_slot), rcx));
    insert_way_to_turn(context, block, where, DR_REG_RCX, back);
    insert(back);
    insert(INSTR_CREATE_mov_ld(context, rcx, slot(kept_slot)));
    insert(on);
    if (free) {
        insert(label_of(context, safe));
    } else {
        insert_flags_restored(context, block, where);
    }
}

void insert_seldom_site(void* context, instrlist_t* block, instr_t* where, const Group& group) {
    const opnd_t operand = moved(group.operand, group.low - group.origin);
    // A segment address, and xlat's two registers, need one more register.
    const bool takes_two = opnd_is_far_base_disp(operand) ||
                           (opnd_is_base_disp(operand) && opnd_get_index(operand) == DR_REG_AL);
    const opnd_t rax = opnd_create_reg(DR_REG_RAX);
    const opnd_t rcx = opnd_create_reg(DR_REG_RCX);
    const auto insert = [&](instr_t* instruction) {
        instrlist_meta_preinsert(block, where, instruction);
    };
    insert(label_of(context, unsafe));
    insert(INSTR_CREATE_mov_st(context, slot(kept_slot), rax));
    if (takes_two) {
        insert(INSTR_CREATE_mov_st(context, slot(kept_too_slot), rcx));
    }
    drutil_insert_get_mem_addr(context, block, where, operand, DR_REG_RAX,
                               takes_two ? DR_REG_RCX : DR_REG_NULL);
    instr_t* const back = INSTR_CREATE_label(context);
    insert_seldom_way(context, block, where, site_of(group), crossing, back);
    insert(back);
    if (takes_two) {
        insert(INSTR_CREATE_mov_ld(context, rcx, slot(kept_too_slot)));
    }
    insert(INSTR_CREATE_mov_ld(context, rax, slot(kept_slot)));
    insert(label_of(context, safe));
}

} // namespace warren::locality::counts
