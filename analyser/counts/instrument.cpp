#include "analyser/counts/instrument.hpp"

#include <vector>

#include "analyser/counts/block_accesses.hpp"
#include "analyser/counts/bursts.hpp"
#include "analyser/counts/dual_code.hpp"
#include "analyser/counts/encoded.hpp"
#include "analyser/counts/loops.hpp"
#include "analyser/counts/rows.hpp"
#include "analyser/counts/safe_places.hpp"
#include "analyser/counts/seldom.hpp"
#include "analyser/counts/sites.hpp"
#include "analyser/counts/storage.hpp"
#include "analyser/counts/stub.hpp"
#include "dr_api.h"
#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"
#include "drx.h"

namespace warren::locality::counts {
namespace {

struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    bool counts_instructions;
};

Layout layout;
std::int32_t widest_site; // bytes from its lowest to its highest
bool rotates;             // the processor has BMI2
bool in_bursts;           // mode sample
void* lock;               // of left_alone
std::vector<Range>* left_alone;

void insert(instrlist_t* block, instr_t* where, instr_t* instruction) {
    instrlist_meta_preinsert(block, where, instruction);
}

struct Cold {
    const Site* site; // null: the event has none
    Event event;
    reg_id_t address;
    reg_id_t scratch;
    instr_t* entry;
    instr_t* back;
    instr_t* within = nullptr; // where to go if nothing is crossed after all …
    std::int64_t extent = 0;   // … by so many bytes
};

struct Plan {
    bool counted = false;
    bool loop = false;     // its turns are counted together (loops.hpp)
    bool expanded = false; // one access at a time
    bool seldom = false;   // mode sample: no part of a trace, as what runs often is
    unsigned instructions = 0;
    DualCode dual;
    bool passed = false;       // the copy that counts is done
    instr_t* search = nullptr; // that is to be counted behind it
    std::vector<Group> groups;
    std::size_t next = 0;
    std::vector<Cold> cold;
};

// --- Code

// Inserts a test that clears the zero flag if so many bytes lie in more than one unit.
void insert_crossing_test(void* context, instrlist_t* block, instr_t* where, reg_id_t address,
                          reg_id_t scratch, std::int64_t extent) {
    const opnd_t cell = opnd_create_reg(scratch);
    insert(block, where,
           INSTR_CREATE_lea(context, cell,
                            opnd_create_base_disp(address, DR_REG_NULL, 0,
                                                  static_cast<int>(extent - 1), OPSZ_lea)));
    insert(block, where, INSTR_CREATE_xor(context, cell, opnd_create_reg(address)));
    insert(block, where,
           INSTR_CREATE_test(context, cell, OPND_CREATE_INT32(-(1 << layout.unit_shift))));
}

[[noreturn]] void no_register() {
    dr_fprintf(STDERR, "warren: no register is free to count with\n");
    dr_abort();
    __builtin_unreachable();
}

void insert_site(void* context, instrlist_t* block, instr_t* where, const Group& group,
                 Plan& plan) {
    const Site* const site = site_of(group);
    const std::int64_t extent = group.high - group.low;
    const opnd_t operand = moved(group.operand, group.low - group.origin);
    reg_id_t address = DR_REG_NULL;
    reg_id_t scratch = DR_REG_NULL;
    bool reserved =
        drreg_reserve_aflags(context, block, where) == DRREG_SUCCESS &&
        drreg_reserve_register(context, block, where, nullptr, &address) == DRREG_SUCCESS &&
        drreg_reserve_register(context, block, where, nullptr, &scratch) == DRREG_SUCCESS;
    if (!reserved) {
        no_register();
    }
    drreg_restore_app_values(context, block, where, operand, nullptr);
    drutil_insert_get_mem_addr(context, block, where, operand, address, scratch);
    const opnd_t at = opnd_create_reg(address);
    const opnd_t cell = opnd_create_reg(scratch);
    instr_t* const back = INSTR_CREATE_label(context);
    const auto leave = [&](Event event, int jump) {
        instr_t* const entry = INSTR_CREATE_label(context);
        insert(block, where, INSTR_CREATE_jcc(context, jump, opnd_create_instr(entry)));
        plan.cold.push_back({site, event, address, scratch, entry, back});
    };
    if (in_bursts && plan.expanded) { // there is no plain copy
        insert(block, where,
               INSTR_CREATE_cmp(context, half_of_budget(), OPND_CREATE_INT32(in_burst_half)));
        insert(block, where, INSTR_CREATE_jcc(context, OP_jnz, opnd_create_instr(back)));
    }
    const bool large = group.accesses.front().bytes > 64;
    if (large) {
        // These always call the stub: their bytes would not fit in a word.
        instr_t* const entry = INSTR_CREATE_label(context);
        insert(block, where, INSTR_CREATE_jmp(context, opnd_create_instr(entry)));
        plan.cold.push_back({site, crossing, address, scratch, entry, back});
    } else {
        instr_t* within = nullptr;
        const bool natural = extent > 1 && extent <= 64 && (extent & (extent - 1)) == 0;
        if (natural) {
            // An access aligned to its own size crosses no unit. Other accesses are examined out of
            // line.
            instr_t* const entry = INSTR_CREATE_label(context);
            within = INSTR_CREATE_label(context);
            insert(block, where,
                   INSTR_CREATE_test(context, opnd_create_reg(reg_resize_to_opsz(address, OPSZ_1)),
                                     OPND_CREATE_INT8(static_cast<int>(extent - 1))));
            insert(block, where, INSTR_CREATE_jcc(context, OP_jnz, opnd_create_instr(entry)));
            plan.cold.push_back({site, crossing, address, scratch, entry, back, within, extent});
            insert(block, where, within);
        } else if (extent > 1) {
            insert_crossing_test(context, block, where, address, scratch, extent);
            leave(crossing, OP_jnz);
        }
        const opnd_t low_half = opnd_create_reg(reg_64_to_32(scratch));
        // A rotation replaces a shift: bits that come in at the top are masked.
        const auto rotate = [&](unsigned bits) {
            if (rotates) {
                insert(
                    block, where,
                    INSTR_CREATE_rorx(context, cell, at, OPND_CREATE_INT8(static_cast<int>(bits))));
            } else {
                insert(block, where, INSTR_CREATE_mov_ld(context, cell, at));
                insert(block, where,
                       INSTR_CREATE_shr(context, cell, OPND_CREATE_INT8(static_cast<int>(bits))));
            }
        };
        const unsigned shift = layout.unit_shift;
        const unsigned width = layout.word_bits + 2; // log2 of the bytes of a unit's words
        if (layout.unit_bits + width <= 32) {
            rotate(shift - width);
            insert(block, where,
                   INSTR_CREATE_and(
                       context, low_half,
                       OPND_CREATE_INT32(static_cast<int>((layout.units() - 1) << width))));
        } else {
            rotate(shift);
            insert(block, where,
                   INSTR_CREATE_and(context, low_half,
                                    OPND_CREATE_INT32(static_cast<int>(layout.units() - 1))));
            insert(block, where,
                   INSTR_CREATE_shl(context, cell, OPND_CREATE_INT8(static_cast<int>(width))));
        }
        insert(block, where, INSTR_CREATE_add(context, cell, slot(words_slot)));
        if (layout.communication()) {
            // If the state does not permit the access, the stub counts access by access.
            const State least = site->constants[writing] != 0 ? own : readable;
            const opnd_t state =
                opnd_create_base_disp(scratch, DR_REG_NULL, 0, 4 * state_word, OPSZ_4);
            insert(block, where, INSTR_CREATE_cmp(context, state, OPND_CREATE_INT32(least)));
            leave(crossing, OP_jb);
        }
        for (const bool second : {false, true}) {
            const Direction direction = (site->first() == writing) != second ? writing : reading;
            if (site->constants[direction] == 0) {
                continue;
            }
            insert(block, where,
                   INSTR_CREATE_sub(
                       context,
                       opnd_create_base_disp(scratch, DR_REG_NULL, 0, 4 * direction, OPSZ_4),
                       OPND_CREATE_INT32(static_cast<int>(site->constants[direction]))));
            leave(second ? second_borrow : first_borrow, OP_jb);
        }
    }
    insert(block, where, back);
    drreg_unreserve_register(context, block, where, scratch);
    drreg_unreserve_register(context, block, where, address);
    drreg_unreserve_aflags(context, block, where);
}

// Inserts the branches to the stub in front of the block's last instruction, away from the code
// that runs often.
void insert_cold(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    if (plan.cold.empty()) {
        return;
    }
    instr_t* const over = INSTR_CREATE_label(context);
    insert(block, where, INSTR_CREATE_jmp(context, opnd_create_instr(over)));
    for (const Cold& cold : plan.cold) {
        insert(block, where, cold.entry);
        if (cold.within != nullptr) {
            insert_crossing_test(context, block, where, cold.address, cold.scratch, cold.extent);
            insert(block, where, INSTR_CREATE_jcc(context, OP_jz, opnd_create_instr(cold.within)));
        }
        if (cold.event == burst_turn) {
            insert_way_to_turn(context, block, where, cold.scratch, cold.back);
            continue;
        }
        insert_way_to_stub(context, block, where, cold.site, cold.event, cold.address, cold.scratch,
                           cold.back);
    }
    insert(block, where, over);
    plan.cold.clear();
}

// Which parts of the code at an address are not counted.
enum class Alone { no, all, accesses };

Alone left_alone_at(std::uint64_t address) {
    dr_mutex_lock(lock);
    Alone found = Alone::no;
    for (const Range& range : *left_alone) {
        if (range.begin <= address && address < range.end) {
            found = range.counts_instructions ? Alone::accesses : Alone::all;
        }
    }
    dr_mutex_unlock(lock);
    return found;
}

unsigned instructions_of(instrlist_t* block) {
    unsigned number = 0;
    for (instr_t* instruction = instrlist_first_app(block); instruction != nullptr;
         instruction = instr_get_next_app(instruction)) {
        ++number;
    }
    return number;
}

// --- DynamoRIO's four passes over a block

bool made_loop(void* context, void* tag, instrlist_t* block, bool for_trace) {
    const LoopStorage storage{slot(turns_left_slot),
                              slot(turns_slot),
                              slot(site_slot),
                              slot(return_slot),
                              {slot(kept_slot), slot(kept_too_slot)},
                              slot(flags_slot),
                              stub()};
    return insert_loop(context, block, dr_fragment_app_pc(tag), for_trace, layout, widest_site,
                       storage);
}

dr_emit_flags_t expand(void* context, void* tag, instrlist_t* block, bool for_trace, bool,
                       void** data) {
    auto* const plan = new Plan;
    *data = plan;
    const Alone alone = left_alone_at(reinterpret_cast<std::uint64_t>(dr_fragment_app_pc(tag)));
    plan->counted = alone == Alone::no;
    plan->instructions = alone == Alone::all ? 0 : instructions_of(block);
    if (!plan->counted) {
        return DR_EMIT_DEFAULT;
    }
    plan->loop = !in_bursts && made_loop(context, tag, block, for_trace);
    if (plan->loop) {
        return DR_EMIT_DEFAULT;
    }
    bool loops = false;
    for (instr_t* instruction = instrlist_first_app(block); instruction != nullptr;
         instruction = instr_get_next_app(instruction)) {
        loops = loops || (!in_bursts && is_search(instruction));
    }
    bool expanded = false;
    if (loops) {
        drutil_expand_rep_string_ex(context, block, &expanded, nullptr);
        plan->expanded = expanded;
    }
    drx_expand_scatter_gather(context, block, &expanded);
    plan->expanded = plan->expanded || expanded;
    // Blocks without dual code jump over sites outside bursts.
    const bool copied = in_bursts && !plan->expanded;
    plan->seldom = copied && !for_trace;
    if (copied && for_trace) {
        plan->dual = make_dual_code(context, block, dr_fragment_app_pc(tag), plan->instructions);
    }
    instr_t* const last = instrlist_last_app(block);
    if (in_bursts && plan->dual.begin == nullptr && last != nullptr && is_search(last)) {
        instrlist_meta_append(block, INSTR_CREATE_label(context)); // for the call behind it
    }
    return DR_EMIT_DEFAULT;
}

dr_emit_flags_t analyse(void*, void*, instrlist_t* block, bool, bool, void* data) {
    auto& plan = *static_cast<Plan*>(data);
    if (!plan.counted || plan.loop || plan.expanded) {
        return DR_EMIT_DEFAULT;
    }
    const DualCode& dual = plan.dual;
    plan.groups = dual.begin != nullptr
                      ? accesses_of(dual.first, dual.leave, dual.last, widest_site)
                      : accesses_of(instrlist_first(block), nullptr, nullptr, widest_site);
    return DR_EMIT_DEFAULT;
}

void insert_count_of_instructions(void* context, instrlist_t* block, instr_t* where,
                                  const Plan& plan) {
    const opnd_t by = OPND_CREATE_INT32(static_cast<int>(plan.instructions));
    drreg_reserve_aflags(context, block, where);
    insert(block, where,
           in_bursts ? INSTR_CREATE_sub(context, slot(budget_slot), by)
                     : INSTR_CREATE_add(context, slot(instructions_slot), by));
    drreg_unreserve_aflags(context, block, where);
}

// In the counting copy: the check whether a burst is to begin or to end.
void insert_turn(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    reg_id_t scratch = DR_REG_NULL;
    if (drreg_reserve_aflags(context, block, where) != DRREG_SUCCESS ||
        drreg_reserve_register(context, block, where, nullptr, &scratch) != DRREG_SUCCESS) {
        no_register();
    }
    instr_t* const entry = INSTR_CREATE_label(context);
    instr_t* const back = INSTR_CREATE_label(context);
    insert(block, where,
           INSTR_CREATE_cmp(context, half_of_budget(), OPND_CREATE_INT32(in_burst_half)));
    insert(block, where, INSTR_CREATE_jcc(context, OP_jnz, opnd_create_instr(entry)));
    insert(block, where, back);
    plan.cold.push_back({nullptr, burst_turn, scratch, scratch, entry, back});
    drreg_unreserve_register(context, block, where, scratch);
    drreg_unreserve_aflags(context, block, where);
}

// The sites of one instruction of the program that is no row.
void insert_sites(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    while (plan.next < plan.groups.size() && plan.groups[plan.next].where == where) {
        const Group& group = plan.groups[plan.next++];
        if (plan.seldom) {
            insert_seldom_site(context, block, where, group);
        } else {
            insert_site(context, block, where, group, plan);
        }
    }
}

// Rows are counted in both copies, whether in a burst or not.
void insert_rows(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    if (instr_is_app(where) && where != plan.dual.leave && is_row(where)) {
        insert_row(context, block, where);
    }
    if (in_bursts) {
        const bool begins = instr_is_app(where) && where != plan.dual.leave && is_search(where);
        if (begins &&
            drreg_get_app_value(context, block, where, DR_REG_RCX, DR_REG_RCX) != DRREG_SUCCESS) {
            no_register();
        }
        insert_search(context, block, where, begins, plan.search);
    }
}

void instrument_dual_code(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    DualCode& dual = plan.dual;
    if (where == dual.begin) {
        insert_choice(context, block, dual, plan.instructions);
    }
    if (where == dual.first) {
        insert_turn(context, block, where, plan);
    }
    insert_rows(context, block, where, plan);
    if (!plan.passed) {
        insert_sites(context, block, where, plan);
    }
    if (where == dual.leave) {
        insert_cold(context, block, where, plan);
        drreg_restore_all(context, block, where);
        plan.passed = true;
    }
    if (where == dual.plain) {
        insert_plain(context, block, dual);
    }
}

dr_emit_flags_t instrument(void* context, void*, instrlist_t* block, instr_t* where, bool, bool,
                           void* data) {
    auto& plan = *static_cast<Plan*>(data);
    if (!plan.counted) {
        if (plan.instructions != 0 && drmgr_is_first_instr(context, where)) {
            insert_seldom_count(context, block, where, plan.instructions);
        }
        return DR_EMIT_DEFAULT;
    }
    if (plan.loop) {
        return DR_EMIT_DEFAULT;
    }
    if (plan.dual.begin != nullptr) {
        instrument_dual_code(context, block, where, plan);
        return DR_EMIT_DEFAULT;
    }
    if (drmgr_is_first_instr(context, where)) {
        if (plan.seldom) {
            insert_seldom_begin(context, block, where, plan.instructions);
        } else {
            insert_count_of_instructions(context, block, where, plan);
        }
    }
    insert_rows(context, block, where, plan);
    const bool repeats = instr_is_app(where) && (is_row(where) || (in_bursts && is_search(where)));
    if (plan.expanded && !repeats) {
        instr_t* const instruction = drmgr_orig_app_instr_for_operands(context);
        if (instruction != nullptr && accesses_memory(instruction)) {
            for (const Group& group : accesses_at(where, instruction, widest_site)) {
                insert_site(context, block, where, group, plan);
            }
        }
    } else if (!repeats) {
        insert_sites(context, block, where, plan);
    }
    if (drmgr_is_last_instr(context, where)) {
        insert_cold(context, block, where, plan);
    }
    return DR_EMIT_DEFAULT;
}

dr_emit_flags_t finish(void* context, void*, instrlist_t* block, bool, bool, void* data) {
    auto* const plan = static_cast<Plan*>(data);
    if (plan->instructions != 0) {
        encode_once(context, block);
    }
    delete plan;
    return DR_EMIT_DEFAULT;
}

} // namespace

