#include "analyser/counts/loops.hpp"

#include <iterator>
#include <vector>

#include "analyser/counts/block_accesses.hpp"
#include "analyser/counts/safe_places.hpp"
#include "analyser/counts/sites.hpp"
#include "drutil.h"

namespace warren::locality::counts {
namespace {

// Steps must be smaller than this part of a unit. With larger ones too few turns stay in a unit.
constexpr std::int64_t part_of_unit = 16;
// Beginning and ending together cost about as much as this many turns counted alone.
constexpr std::uint64_t fewest_turns = 6;

enum class Flags {
    set,        // by each turn, before they are read
    carry_kept, // the same, but for the carry flag, which is left alone
    unfit
};

Flags flags_of(instr_t* first) {
    uint written = 0; // as bits of reading
    for (instr_t* instruction = first; instruction != nullptr;
         instruction = instr_get_next_app(instruction)) {
        const uint read = instr_get_arith_flags(instruction, DR_QUERY_INCLUDE_ALL);
        if ((read & EFLAGS_READ_ARITH & ~written) != 0) {
            return Flags::unfit;
        }
        written |= EFLAGS_WRITE_TO_READ(instr_get_arith_flags(instruction, DR_QUERY_DEFAULT) &
                                        EFLAGS_WRITE_ARITH);
    }
    const uint missing = EFLAGS_READ_ARITH & ~written;
    return missing == 0 ? Flags::set : missing == EFLAGS_READ_CF ? Flags::carry_kept : Flags::unfit;
}

// Makes the instruction that lets the branch go back after the count of turns has become -1.
// `fits`: there is one for this branch.
instr_t* make_branch(void* context, instr_t* branch, Flags flags, bool& fits) {
    const opnd_t stack = opnd_create_reg(DR_REG_RSP);
    fits = flags == Flags::set;
    switch (opposite_of(branch)) {
    case OP_jz:
    case OP_jnl:
    case OP_jnle:
    case OP_jns:
    case OP_jo:
    case OP_jnp:
        fits = true; // not zero, negative, parity even, no overflow
        return nullptr;
    case OP_jnb:
    case OP_jnbe:
        return INSTR_CREATE_stc(context);
    case OP_jb:
    case OP_jbe:
    case OP_jl:
    case OP_jle:
    case OP_js:
        return INSTR_CREATE_test(context, stack, stack);
    case OP_jnz:
        return INSTR_CREATE_cmp(context, stack, stack);
    default:
        fits = false;
        return nullptr;
    }
}

bool uses(const std::vector<Movement>& movements, reg_id_t reg) {
    bool found = false;
    for (const Movement& movement : movements) {
        found = found || opnd_uses_reg(movement.operand, reg);
    }
    return found;
}

class Code {
  public:
    Code(void* context, instrlist_t* block, const LoopStorage& storage)
        : context_(context), block_(block), storage_(storage) {}

    void insert(instr_t* where, instr_t* instruction) const {
        instrlist_meta_preinsert(block_, where, instruction);
    }
    void store(instr_t* where, opnd_t place, reg_id_t reg) const {
        insert(where, INSTR_CREATE_mov_st(context_, place, opnd_create_reg(reg)));
    }
    void load(instr_t* where, reg_id_t reg, opnd_t place) const {
        insert(where, INSTR_CREATE_mov_ld(context_, opnd_create_reg(reg), place));
    }

    // Calls the stub with all registers and the flags kept.
    void event(instr_t* where, const Loop* loop, Event event, bool keeps_flags) const {
        const opnd_t rax = opnd_create_reg(DR_REG_RAX);
        instr_t* const back = INSTR_CREATE_label(context_);
        store(where, storage_.kept[0], DR_REG_RAX);
        if (keeps_flags) {
            dr_save_arith_flags_to_reg(context_, block_, where, DR_REG_RAX);
            store(where, storage_.flags, DR_REG_RAX);
        }
        insert(where, INSTR_CREATE_mov_imm(
                          context_, rax,
                          OPND_CREATE_INT64(reinterpret_cast<std::uint64_t>(loop) | event)));
        store(where, storage_.site, DR_REG_RAX);
        insert(where, INSTR_CREATE_mov_imm(context_, rax, opnd_create_instr(back)));
        store(where, storage_.back, DR_REG_RAX);
        load(where, DR_REG_RAX, storage_.kept[0]);
        insert(where, INSTR_CREATE_jmp(context_, opnd_create_pc(storage_.stub)));
        insert(where, back);
        if (keeps_flags) {
            load(where, DR_REG_RAX, storage_.flags);
            dr_restore_arith_flags_from_reg(context_, block_, where, DR_REG_RAX);
            load(where, DR_REG_RAX, storage_.kept[0]);
        }
    }

    void addresses(instr_t* where, const std::vector<Movement>& movements,
                   const reg_id_t (&scratch)[2]) const {
        store(where, storage_.kept[0], scratch[0]);
        store(where, storage_.kept[1], scratch[1]);
        for (std::size_t index = 0; index < movements.size(); ++index) {
            drutil_insert_get_mem_addr(context_, block_, where, movements[index].operand,
                                       scratch[0], scratch[1]);
            load(where, scratch[1], storage_.addresses);
            store(where,
                  opnd_create_base_disp(scratch[1], DR_REG_NULL, 0,
                                        static_cast<int>(index * sizeof(std::uint64_t)), OPSZ_8),
                  scratch[0]);
        }
        load(where, scratch[0], storage_.kept[0]);
        load(where, scratch[1], storage_.kept[1]);
    }

