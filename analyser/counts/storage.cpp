#include "analyser/counts/storage.hpp"

namespace warren::locality::counts {
namespace {

reg_id_t segment;
uint first;

opnd_t word_at(int offset, opnd_size_t size) {
    return opnd_create_far_base_disp(segment, DR_REG_NULL, DR_REG_NULL, 0, offset, size);
}

int offset_of(Slot which) {
    return static_cast<int>(first + which * sizeof(void*));
}

} // namespace

bool start_storage() {
    return dr_raw_tls_calloc(&segment, &first, slots, 0);
}

opnd_t slot(Slot which) {
    return word_at(offset_of(which), OPSZ_8);
}

opnd_t half_of_budget() {
    return word_at(offset_of(budget_slot) + 4, OPSZ_4);
}

void** own_slots() {
    return reinterpret_cast<void**>(static_cast<byte*>(dr_get_dr_segment_base(segment)) + first);
}

} // namespace warren::locality::counts