std::uint64_t* set_thread(ThreadCounters& thread, void* stack_end) {
    void** const base = own_slots();
    thread.stack = reinterpret_cast<const std::uint64_t* const*>(&base[program_stack_slot]);
    thread.inline_words = reinterpret_cast<std::uint32_t**>(&base[words_slot]);
    base[words_slot] = thread.words;
    base[instructions_slot] = nullptr;
    base[thread_slot] = &thread;
    base[turns_slot] = thread.turns.next;
    thread.turns.left = reinterpret_cast<std::int64_t*>(&base[turns_left_slot]);
    thread.turns.instructions = reinterpret_cast<std::uint64_t*>(&base[instructions_slot]);
    // With nine registers above it, the call finds the stack aligned.
    base[own_stack_slot] = static_cast<char*>(stack_end) - 8;
    return reinterpret_cast<std::uint64_t*>(&base[in_bursts ? budget_slot : instructions_slot]);
}

void program_stack_is(ThreadCounters& thread, std::uint64_t pointer) {
    *const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(thread.stack)) = pointer;
}

void leave_alone(std::uint64_t begin, std::uint64_t end, bool count_instructions) {
    dr_mutex_lock(lock);
    left_alone->push_back({begin, end, count_instructions});
    dr_mutex_unlock(lock);
}

bool start_instrumentation(const Layout& of_tables, bool bursts) {
    layout = of_tables;
    in_bursts = bursts;
    const std::int64_t unit = std::int64_t{1} << layout.unit_shift;
    // A site that crosses units costs as much as ten others, so wide sites are avoided.
    widest_site = static_cast<std::int32_t>(unit / 32 < 8      ? 8
                                            : unit / 32 > 1024 ? 1024
                                                               : unit / 32);
    rotates = proc_has_feature(FEATURE_BMI2);
    lock = dr_mutex_create();
    start_sites();
    left_alone = new std::vector<Range>;
    drreg_options_t registers = {sizeof registers, 3, false, nullptr, true};
    if (!drmgr_init() || !drutil_init() || drreg_init(&registers) != DRREG_SUCCESS || !drx_init() ||
        !start_storage() || !make_stubs(bursts) || !start_safe_places()) {
        return false;
    }
    return drmgr_register_bb_instrumentation_ex_event(expand, analyse, instrument, finish, nullptr);
}

void stop_instrumentation() {
    drx_exit();
    drreg_exit();
    drutil_exit();
    drmgr_exit();
}

} // namespace warren::locality::counts
