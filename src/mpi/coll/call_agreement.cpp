#include "mpi/coll/call_agreement.hpp"

#include <algorithm>

namespace warren::coll {

WaitReason SlotMember::wait_reason() const {
    WaitReason reason;
    reason.call = engine.current_call;
    reason.peer = MPI_PROC_NULL; // all of them
    reason.tag = MPI_ANY_TAG;
    reason.context = communicator.collective_context();
    reason.communicator_name = communicator.name();
    return reason;
}

void CallAgreement::note_unequal(std::uint64_t seen, std::uint64_t operation) {
    // A line of an earlier operation says nothing of this one; one of a later operation, that
    // ranks' operations are not the same.
    const std::uint64_t number = number_in(seen);
    if (number > operation && unequal_ == 0) {
        unequal_ = number == operation + 1 ? seen & signature_mask : unsigned_call;
    }
}

std::uint64_t CallAgreement::other_call_of(int rank) const {
    const std::uint64_t call = this->call();
    const std::uint64_t seen = slot_.memory.announced(rank, call).load(std::memory_order_relaxed);
    const std::uint64_t its = seen & signature_mask;
    return seen >> signature_bits != call || its == signature_ ? 0 : its;
}

bool CallAgreement::all_take_messages() const {
    const std::uint64_t call = this->call();
    for (int rank = 0; rank < slot_.size; ++rank) {
        const std::uint64_t seen =
            slot_.memory.announced(rank, call).load(std::memory_order_relaxed);
        const std::uint64_t its = seen & signature_mask;
        if (seen >> signature_bits == call &&
            ((its & through_slot) != 0 || its >> size_bits != signature_ >> size_bits)) {
            return false;
        }
    }
    return true;
}

bool CallAgreement::differs_at(int rank) {
    const std::uint64_t its = other_call_of(rank);
    unequal_ = unequal_ == 0 ? its : unequal_;
    return its != 0;
}

bool CallAgreement::differs() {
    const std::uint64_t call = this->call();
    if (is_broken()) {
        return true;
    }
    const std::atomic<std::uint64_t>& differing_call =
        slot_.memory.head().differing[call % differing_calls];
    if (differing_call.load(std::memory_order_relaxed) == call) {
        note_unsigned();
    }
    if (unequal_ != 0) {
        return true;
    }
    // If calls differ, two neighbours differ; the one of them that sleeps later sees the other's
    // announcement. In a flat slot both may have left already, so each of the few ranks is looked
    // at.
    const int last = slot_.size - 1;
    for (int step = 1; step <= last; step = slot_.flat || step == last ? step + 1 : last) {
        if (differs_at((slot_.rank + step) % slot_.size)) {
            tell_of_difference();
            return true;
        }
    }
    return false;
}

// If the ranks of a circle differ, some two neighbours do: the later of these sees the other's
// announcement.
bool CallAgreement::tell_sleepers(bool look_at_next, bool look_at_previous) {
    // Before the look, for sleepers and for others that leave (whom their fence doesn't help).
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((!look_at_next || !differs_at(slot_.next())) &&
        (!look_at_previous || !differs_at(slot_.previous()))) [[likely]] {
        return false;
    }
    tell_of_difference();
    return true;
}

// This rank's outcome doesn't change: others, whose calls match, may be about to read its memory.
void CallAgreement::tell_before_leaving() {
    std::atomic_thread_fence(std::memory_order_seq_cst); // as in tell_sleepers()
    if (other_call_of(slot_.next()) != 0 || other_call_of(slot_.previous()) != 0) [[unlikely]] {
        tell_of_difference();
    }
}

void CallAgreement::tell_of_difference() {
    const std::uint64_t call = this->call();
    slot_.memory.head().differing[call % differing_calls].store(call, std::memory_order_relaxed);
    slot_.ring_others();
}

bool CallAgreement::has_left(int rank) const {
    if (has_ended(rank)) [[unlikely]] {
        return true;
    }
    const std::uint32_t call = this->call();
    // Acquire: what it has read before.
    const std::uint64_t seen =
        slot_.memory.announced(rank, call + 1).load(std::memory_order_acquire);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(seen >> signature_bits) - call) > 0;
}

bool CallAgreement::all_have_left() const {
    for (int rank = 0; rank < slot_.size; ++rank) {
        if (rank != slot_.rank && !has_left(rank)) {
            return false;
        }
    }
    return true;
}

bool CallAgreement::has_ended(int rank) const {
    return slot_.node_rank.has_ended(slot_.communicator.endpoint(rank));
}

int CallAgreement::find_ended() const {
    for (int rank = 0; rank < slot_.size; ++rank) {
        if (has_ended(rank)) {
            return rank;
        }
    }
    return -1;
}

bool CallAgreement::is_broken() {
    if (unequal_ == ended_rank) [[unlikely]] {
        return true;
    }
    const std::uint32_t from = slot_.memory.head().broken_from.load(std::memory_order_relaxed);
    if (from == 0 || static_cast<std::int32_t>(call() - from) < 0) {
        return false;
    }
    note_broken();
    return true;
}

void CallAgreement::break_off() {
    const std::uint32_t call = this->call();
    std::atomic<std::uint32_t>& from = slot_.memory.head().broken_from;
    std::uint32_t known = from.load(std::memory_order_relaxed);
    while ((known == 0 || static_cast<std::int32_t>(known - call) > 0) &&
           !from.compare_exchange_weak(known, call, std::memory_order_relaxed)) {
    }
    // From here on settle() of this rank always calls settle_later(), which fails.
    comm::CollectivePlace& place = slot_.place();
    place.all_arrived = 0;
    place.operations = std::max<std::uint64_t>(place.operations, collective_phases);
    slot_.ring_others();
}

} // namespace warren::coll
