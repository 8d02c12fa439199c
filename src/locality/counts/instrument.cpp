#include "locality/counts/instrument.hpp"

#include <vector>

#include "dr_api.h"
#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"
#include "drx.h"
#include "locality/counts/block_accesses.hpp"
#include "locality/counts/bursts.hpp"
#include "locality/counts/copies.hpp"
#include "locality/counts/encoded.hpp"
#include "locality/counts/loops.hpp"
#include "locality/counts/safe_places.hpp"
#include "locality/counts/sites.hpp"

namespace warren::locality::counts {
namespace {

enum Slot : unsigned {
    words_slot,
    instructions_slot,
    address_slot,
    site_slot,
    return_slot,
    program_stack_slot,
    own_stack_slot,
    thread_slot,
    budget_slot,      // mode sample
    program_rax_slot, // the same
    row_slot,         // the same: the turns that a search has before it
    turns_left_slot,  // mode counts; so are those below
    turns_slot,
    kept_slot,
    kept_too_slot,
    flags_slot,
    slots
};

struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    bool counts_instructions;
};

reg_id_t segment;
uint first_slot;
Layout layout;
std::int32_t widest_site; // bytes from its lowest to its highest
byte* stub;
bool rotates;   // the processor has BMI2
bool in_bursts; // mode sample
void* lock;     // of left_alone
std::vector<Range>* left_alone;

opnd_t slot(Slot which) {
    return opnd_create_far_base_disp(segment, DR_REG_NULL, DR_REG_NULL, 0,
                                     static_cast<int>(first_slot + which * sizeof(void*)), OPSZ_8);
}

void insert(instrlist_t* block, instr_t* where, instr_t* instruction) {
    instrlist_meta_preinsert(block, where, instruction);
}

// The upper half of it, which is another outside bursts.
opnd_t half_of_budget() {
    return opnd_create_far_base_disp(segment, DR_REG_NULL, DR_REG_NULL, 0,
                                     opnd_get_disp(slot(budget_slot)) + 4, OPSZ_4);
}

struct Cold {
    const Site* site;
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
    bool rare = false;     // mode sample: no part of a trace, as what runs often is
    unsigned instructions = 0;
    Copies copies;
    bool passed = false;       // the copy that counts is done
    instr_t* search = nullptr; // that is to be counted behind it
    std::vector<Group> groups;
    std::size_t next = 0;
    std::vector<Cold> cold;
};

// --- Code

// Sets `not zero` if so many bytes lie in more than one unit.
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

// With the address in a register, which may be `scratch`; from there it goes to `back`.
void insert_way_to_stub(void* context, instrlist_t* block, instr_t* where, const Site* site,
                        Event event, reg_id_t address, reg_id_t scratch, instr_t* back) {
    const opnd_t cell = opnd_create_reg(scratch);
    insert(block, where,
           INSTR_CREATE_mov_st(context, slot(address_slot), opnd_create_reg(address)));
    insert(block, where,
           INSTR_CREATE_mov_imm(context, cell,
                                OPND_CREATE_INT64(reinterpret_cast<std::uint64_t>(site) | event)));
    insert(block, where, INSTR_CREATE_mov_st(context, slot(site_slot), cell));
    insert(block, where, INSTR_CREATE_mov_imm(context, cell, opnd_create_instr(back)));
    insert(block, where, INSTR_CREATE_mov_st(context, slot(return_slot), cell));
    insert(block, where, INSTR_CREATE_jmp(context, opnd_create_pc(stub)));
}

// Making the code takes most of what blocks that run a few times cost: these count by the stub.
void insert_rare_site(void* context, instrlist_t* block, instr_t* where, const Group& group) {
    const opnd_t operand = moved(group.operand, group.low - group.origin);
    // Of two registers in one address, one more is needed if there is a segment too, or xlat's.
    const bool takes_two = opnd_is_far_base_disp(operand) ||
                           (opnd_is_base_disp(operand) && opnd_get_index(operand) == DR_REG_AL);
    reg_id_t address = DR_REG_NULL;
    reg_id_t scratch = DR_REG_NULL;
    if (drreg_reserve_aflags(context, block, where) != DRREG_SUCCESS ||
        drreg_reserve_register(context, block, where, nullptr, &address) != DRREG_SUCCESS ||
        (takes_two &&
         drreg_reserve_register(context, block, where, nullptr, &scratch) != DRREG_SUCCESS)) {
        no_register();
    }
    drreg_restore_app_values(context, block, where, operand, nullptr);
    drutil_insert_get_mem_addr(context, block, where, operand, address, scratch);
    instr_t* const back = INSTR_CREATE_label(context);
    insert_way_to_stub(context, block, where, site_of(group), crossing, address, address, back);
    insert(block, where, back);
    if (takes_two) {
        drreg_unreserve_register(context, block, where, scratch);
    }
    drreg_unreserve_register(context, block, where, address);
    drreg_unreserve_aflags(context, block, where);
}

void insert_site(void* context, instrlist_t* block, instr_t* where, const Group& group,
                 Plan& plan) {
    if (plan.rare) {
        insert_rare_site(context, block, where, group);
        return;
    }
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
        // Always by the stub: their bytes would not fit in a word.
        instr_t* const entry = INSTR_CREATE_label(context);
        insert(block, where, INSTR_CREATE_jmp(context, opnd_create_instr(entry)));
        plan.cold.push_back({site, crossing, address, scratch, entry, back});
    } else {
        instr_t* within = nullptr;
        const bool natural = extent > 1 && extent <= 64 && (extent & (extent - 1)) == 0;
        if (natural) {
            // What is aligned to its own size crosses nothing; the rest looks closer elsewhere.
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
        // A rotation does for a shift: what comes in at the top is masked.
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
            // What doesn't do is counted elsewhere, access by access.
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

// Ways to the stub, out of the way of what runs often: in front of the block's last instruction.
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
        insert_way_to_stub(context, block, where, cold.site, cold.event, cold.address, cold.scratch,
                           cold.back);
    }
    insert(block, where, over);
    plan.cold.clear();
}

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
    result.slots =
        reinterpret_cast<void**>(static_cast<byte*>(dr_get_dr_segment_base(segment)) + first_slot);
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

void insert_row(void* context, instrlist_t* block, instr_t* where) {
    const uint bytes = bytes_of_row(where);
    dr_insert_clean_call_ex(context, block, where, reinterpret_cast<void*>(count_row_of),
                            static_cast<dr_cleancall_save_t>(DR_CLEANCALL_READS_APP_CONTEXT), 3,
                            OPND_CREATE_INTPTR(instr_get_app_pc(where)),
                            OPND_CREATE_INT32(instr_get_opcode(where)), OPND_CREATE_INT32(bytes));
}

// Behind a search, which has ended early perhaps.
void count_search_of(app_pc instruction, int opcode, uint bytes) {
    const Caller by = caller();
    const auto before = reinterpret_cast<std::uint64_t>(by.slots[row_slot]);
    if (before <= by.machine.xcx) {
        return;
    }
    const std::uint64_t times = before - by.machine.xcx;
    // Behind the last one, downwards before it.
    const std::uint64_t from =
        (by.machine.xflags & direction_flag) != 0 ? bytes : std::uint64_t{0} - times * bytes;
    const auto pc = reinterpret_cast<std::uint64_t>(instruction);
    count_row(*by.thread, by.machine.xdi + from, times, bytes, reading, pc);
    if (opcode == OP_rep_cmps || opcode == OP_repne_cmps) {
        count_row(*by.thread, by.machine.xsi + from, times, bytes, reading, pc);
    }
}

// Before a search: what it has in RCX; before what follows it: the call.
void insert_search(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    if (instr_t* const search = plan.search) {
        plan.search = nullptr;
        dr_insert_clean_call_ex(context, block, where, reinterpret_cast<void*>(count_search_of),
                                static_cast<dr_cleancall_save_t>(DR_CLEANCALL_READS_APP_CONTEXT), 3,
                                OPND_CREATE_INTPTR(instr_get_app_pc(search)),
                                OPND_CREATE_INT32(instr_get_opcode(search)),
                                OPND_CREATE_INT32(bytes_of_row(search)));
    }
    if (instr_is_app(where) && where != plan.copies.leave && is_search(where)) {
        if (drreg_get_app_value(context, block, where, DR_REG_RCX, DR_REG_RCX) != DRREG_SUCCESS) {
            no_register();
        }
        insert(block, where,
               INSTR_CREATE_mov_st(context, slot(row_slot), opnd_create_reg(DR_REG_RCX)));
        plan.search = where;
    }
}

// How code there is left alone, if it is.
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

// --- DynamoRIO's four passes over a block

bool made_loop(void* context, void* tag, instrlist_t* block, bool for_trace) {
    const LoopStorage storage{slot(turns_left_slot),
                              slot(turns_slot),
                              slot(site_slot),
                              slot(return_slot),
                              {slot(kept_slot), slot(kept_too_slot)},
                              slot(flags_slot),
                              stub};
    return insert_loop(context, block, dr_fragment_app_pc(tag), for_trace, layout, widest_site,
                       storage);
}

dr_emit_flags_t expand(void* context, void* tag, instrlist_t* block, bool for_trace, bool,
                       void** data) {
    auto* const plan = new Plan;
    *data = plan;
    const Alone alone = left_alone_at(reinterpret_cast<std::uint64_t>(dr_fragment_app_pc(tag)));
    plan->counted = alone == Alone::no;
    if (alone == Alone::accesses) {
        for (instr_t* instruction = instrlist_first_app(block); instruction != nullptr;
             instruction = instr_get_next_app(instruction)) {
            ++plan->instructions;
        }
    }
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
        ++plan->instructions;
        loops = loops || (!in_bursts && is_search(instruction));
    }
    bool expanded = false;
    if (loops) {
        drutil_expand_rep_string_ex(context, block, &expanded, nullptr);
        plan->expanded = expanded;
    }
    drx_expand_scatter_gather(context, block, &expanded);
    plan->expanded = plan->expanded || expanded;
    plan->rare = in_bursts && !plan->expanded && !for_trace;
    if (in_bursts && !plan->expanded) { // else sites are jumped over outside bursts
        plan->copies = copy_block(context, block, dr_fragment_app_pc(tag), plan->instructions,
                                  slot(budget_slot));
    }
    return DR_EMIT_DEFAULT;
}

