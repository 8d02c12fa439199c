#include "analyser/counts/encoded.hpp"

namespace warren::locality::counts {
namespace {

// Whether an operand's encoding depends on the place of its instruction or of another one.
bool depends_on_place(opnd_t operand) {
    return opnd_is_pc(operand) || opnd_is_instr(operand) || opnd_is_mem_instr(operand) ||
           opnd_is_rel_addr(operand) ||
           // Operands in the thread's storage are at fixed offsets of its segment.
           (opnd_is_abs_addr(operand) && !opnd_is_far_base_disp(operand));
}

bool depends_on_place(instr_t* instruction) {
    for (int index = 0; index < instr_num_srcs(instruction); ++index) {
        if (depends_on_place(instr_get_src(instruction, static_cast<uint>(index)))) {
            return true;
        }
    }
    for (int index = 0; index < instr_num_dsts(instruction); ++index) {
        if (depends_on_place(instr_get_dst(instruction, static_cast<uint>(index)))) {
            return true;
        }
    }
    return false;
}

} // namespace

void encode_once(void* context, instrlist_t* block) {
    constexpr std::size_t most_bytes = 32; // more than an instruction has
    byte bytes[most_bytes];
    for (instr_t* instruction = instrlist_first(block); instruction != nullptr;
         instruction = instr_get_next(instruction)) {
        if (instr_is_app(instruction) || instr_is_label(instruction) ||
            !instr_needs_encoding(instruction) || depends_on_place(instruction)) {
            continue;
        }
        const byte* const end = instr_encode(context, instruction, bytes);
        if (end == nullptr) {
            continue; // DynamoRIO says so itself
        }
        const auto length = static_cast<uint>(end - bytes);
        instr_allocate_raw_bits(context, instruction, length);
        instr_set_raw_bytes(instruction, bytes, length);
        instr_set_operands_valid(instruction, true); // still
    }
}

} // namespace warren::locality::counts