  private:
    void* context_;
    instrlist_t* block_;
    const LoopStorage& storage_;
};

bool repeats_itself(instr_t* first, instr_t* last, app_pc begin) {
    if (last == nullptr || first == last || !instr_is_cbr(last) ||
        !opnd_is_pc(instr_get_target(last)) || opnd_get_pc(instr_get_target(last)) != begin) {
        return false;
    }
    for (instr_t* instruction = first; instruction != last;
         instruction = instr_get_next_app(instruction)) {
        if (is_row(instruction) || is_search(instruction) || instr_is_gather(instruction) ||
            instr_is_scatter(instruction)) {
            return false;
        }
    }
    return true;
}

// Puts the sites into the loop. False: some do not move by a suitable constant.
bool find_sites(instr_t* first, const Layout& layout, std::int64_t widest, Loop& loop,
                std::vector<Movement>& movements) {
    const std::int64_t longest = (std::int64_t{1} << layout.unit_shift) / part_of_unit;
    const std::vector<Group> groups = accesses_of(first, nullptr, nullptr, widest);
    if (groups.empty() || groups.size() > most_moving_sites) {
        return false;
    }
    loop.most = most_turns;
    for (const Group& group : groups) {
        Movement movement{};
        if (group.accesses.front().bytes > 64 || !movement_of(group, first, nullptr, movement) ||
            movement.step > longest || movement.step < -longest) {
            return false;
        }
        movements.push_back(movement);
        const auto at_once = static_cast<std::uint32_t>(group.accesses.size());
        loop.most = loop.most < most_in_word / at_once ? loop.most : most_in_word / at_once;
        loop.site[loop.sites++] = {site_of(group),
                                   static_cast<std::uint32_t>(group.high - group.low),
                                   static_cast<std::int32_t>(movement.step)};
    }
    return true;
}

} // namespace

bool insert_loop(void* context, instrlist_t* block, app_pc begin, bool for_trace,
                 const Layout& layout, std::int64_t widest, const LoopStorage& storage) {
    instr_t* const first = instrlist_first_app(block);
    instr_t* const last = instrlist_last_app(block);
    if (layout.communication() || layout.lines() || !repeats_itself(first, last, begin)) {
        return false;
    }
    const Flags flags = flags_of(first);
    bool fits = false;
    Loop wanted{};
    std::vector<Movement> movements;
    instr_t* const faked =
        flags == Flags::unfit ? nullptr : make_branch(context, last, flags, fits);
    if (!fits || !find_sites(first, layout, widest, wanted, movements)) {
        if (faked != nullptr) {
            instr_destroy(context, faked);
        }
        return false;
    }
    for (instr_t* instruction = first; instruction != nullptr;
         instruction = instr_get_next_app(instruction)) {
        ++wanted.instructions;
    }
    // Takes any register that no operand uses.
    static constexpr reg_id_t candidates[] = {DR_REG_RDX, DR_REG_RCX, DR_REG_RBX, DR_REG_RSI,
                                              DR_REG_RDI, DR_REG_R8,  DR_REG_R9,  DR_REG_R10,
                                              DR_REG_R11, DR_REG_R12, DR_REG_R13, DR_REG_R14,
                                              DR_REG_R15, DR_REG_RBP, DR_REG_RAX};
    reg_id_t scratch[2] = {};
    unsigned free_registers = 0;
    for (const reg_id_t reg : candidates) {
        if (free_registers < std::size(scratch) && !uses(movements, reg)) {
            scratch[free_registers++] = reg;
        }
    }
    Loop* const loop = known_loop(begin, wanted);
    if (for_trace && __atomic_load_n(&loop->way, __ATOMIC_RELAXED) == Loop::unknown) {
        // Decided once, as DynamoRIO may build the same block again.
        auto expected = Loop::unknown;
        const auto way = loop->times != 0 && loop->turns < fewest_turns * loop->times
                             ? Loop::alone
                             : Loop::together;
        __atomic_compare_exchange_n(&loop->way, &expected, way, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
    if (free_registers < std::size(scratch) ||
        (for_trace && __atomic_load_n(&loop->way, __ATOMIC_RELAXED) == Loop::alone)) {
        if (faked != nullptr) {
            instr_destroy(context, faked);
        }
        return false;
    }

    const Code code(context, block, storage);
    instr_t* const turn = label_of(context, safe);
    instr_t* const out = INSTR_CREATE_label(context);
    instr_t* const exit = label_of(context, safe);
    code.insert(first, label_of(context, unsafe));
    code.addresses(first, movements, scratch);
    code.event(first, loop, turns_begin, flags != Flags::set);
    code.insert(first, turn);
    code.insert(last, INSTR_CREATE_jcc(context, opposite_of(last), opnd_create_instr(out)));
    code.insert(last, label_of(context, unsafe));
    code.insert(last, INSTR_CREATE_dec(context, storage.left));
    code.insert(last, INSTR_CREATE_jcc(context, OP_jns, opnd_create_instr(turn)));
    // The planned turns are done. A trace returns to the beginning of this code. From other blocks
    // DynamoRIO may continue in code that counts each turn alone, and these turns would stay
    // uncounted.
    if (!for_trace) {
        code.event(last, loop, turns_end, true);
    }
    if (faked != nullptr) {
        code.insert(last, faked);
    }
    code.insert(last, INSTR_CREATE_jmp(context, opnd_create_instr(exit)));
    code.insert(last, out);
    code.event(last, loop, turns_end, true);
    code.insert(last, exit);
    return true;
}

} // namespace warren::locality::counts