dr_emit_flags_t analyse(void*, void*, instrlist_t* block, bool, bool, void* data) {
    auto& plan = *static_cast<Plan*>(data);
    if (!plan.counted || plan.loop || plan.expanded) {
        return DR_EMIT_DEFAULT;
    }
    const Copies& copies = plan.copies;
    plan.groups = copies.begin != nullptr
                      ? accesses_of(copies.first, copies.leave, copies.last, widest_site)
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

// In the copy that counts: whether a burst is to begin or to end.
void insert_turn(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    static Site none{};
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
    plan.cold.push_back({&none, burst_turn, scratch, scratch, entry, back});
    drreg_unreserve_register(context, block, where, scratch);
    drreg_unreserve_aflags(context, block, where);
}

// The sites of one instruction of the program that is no row.
void insert_sites(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    while (plan.next < plan.groups.size() && plan.groups[plan.next].where == where) {
        insert_site(context, block, where, plan.groups[plan.next++], plan);
    }
}

// In both copies: they are no matter of bursts.
void insert_rows(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    if (instr_is_app(where) && where != plan.copies.leave && is_row(where)) {
        insert_row(context, block, where);
    }
    if (in_bursts) {
        insert_search(context, block, where, plan);
    }
}

void instrument_copies(void* context, instrlist_t* block, instr_t* where, Plan& plan) {
    Copies& copies = plan.copies;
    if (where == copies.begin) {
        insert_choice(context, block, copies, slot(budget_slot), plan.instructions);
    }
    if (where == copies.first) {
        insert_turn(context, block, where, plan);
    }
    insert_rows(context, block, where, plan);
    if (!plan.passed) {
        insert_sites(context, block, where, plan);
    }
    if (where == copies.leave) {
        insert_cold(context, block, where, plan);
        drreg_restore_all(context, block, where);
        plan.passed = true;
    }
    if (where == copies.plain) {
        insert_plain(context, block, copies);
    }
}

dr_emit_flags_t instrument(void* context, void*, instrlist_t* block, instr_t* where, bool, bool,
                           void* data) {
    auto& plan = *static_cast<Plan*>(data);
    if (!plan.counted) {
        if (plan.instructions != 0 && drmgr_is_first_instr(context, where)) {
            insert_count_of_instructions(context, block, where, plan);
        }
        return DR_EMIT_DEFAULT;
    }
    if (plan.loop) {
        return DR_EMIT_DEFAULT;
    }
    if (plan.copies.begin != nullptr) {
        instrument_copies(context, block, where, plan);
        return DR_EMIT_DEFAULT;
    }
    if (drmgr_is_first_instr(context, where)) {
        insert_count_of_instructions(context, block, where, plan);
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
    delete static_cast<Plan*>(data);
    encode_once(context, block);
    return DR_EMIT_DEFAULT;
}

constexpr std::size_t stub_bytes = 4096;

// From inline code to warren_counts_event and back: on a stack of the thread's own, saving what
// such functions may change.
bool make_stub() {
    stub = static_cast<byte*>(
        dr_nonheap_alloc(stub_bytes, DR_MEMPROT_READ | DR_MEMPROT_WRITE | DR_MEMPROT_EXEC));
    if (stub == nullptr) {
        return false;
    }
    static constexpr reg_id_t saved[] = {DR_REG_RAX, DR_REG_RCX, DR_REG_RDX, DR_REG_RSI, DR_REG_RDI,
                                         DR_REG_R8,  DR_REG_R9,  DR_REG_R10, DR_REG_R11};
    void* const context = dr_get_current_drcontext();
    instrlist_t* const code = instrlist_create(context);
    const auto add = [&](instr_t* instruction) { instrlist_meta_append(code, instruction); };
    const opnd_t stack = opnd_create_reg(DR_REG_RSP);
    add(INSTR_CREATE_mov_st(context, slot(program_stack_slot), stack));
    add(INSTR_CREATE_mov_ld(context, stack, slot(own_stack_slot)));
    for (const reg_id_t reg : saved) {
        add(INSTR_CREATE_push(context, opnd_create_reg(reg)));
    }
    add(INSTR_CREATE_mov_ld(context, opnd_create_reg(DR_REG_RDI), slot(thread_slot)));
    add(INSTR_CREATE_mov_ld(context, opnd_create_reg(DR_REG_RSI), slot(address_slot)));
    add(INSTR_CREATE_mov_ld(context, opnd_create_reg(DR_REG_RDX), slot(site_slot)));
    add(INSTR_CREATE_mov_imm(
        context, opnd_create_reg(DR_REG_RAX),
        OPND_CREATE_INT64(reinterpret_cast<std::uint64_t>(&warren_counts_event))));
    add(INSTR_CREATE_call_ind(context, opnd_create_reg(DR_REG_RAX)));
    for (std::size_t index = std::size(saved); index-- > 0;) {
        add(INSTR_CREATE_pop(context, opnd_create_reg(saved[index])));
    }
    add(INSTR_CREATE_mov_ld(context, stack, slot(program_stack_slot)));
    add(INSTR_CREATE_jmp_ind(context, slot(return_slot)));
    byte* const end = instrlist_encode(context, code, stub, false);
    instrlist_clear_and_destroy(context, code);
    return end != nullptr && end < stub + stub_bytes &&
           dr_memory_protect(stub, stub_bytes, DR_MEMPROT_READ | DR_MEMPROT_EXEC);
}

} // namespace

std::uint64_t* set_thread(ThreadCounters& thread, void* stack_end) {
    auto** const base =
        reinterpret_cast<void**>(static_cast<byte*>(dr_get_dr_segment_base(segment)) + first_slot);
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
    // A site that crosses units costs as much as ten others: it is to be rare.
    widest_site = static_cast<std::int32_t>(unit / 32 < 8      ? 8
                                            : unit / 32 > 1024 ? 1024
                                                               : unit / 32);
    rotates = proc_has_feature(FEATURE_BMI2);
    lock = dr_mutex_create();
    start_sites();
    left_alone = new std::vector<Range>;
    drreg_options_t registers = {sizeof registers, 3, false, nullptr, true};
    if (!drmgr_init() || !drutil_init() || drreg_init(&registers) != DRREG_SUCCESS || !drx_init() ||
        !dr_raw_tls_calloc(&segment, &first_slot, slots, 0) || !make_stub() ||
        !start_safe_places()) {
        return false;
    }
    start_copies(segment, static_cast<unsigned>(first_slot + program_rax_slot * sizeof(void*)));
    return drmgr_register_bb_instrumentation_ex_event(expand, analyse, instrument, finish, nullptr);
}

void stop_instrumentation() {
    drx_exit();
    drreg_exit();
    drutil_exit();
    drmgr_exit();
}

} // namespace warren::locality::counts
