#include "analyser/counts/block_accesses.hpp"

#include "drutil.h"

namespace warren::locality::counts {
namespace {

// A register's value as a constant distance from its value at some place of the block.
struct Value {
    unsigned version;
    std::int64_t distance;
};

template <typename Function>
void for_each_access(instr_t* instruction, Function function) {
    for (int index = 0; index < instr_num_srcs(instruction); ++index) {
        const opnd_t operand = instr_get_src(instruction, static_cast<uint>(index));
        if (opnd_is_memory_reference(operand)) {
            function(operand, false);
        }
    }
    for (int index = 0; index < instr_num_dsts(instruction); ++index) {
        const opnd_t operand = instr_get_dst(instruction, static_cast<uint>(index));
        if (opnd_is_memory_reference(operand)) {
            function(operand, true);
        }
    }
}

bool has_displacement(opnd_t operand) {
    return opnd_is_base_disp(operand);
}

std::int64_t displacement(opnd_t operand) {
    return has_displacement(operand)
               ? opnd_get_disp(operand)
               : static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(opnd_get_addr(operand)));
}

// Values of the registers along a block.
class Registers {
  public:
    Value of(reg_id_t reg) const {
        return reg == DR_REG_NULL ? Value{} : values_[reg_to_pointer_sized(reg) - DR_REG_START_64];
    }

    void pass(instr_t* instruction) {
        for (int index = 0; index < instr_num_dsts(instruction); ++index) {
            const opnd_t written = instr_get_dst(instruction, index);
            if (!opnd_is_reg(written) || !reg_is_gpr(opnd_get_reg(written))) {
                continue;
            }
            const reg_id_t reg = reg_to_pointer_sized(opnd_get_reg(written));
            Value& value = values_[reg - DR_REG_START_64];
            std::int64_t step = 0;
            if (adds_constant(instruction, reg, step)) {
                value.distance += step;
            } else {
                value = {++versions_, 0};
            }
        }
    }

  private:
    static bool adds_constant(instr_t* instruction, reg_id_t reg, std::int64_t& step) {
        const int opcode = instr_get_opcode(instruction);
        const bool to_it = instr_num_dsts(instruction) >= 1 &&
                           opnd_is_reg(instr_get_dst(instruction, 0)) &&
                           opnd_get_reg(instr_get_dst(instruction, 0)) == reg;
        if (!to_it) {
            return false;
        }
        switch (opcode) {
        case OP_push:
        case OP_push_imm:
            step = -8;
            return reg == DR_REG_RSP && has_bytes(instr_get_dst(instruction, 1), 8);
        case OP_add:
        case OP_sub: {
            const opnd_t by = instr_get_src(instruction, 0);
            if (!opnd_is_immed_int(by)) {
                return false;
            }
            step = opcode == OP_add ? opnd_get_immed_int(by) : -opnd_get_immed_int(by);
            return true;
        }
        case OP_inc:
        case OP_dec:
            step = opcode == OP_inc ? 1 : -1;
            return true;
        case OP_lea: {
            const opnd_t from = instr_get_src(instruction, 0);
            if (!opnd_is_base_disp(from) || opnd_get_base(from) != reg ||
                opnd_get_index(from) != DR_REG_NULL) {
                return false;
            }
            step = opnd_get_disp(from);
            return true;
        }
        default:
            return false;
        }
    }
    static bool has_bytes(opnd_t operand, uint bytes) {
        return opnd_size_in_bytes(opnd_get_size(operand)) == bytes;
    }

    Value values_[DR_REG_STOP_64 - DR_REG_START_64 + 1] = {};
    unsigned versions_ = 0;
};

bool same_place(const Group& group, opnd_t operand, unsigned base_version, unsigned index_version) {
    if (has_displacement(group.operand) != has_displacement(operand)) {
        return false;
    }
    if (!has_displacement(operand)) {
        return true; // absolute addresses: their displacement is all
    }
    return opnd_get_base(group.operand) == opnd_get_base(operand) &&
           opnd_get_index(group.operand) == opnd_get_index(operand) &&
           opnd_get_scale(group.operand) == opnd_get_scale(operand) &&
           opnd_is_far_base_disp(group.operand) == opnd_is_far_base_disp(operand) &&
           (!opnd_is_far_base_disp(operand) ||
            opnd_get_segment(group.operand) == opnd_get_segment(operand)) &&
           group.base_version == base_version && group.index_version == index_version;
}

void put_in_group(std::vector<Group>& groups, std::int64_t widest, instr_t* where,
                  instr_t* instruction, opnd_t operand, bool write, const Registers& registers) {
    const uint bytes = drutil_opnd_mem_size_in_bytes(operand, instruction);
    Value base{};
    Value index{};
    if (has_displacement(operand)) {
        base = registers.of(opnd_get_base(operand));
        index = registers.of(opnd_get_index(operand));
    }
    const std::int64_t scale = has_displacement(operand) ? opnd_get_scale(operand) : 0;
    const std::int64_t low = displacement(operand) + base.distance + scale * index.distance;
    const std::int64_t high = low + bytes;
    Access access{reinterpret_cast<std::uint64_t>(instr_get_app_pc(instruction)), 0, bytes, write};
    for (Group& group : groups) {
        const std::int64_t new_low = low < group.low ? low : group.low;
        const std::int64_t new_high = high > group.high ? high : group.high;
        const bool contained = new_low == group.low && new_high == group.high;
        if (bytes <= 64 && group.accesses.front().bytes <= 64 &&
            group.accesses.size() < accesses_at_once &&
            (contained || new_high - new_low <= widest) &&
            same_place(group, operand, base.version, index.version)) {
            access.offset = static_cast<std::int32_t>(low - group.origin);
            group.low = new_low;
            group.high = new_high;
            group.accesses.push_back(access);
            return;
        }
    }
    groups.push_back({where, operand, base.version, index.version, low, high, low, {access}});
}

} // namespace

