#include "analyser/counts/stub.hpp"

#include <iterator>

#include "analyser/counts/bursts.hpp"
#include "analyser/counts/storage.hpp"

namespace warren::locality::counts {
namespace {

constexpr std::size_t stub_bytes = 4096; // of both

byte* usual;
byte* seldom;

void insert_way(void* context, instrlist_t* block, instr_t* where, const Site* site, Event event,
                reg_id_t address, reg_id_t scratch, instr_t* back, byte* to) {
    const auto insert = [&](instr_t* instruction) {
        instrlist_meta_preinsert(block, where, instruction);
    };
    const opnd_t cell = opnd_create_reg(scratch);
    insert(INSTR_CREATE_mov_st(context, slot(address_slot), opnd_create_reg(address)));
    insert(INSTR_CREATE_mov_imm(context, cell,
                                OPND_CREATE_INT64(reinterpret_cast<std::uint64_t>(site) | event)));
    insert(INSTR_CREATE_mov_st(context, slot(site_slot), cell));
    insert(INSTR_CREATE_mov_imm(context, cell, opnd_create_instr(back)));
    insert(INSTR_CREATE_mov_st(context, slot(return_slot), cell));
    insert(INSTR_CREATE_jmp(context, opnd_create_pc(to)));
}

// Encodes a stub that saves what functions may change, and calls. Returns its end; null: it does
// not fit.
byte* encode_stub(byte* at, bool is_seldom) {
    static constexpr reg_id_t saved[] = {DR_REG_RAX, DR_REG_RCX, DR_REG_RDX, DR_REG_RSI, DR_REG_RDI,
                                         DR_REG_R8,  DR_REG_R9,  DR_REG_R10, DR_REG_R11};
    void* const context = dr_get_current_drcontext();
    instrlist_t* const code = instrlist_create(context);
    const auto add = [&](instr_t* instruction) { instrlist_meta_append(code, instruction); };
    const opnd_t stack = opnd_create_reg(DR_REG_RSP);
    const opnd_t low = opnd_create_reg(DR_REG_AL);
    instr_t* const outside = INSTR_CREATE_label(context);
    if (is_seldom) {
        add(INSTR_CREATE_lahf(context));
        add(INSTR_CREATE_setcc(context, OP_seto, low));
        add(INSTR_CREATE_cmp(context, half_of_budget(), OPND_CREATE_INT32(in_burst_half)));
        add(INSTR_CREATE_jcc(context, OP_jnz, opnd_create_instr(outside)));
    }
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
    add(outside);
    if (is_seldom) {
        constexpr int overflows = 0x7f; // with what seto has left: so that it is as it was
        add(INSTR_CREATE_add(context, low, OPND_CREATE_INT8(overflows)));
        add(INSTR_CREATE_sahf(context));
    }
    add(INSTR_CREATE_jmp_ind(context, slot(return_slot)));
    byte* const end = instrlist_encode(context, code, at, true);
    instrlist_clear_and_destroy(context, code);
    return end;
}

} // namespace

bool make_stubs(bool bursts) {
    usual = static_cast<byte*>(
        dr_nonheap_alloc(stub_bytes, DR_MEMPROT_READ | DR_MEMPROT_WRITE | DR_MEMPROT_EXEC));
    if (usual == nullptr) {
        return false;
    }
    byte* end = encode_stub(usual, false);
    if (end != nullptr && bursts) {
        seldom = end;
        end = encode_stub(seldom, true);
    }
    return end != nullptr && end < usual + stub_bytes &&
           dr_memory_protect(usual, stub_bytes, DR_MEMPROT_READ | DR_MEMPROT_EXEC);
}

app_pc stub() {
    return usual;
}

void insert_way_to_stub(void* context, instrlist_t* block, instr_t* where, const Site* site,
                        Event event, reg_id_t address, reg_id_t scratch, instr_t* back) {
    insert_way(context, block, where, site, event, address, scratch, back, usual);
}

void insert_way_to_turn(void* context, instrlist_t* block, instr_t* where, reg_id_t scratch,
                        instr_t* back) {
    static Site none{};
    insert_way_to_stub(context, block, where, &none, burst_turn, scratch, scratch, back);
}

void insert_seldom_way(void* context, instrlist_t* block, instr_t* where, const Site* site,
                       Event event, instr_t* back) {
    insert_way(context, block, where, site, event, DR_REG_RAX, DR_REG_RAX, back, seldom);
}

} // namespace warren::locality::counts