bool accesses_memory(instr_t* instruction) {
    switch (instr_get_opcode(instruction)) {
    case OP_clflush:
    case OP_clflushopt:
    case OP_clwb:
    case OP_invlpg:
    case OP_lea:
    case OP_nop_modrm:
        return false;
    default:
        return !instr_is_prefetch(instruction) &&
               (instr_reads_memory(instruction) || instr_writes_memory(instruction));
    }
}

bool is_row(instr_t* instruction) {
    switch (instr_get_opcode(instruction)) {
    case OP_rep_movs:
    case OP_rep_stos:
    case OP_rep_lods:
        return true;
    default:
        return false;
    }
}

bool is_search(instr_t* instruction) {
    switch (instr_get_opcode(instruction)) {
    case OP_rep_cmps:
    case OP_repne_cmps:
    case OP_rep_scas:
    case OP_repne_scas:
        return true;
    default:
        return false;
    }
}

std::uint32_t bytes_of_row(instr_t* instruction) {
    std::uint32_t bytes = 0;
    for_each_access(instruction, [&](opnd_t operand, bool) {
        bytes = drutil_opnd_mem_size_in_bytes(operand, instruction);
    });
    return bytes;
}

int opposite_of(instr_t* branch) {
    int opcode = instr_get_opcode(branch);
    if (opcode >= OP_jo_short && opcode <= OP_jnle_short) {
        opcode += OP_jo - OP_jo_short;
    }
    // They come in pairs.
    return opcode >= OP_jo && opcode <= OP_jnle ? OP_jo + ((opcode - OP_jo) ^ 1) : OP_INVALID;
}

opnd_t moved(opnd_t operand, std::int64_t bytes) {
    if (bytes == 0) {
        return operand;
    }
    if (has_displacement(operand)) {
        const auto to = static_cast<int>(opnd_get_disp(operand) + bytes);
        return opnd_is_far_base_disp(operand)
                   ? opnd_create_far_base_disp(opnd_get_segment(operand), opnd_get_base(operand),
                                               opnd_get_index(operand), opnd_get_scale(operand), to,
                                               OPSZ_lea)
                   : opnd_create_base_disp(opnd_get_base(operand), opnd_get_index(operand),
                                           opnd_get_scale(operand), to, OPSZ_lea);
    }
    auto* const address = static_cast<byte*>(opnd_get_addr(operand)) + bytes;
    return opnd_create_abs_addr(address, OPSZ_lea);
}

std::vector<Group> accesses_of(instr_t* begin, instr_t* end, instr_t* last, std::int64_t widest) {
    Registers registers;
    std::vector<Group> groups;
    const auto take = [&](instr_t* instruction, instr_t* where) {
        if (!is_row(instruction) && !is_search(instruction) && accesses_memory(instruction)) {
            for_each_access(instruction, [&](opnd_t operand, bool write) {
                put_in_group(groups, widest, where, instruction, operand, write, registers);
            });
        }
        registers.pass(instruction);
    };
    for (instr_t* instruction = begin; instruction != end;
         instruction = instr_get_next(instruction)) {
        if (instr_is_app(instruction)) {
            take(instruction, instruction);
        }
    }
    if (last != nullptr) {
        take(last, end);
    }
    return groups;
}

std::vector<Group> accesses_at(instr_t* where, instr_t* instruction, std::int64_t widest) {
    const Registers registers;
    std::vector<Group> groups;
    for_each_access(instruction, [&](opnd_t operand, bool write) {
        put_in_group(groups, widest, where, instruction, operand, write, registers);
    });
    return groups;
}

bool movement_of(const Group& group, instr_t* begin, instr_t* end, Movement& movement) {
    if (group.base_version != 0 || group.index_version != 0) {
        return false;
    }
    // (Of registers that have been added to, it may lie beyond what an instruction can say.)
    if (has_displacement(group.operand) &&
        group.low != static_cast<std::int64_t>(static_cast<std::int32_t>(group.low))) {
        return false;
    }
    movement = {moved(group.operand, group.low - displacement(group.operand)), 0};
    if (!has_displacement(group.operand)) {
        return true;
    }
    Registers registers;
    for (instr_t* instruction = begin; instruction != end;
         instruction = instr_get_next(instruction)) {
        if (instr_is_app(instruction)) {
            registers.pass(instruction);
        }
    }
    const Value base = registers.of(opnd_get_base(group.operand));
    const Value index = registers.of(opnd_get_index(group.operand));
    movement.step = base.distance + opnd_get_scale(group.operand) * index.distance;
    return base.version == 0 && index.version == 0;
}

} // namespace warren::locality::counts
