#include "mpi/coll/shared.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/futex.hpp"
#include "base/invariant.hpp"
#include "mpi/comm/context_ids.hpp"

namespace warren::coll {

namespace {

constexpr std::uint64_t phases = node::collective_phases;

// Number of latest calls for which the slot's head records that they differ: as many as can be
// waited in at once.
constexpr std::uint64_t differing_calls = 4;

// The slot's own line: how many members there are, where its staging areas are, those calls, and
// the first one from which on ranks' operations are not the same any more; 0: they are.
struct Head {
    std::uint32_t members;
    std::atomic<std::uint32_t> staging[3]; // by kind
    std::atomic<std::uint32_t> broken_from;
    std::atomic<std::uint64_t> differing[differing_calls];
};
static_assert(sizeof(Head) <= line_bytes);

Head& head_of(std::byte* slot) {
    return *reinterpret_cast<Head*>(slot);
}

std::atomic<std::uint32_t>& staging_word(std::byte* slot, StagingKind kind) {
    return head_of(slot).staging[static_cast<std::size_t>(kind)];
}

std::uint32_t words_of(int ranks) {
    return (static_cast<std::uint32_t>(ranks) + 63) / 64;
}

} // namespace

// --- Where things are: one line of the slot itself, a line per rank for what it announces, then
// the phases. A phase has a line of arrivals, the published line, a line per rank, and the bitmaps
// of waiters: two kinds, and of each one for even and one for odd rounds of the phase, so that a
// rank that is late to leave an operation, and then wakes others, never takes the bits of the
// phase's next round.

SharedSlot::Line& SharedSlot::published(std::uint64_t operation) const {
    return *reinterpret_cast<Line*>(phase(operation) + line_bytes);
}

std::atomic<std::uint64_t>* SharedSlot::published_waiters(std::uint64_t operation) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(
        phase(operation) + (2 + static_cast<std::size_t>(node_rank_.size)) * line_bytes +
        operation / phases % 2 * 2 * node::collective_bitmap_bytes(node_rank_.size));
}

std::atomic<std::uint64_t>* SharedSlot::arrived_waiters(std::uint64_t operation) const {
    return published_waiters(operation) +
           node::collective_bitmap_bytes(node_rank_.size) / sizeof(std::uint64_t);
}

WaitReason SharedSlot::reason() const {
    WaitReason reason;
    reason.call = engine_.current_call;
    reason.peer = MPI_PROC_NULL; // all of them
    reason.tag = MPI_ANY_TAG;
    reason.context = communicator_.collective_context();
    reason.communicator_name = communicator_.name();
    return reason;
}

bool SharedSlot::has_given_up(GivesUp gives_up) {
    return gives_up == GivesUp::unequal ? unequal_ != 0
                                        : gives_up == GivesUp::broken && is_broken();
}

template <typename Done>
void SharedSlot::wait_long(Done done, GivesUp gives_up, const void* event) {
    engine_.wait_until(
        [&] { return done() || has_given_up(gives_up); }, reason(), BroughtBy::others, event,
        [&] { return gives_up == GivesUp::unequal ? differs() : has_given_up(gives_up); });
}

// --- Flat

std::uint64_t SharedSlot::flat_wait_for(int rank, std::uint64_t operation, GivesUp gives_up) {
    const std::atomic<std::uint64_t>& arrived = line(operation, rank).stamp;
    std::uint64_t seen = 0;
    // (settle() looks for operations whose lines may belong to later ones.)
    const auto done = [&] {
        seen = arrived.load(std::memory_order_acquire);
        return seen >> signature_bits > operation;
    };
    const auto done_or_left = [&] {
        return done() || (gives_up == GivesUp::never && has_left(rank) && !done());
    };
    for (int spin = 0; spin < flat_spins; ++spin) {
        if (done()) {
            return seen;
        }
        spin_pause();
    }
    wait_long(done_or_left, gives_up);
    return seen;
}

// --- Counted

bool SharedSlot::count_arrival(std::uint64_t operation) {
    // Release: what this rank wrote and read before. Acquire: what all others did, for the last.
    const std::uint64_t own = arrival();
    const std::uint64_t arrived =
        arrivals(operation).fetch_add(own, std::memory_order_acq_rel) + own;
    const std::uint64_t all = arrivals_after(operation);
    WARREN_INVARIANT(beyond(arrived, all) <= 0,
                     "collective slot 3: each rank arrives once per round of a phase");
    if (beyond(arrived, all) != 0) {
        return false;
    }
    if (arrived != all) [[unlikely]] {
        found_different(operation, arrived - all);
    }
    return true;
}

void SharedSlot::found_different(std::uint64_t operation, std::uint64_t excess) {
    unequal_ = unequal_ == 0 ? unsigned_call : unequal_;
    publish(operation);
    ring_others();
    Rank::release_event(&arrivals(operation));
    // After the publication: who waits for arrivals finds the one or the other.
    arrivals(operation).fetch_sub(excess, std::memory_order_release);
}

void SharedSlot::publish(std::uint64_t operation) {
    std::atomic<std::uint64_t>& published_stamp = published(operation).stamp;
    // There is one who publishes, unless calls don't match.
    note_unequal(published_stamp.load(std::memory_order_relaxed), operation);
    WARREN_INVARIANT(unequal_ != 0 || published_stamp.load(std::memory_order_relaxed) >>
                                          signature_bits <= operation,
                     "collective slot 3: published numbers of a phase only grow");
    published_stamp.store(unequal_ == 0 ? stamp(operation) : differing_stamp(operation),
                          std::memory_order_release);
    wake_some(published_waiters(operation));
    Rank::release_event(&published(operation));
}

void SharedSlot::wait_published(std::uint64_t operation) {
    const std::atomic<std::uint64_t>& published_stamp = published(operation).stamp;
    std::uint64_t seen = 0;
    wait_counted(published_waiters(operation), &published(operation), [&] {
        seen = published_stamp.load(std::memory_order_acquire);
        return seen >> signature_bits > operation;
    });
    compare(seen, operation);
}

bool SharedSlot::wait_arrived(std::uint64_t operation) {
    const std::atomic<std::uint64_t>& arrived = arrivals(operation);
    const std::uint64_t all = arrivals_after(operation);
    std::uint64_t seen = 0;
    const auto there = [&] {
        seen = arrived.load(std::memory_order_acquire);
        return beyond(seen, all) >= 0;
    };
    const auto done = [&] { return there() || (is_broken() && all_have_left()); };
    wait_counted(arrived_waiters(operation), &arrived, done, GivesUp::never);
    if (!there()) [[unlikely]] {
        return false;
    }
    if ((beyond(seen, all) == 0 && seen != all) ||
        published(operation).stamp.load(std::memory_order_relaxed) == differing_stamp(operation))
        [[unlikely]] {
        note_unequal(differing_stamp(operation), operation);
    }
    return true;
}

bool SharedSlot::has_left(int rank) const {
    const std::uint32_t call = communicator_.announced_collectives;
    // Acquire: what it has read before.
    const std::uint64_t seen = announced(rank, call + 1).load(std::memory_order_acquire);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(seen >> signature_bits) - call) > 0;
}

bool SharedSlot::all_have_left() const {
    for (int rank = 0; rank < size_; ++rank) {
        if (rank != rank_ && !has_left(rank)) {
            return false;
        }
    }
    return true;
}

void SharedSlot::sign_line(std::uint64_t operation) {
    // The arrival, which follows, is a release.
    line(operation, rank_).stamp.store(stamp(operation), std::memory_order_relaxed);
}

void SharedSlot::compare_lines(std::uint64_t operation) {
    for (int other = 0; other < size_; ++other) {
        if (other != rank_) {
            compare(line(operation, other).stamp.load(std::memory_order_relaxed), operation);
        }
    }
}

void SharedSlot::await_all(std::uint64_t operation) {
    bool arrived = true;
    if (flat_) {
        for (int other = 0; other < size_; ++other) {
            if (other != rank_) {
                const std::uint64_t seen = flat_wait_for(other, operation, GivesUp::never);
                arrived = arrived && seen >> signature_bits > operation;
                compare(seen, operation);
            }
        }
    } else {
        arrived = wait_arrived(operation);
    }
    if (!arrived) [[unlikely]] {
        unequal_ = unequal_ == 0 ? broken_slot : unequal_;
        return;
    }
    place_.all_arrived = operation + 1;
}

void SharedSlot::close() {
    const std::uint64_t operation = place_.operations++;
    if (settle(operation)) {
        arrive(operation);
        await_all(operation);
    }
}

bool SharedSlot::arrive_at_root(std::uint64_t operation) {
    const std::uint64_t own = arrival();
    const std::uint64_t arrived =
        arrivals(operation).fetch_add(own, std::memory_order_acq_rel) + own;
    const std::uint64_t all = arrivals_after(operation);
    if (beyond(arrived, all) == 0) [[unlikely]] { // nobody is the root
        found_different(operation, arrived - all);
    }
    return beyond(arrived, all) == -1;
}

void SharedSlot::wait_for_others(std::uint64_t operation) {
    const std::atomic<std::uint64_t>& arrived = arrivals(operation);
    const std::uint64_t others = arrivals_after(operation) - 1;
    const auto done = [&] { return beyond(arrived.load(std::memory_order_acquire), others) >= 0; };
    if (!done()) {
        // Only the root waits for this, and the last of the others rings it.
        wait_long(done, GivesUp::unequal);
    }
}

template <typename Done>
void SharedSlot::wait_counted(std::atomic<std::uint64_t>* waiters, const void* event, Done done,
                              GivesUp gives_up) {
    if (done() || has_given_up(gives_up)) {
        return;
    }
    // One of several threads of the rank polls for all.
    const bool polls_alone = !node_rank_.lock.shared();
    if (polls_alone && node_rank_.oversubscribed()) {
        const bool waits_for_event = node_rank_.waits_for_event();
        const int turns = fibres() != nullptr ? yields_of_fibre : yields_before_sleep;
        for (int turn = 0; turn < turns; ++turn) {
            give_way();
            if (done()) {
                return;
            }
            if (!waits_for_event) { // which looks before it sleeps
                engine_.progress();
            }
        }
        if (waits_for_event) {
            wait_long(done, gives_up, event);
            return;
        }
    } else if (polls_alone) {
        for (std::uint32_t spin = 0; spin < wait_policy::spins_alone; ++spin) {
            spin_pause();
            if (done()) {
                return;
            }
            engine_.progress();
        }
    }
    // The bit stands before the doorbell is prepared, whose fence therefore orders both before the
    // last look at done(); the waker's side is in wake_some.
    std::atomic<std::uint64_t>& word = waiters[rank_ / 64];
    const std::uint64_t bit = std::uint64_t{1} << (rank_ % 64);
    word.fetch_or(bit, std::memory_order_seq_cst);
    wait_long(done, gives_up);
    if ((word.fetch_and(~bit, std::memory_order_acq_rel) & bit) == 0) {
        wake_some(waiters);
    }
}

// Orders the publication before the search for sleepers, as in Doorbell::ring.
void SharedSlot::fence_as_waker() const {
    if (node_rank_.header().fence_in_wakers.load(std::memory_order_relaxed) != 0) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
}

void SharedSlot::wake_some(std::atomic<std::uint64_t>* waiters) {
    fence_as_waker();
    int woken = 0;
    for (std::uint32_t i = 0; i < words_of(size_); ++i) {
        std::uint64_t bits = waiters[i].load(std::memory_order_relaxed);
        while (bits != 0) {
            const std::uint64_t bit = bits & -bits;
            bits &= ~bit;
            if ((waiters[i].fetch_and(~bit, std::memory_order_acq_rel) & bit) == 0) {
                continue; // another has taken it
            }
            const int sleeper = static_cast<int>(64 * i) + __builtin_ctzll(bit);
            node_rank_.ring(communicator_.world_rank(sleeper));
            if (++woken == wake_fan_out) {
                return;
            }
        }
    }
}

// --- Both

void SharedSlot::note_unequal(std::uint64_t seen, std::uint64_t operation) {
    // A line of an earlier operation says nothing of this one; one of a later operation, that
    // ranks' operations are not the same.
    const std::uint64_t number = seen >> signature_bits;
    if (number > operation && unequal_ == 0) {
        unequal_ = number == operation + 1 ? seen & signature_mask : unsigned_call;
    }
}

std::uint64_t SharedSlot::other_call_of(int rank) const {
    const std::uint64_t call = communicator_.announced_collectives;
    const std::uint64_t seen = announced(rank, call).load(std::memory_order_relaxed);
    const std::uint64_t its = seen & signature_mask;
    return seen >> signature_bits != call || its == signature_ ? 0 : its;
}

bool SharedSlot::all_take_messages() const {
    const std::uint64_t call = communicator_.announced_collectives;
    for (int rank = 0; rank < size_; ++rank) {
        const std::uint64_t seen = announced(rank, call).load(std::memory_order_relaxed);
        const std::uint64_t its = seen & signature_mask;
        if (seen >> signature_bits == call &&
            ((its & through_slot) != 0 || its >> size_bits != signature_ >> size_bits)) {
            return false;
        }
    }
    return true;
}

bool SharedSlot::differs_at(int rank) {
    const std::uint64_t its = other_call_of(rank);
    unequal_ = unequal_ == 0 ? its : unequal_;
    return its != 0;
}

bool SharedSlot::differs() {
    const std::uint64_t call = communicator_.announced_collectives;
    if (is_broken()) {
        return true;
    }
    const std::atomic<std::uint64_t>& differing_call =
        head_of(base_).differing[call % differing_calls];
    if (differing_call.load(std::memory_order_relaxed) == call && unequal_ == 0) {
        unequal_ = unsigned_call;
    }
    if (unequal_ != 0) {
        return true;
    }
    // If calls differ, two neighbours differ; the one of them that sleeps later sees the other's
    // announcement. In a flat slot both may have left already, so each of the few ranks is looked
    // at.
    for (int step = 1; step < size_; step = flat_ || step == size_ - 1 ? step + 1 : size_ - 1) {
        if (differs_at((rank_ + step) % size_)) {
            tell_of_difference();
            return true;
        }
    }
    return false;
}

// If the ranks of a circle differ, some two neighbours do: the later of these sees the other's
// announcement.
bool SharedSlot::tell_sleepers(bool look_at_next, bool look_at_previous) {
    // Before the look, for sleepers and for others that leave (whom their fence doesn't help).
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((!look_at_next || !differs_at((rank_ + 1) % size_)) &&
        (!look_at_previous || !differs_at((rank_ + size_ - 1) % size_))) [[likely]] {
        return false;
    }
    tell_of_difference();
    return true;
}

// This rank's outcome doesn't change: others, whose calls match, may be about to read its memory.
void SharedSlot::tell_before_leaving() {
    std::atomic_thread_fence(std::memory_order_seq_cst); // as in tell_sleepers()
    if (other_call_of((rank_ + 1) % size_) != 0 || other_call_of((rank_ + size_ - 1) % size_) != 0)
        [[unlikely]] {
        tell_of_difference();
    }
}

void SharedSlot::tell_of_difference() {
    const std::uint64_t call = communicator_.announced_collectives;
    head_of(base_).differing[call % differing_calls].store(call, std::memory_order_relaxed);
    ring_others();
}

void SharedSlot::ring_others() const {
    for (int other = 0; other < size_; ++other) {
        if (other != rank_) {
            node_rank_.ring(communicator_.world_rank(other));
        }
    }
}

void SharedSlot::arrive(std::uint64_t operation) {
    if (flat_) {
        flat_arrive(operation);
    } else if (count_arrival(operation)) {
        wake_arrived(operation);
    }
}

void SharedSlot::arrive_aside() {
    const std::uint64_t operation = place_.operations++;
    if (settle(operation)) {
        arrive(operation);
    }
}

void SharedSlot::pass(Tag kind, int root, OpKind op) {
    begin(kind, 0, root, op);
    arrive_aside();
    if (!flat_) {
        tell_before_leaving();
    }
    for (int step : {1, size_ - 1}) {
        node_rank_.ring(communicator_.world_rank((rank_ + step) % size_));
    }
}

void SharedSlot::refuse() {
    signature_ = refused_kind << size_bits;
    announce();
    arrive_aside();
    ring_others();
}

bool SharedSlot::is_broken() {
    const std::uint32_t from = head_of(base_).broken_from.load(std::memory_order_relaxed);
    if (from == 0 || static_cast<std::int32_t>(communicator_.announced_collectives - from) < 0) {
        return false;
    }
    unequal_ = unequal_ == 0 ? broken_slot : unequal_;
    return true;
}

void SharedSlot::break_off() {
    const std::uint32_t call = communicator_.announced_collectives;
    std::atomic<std::uint32_t>& from = head_of(base_).broken_from;
    std::uint32_t known = from.load(std::memory_order_relaxed);
    while ((known == 0 || static_cast<std::int32_t>(known - call) > 0) &&
           !from.compare_exchange_weak(known, call, std::memory_order_relaxed)) {
    }
    // From here on settle() of this rank always calls settle_later(), which fails.
    place_.all_arrived = 0;
    place_.operations = std::max(place_.operations, phases);
    ring_others();
}

bool SharedSlot::settle_later(std::uint64_t operation) {
    std::uint64_t needed = operation + 1 - phases;
    if (operation >= phases && needed <= place_.read_late) [[unlikely]] {
        ++needed; // operation - phases was of a row
    }
    if (place_.all_arrived > needed) {
        return true;
    }
    // All ranks come to the operations of earlier calls. Those of this one can be more than another
    // rank's call has.
    const GivesUp gives_up = needed < first_ ? GivesUp::broken : GivesUp::unequal;
    bool arrived = !is_broken();
    if (flat_) {
        for (int other = 0; other < size_ && arrived; ++other) {
            arrived =
                other == rank_ || flat_wait_for(other, needed, gives_up) >> signature_bits > needed;
        }
    } else if (arrived) {
        const std::uint64_t all = arrivals_after(needed);
        const auto done = [&] {
            arrived = beyond(arrivals(needed).load(std::memory_order_acquire), all) >= 0;
            return arrived;
        };
        wait_counted(arrived_waiters(needed), &arrivals(needed), done, gives_up);
    }
    if (!arrived) [[unlikely]] {
        unequal_ = unequal_ == 0 ? broken_slot : unequal_;
        break_off();
        return false;
    }
    place_.all_arrived = needed + 1;
    WARREN_INVARIANT(place_.all_arrived <= operation,
                     "collective slot 2: a phase is awaited before it is used again");
    return true;
}

// Folds the contributions of all ranks in their order; own: this rank's, null for its line.
void SharedSlot::combine(void* result, const std::byte* own, std::uint64_t operation,
                         MPI_Count count, const datatype::Datatype& type, const Op& op) {
    const auto bytes = static_cast<std::size_t>(count * type.size);
    alignas(line_bytes) std::byte total[shared_bytes];
    for (int r = size_ - 1; r >= 0; --r) {
        if (flat_ && r != rank_) {
            flat_wait(r, operation);
            if (unequal_ != 0) [[unlikely]] {
                return; // it may not have written yet
            }
        }
        const std::byte* operand = r == rank_ && own != nullptr ? own : line(operation, r).data;
        if (r == size_ - 1) {
            std::memcpy(total, operand, bytes);
        } else {
            apply_unlocked(node_rank_, op, operand, total, count, type);
        }
    }
    std::memcpy(result, total, bytes);
}

void SharedSlot::flat_wait_for_all(std::uint64_t operation) {
    ArrivalWait arrivals(*this, 2);
    for (int other = 0; other < size_; ++other) {
        if (other != rank_) {
            arrivals.await(operation, other);
        }
    }
    arrivals.end();
}

void SharedSlot::barrier() {
    begin(Tag::barrier, 0);
    const std::uint64_t operation = place_.operations++;
    if (!settle(operation)) [[unlikely]] {
        return;
    }
    if (flat_) {
        flat_arrive(operation);
        flat_wait_for_all(operation);
    } else if (count_arrival(operation)) {
        publish(operation);
    } else {
        wait_published(operation);
    }
    all_have_arrived(operation);
}

void SharedSlot::allreduce(const void* in, void* out, MPI_Count count,
                           const datatype::Datatype& type, const Op& op) {
    begin(Tag::allreduce, count * type.size, 0, op.kind());
    const std::uint64_t operation = place_.operations++;
    const auto bytes = static_cast<std::size_t>(count * type.size);
    if (!settle(operation)) [[unlikely]] {
        return;
    }
    std::memcpy(line(operation, rank_).data, in, bytes);
    if (flat_) {
        flat_arrive(operation);
        flat_wait_for_all(operation);
        combine(out, static_cast<const std::byte*>(in), operation, count, type, op);
    } else {
        Line& result = published(operation);
        if (count_arrival(operation)) {
            if (unequal_ == 0) [[likely]] {
                combine(result.data, nullptr, operation, count, type, op);
            }
            publish(operation);
        } else {
            wait_published(operation);
        }
        if (unequal_ == 0) [[likely]] {
            std::memcpy(out, result.data, bytes);
        }
    }
    all_have_arrived(operation);
}

void SharedSlot::reduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                        const Op& op, int root) {
    begin(Tag::reduce, count * type.size, root, op.kind());
    const auto bytes = static_cast<std::size_t>(count * type.size);
    to_root(
        root, [&](std::uint64_t operation) { std::memcpy(line(operation, rank_).data, in, bytes); },
        [&](std::uint64_t operation) {
            combine(out, static_cast<const std::byte*>(in), operation, count, type, op);
        });
}

void SharedSlot::bcast(void* data, MPI_Count bytes, int root) {
    begin(Tag::bcast, bytes, root);
    const auto size = static_cast<std::size_t>(bytes);
    const auto message = [&](std::uint64_t operation) {
        return flat_ ? line(operation, root).data : published(operation).data;
    };
    from_root(
        root, [&](std::uint64_t operation) { std::memcpy(message(operation), data, size); },
        [&](std::uint64_t operation) { std::memcpy(data, message(operation), size); });
}

// --- Where data is

std::byte* SharedSlot::find_staging(StagingKind kind) const {
    static_assert(staging::first + node::staging_unit_limit <=
                  std::numeric_limits<std::uint16_t>::max());
    std::uint16_t& known = place_.staging[static_cast<std::size_t>(kind)];
    if (known == staging::undecided) {
        known = static_cast<std::uint16_t>(
            staging::decide(node_rank_.segment, staging_word(base_, kind), kind, size_));
    }
    return known == staging::refused ? nullptr : staging::memory(node_rank_.segment, known);
}

// --- Slots

void SharedSlot::settle_place(const node::Segment& segment, comm::Communicator& communicator) {
    std::atomic<std::uint32_t>& chosen =
        comm::ContextIds::entry(segment, communicator.context()).slot;
    // Acquire: pairs with the exchange below, of who has seen to the slot's memory.
    std::uint32_t slot = chosen.load(std::memory_order_acquire);
    if (slot == 0) {
        const std::uint32_t own = acquire(segment, communicator.size());
        const std::uint32_t choice = own == comm::CollectivePlace::none ? refused : own + 1;
        if (chosen.compare_exchange_strong(slot, choice, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
            slot = choice;
        } else if (choice != refused) {
            give_back(segment, own); // another member was quicker
        }
    }
    communicator.place.slot = slot == refused ? comm::CollectivePlace::none : slot - 1;
}

std::uint32_t SharedSlot::acquire(const node::Segment& segment, int members) {
    node::SegmentHeader& header = segment.header();
    for (std::uint32_t slot = 0; slot < header.collective_slots; ++slot) {
        const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
        std::atomic<std::uint64_t>& word = header.collective_map[slot / 64];
        if ((word.load(std::memory_order_relaxed) & bit) != 0 ||
            // Acquire: pairs with give_back, whose zeros this user must see.
            (word.fetch_or(bit, std::memory_order_acquire) & bit) != 0) {
            continue;
        }
        if (!segment.commit_collective_slot(slot)) {
            word.fetch_and(~bit, std::memory_order_relaxed);
            return comm::CollectivePlace::none;
        }
        // The members learn of the slot from this rank, which orders this before their use.
        head_of(segment.collective_slot(slot)).members = static_cast<std::uint32_t>(members);
        return slot;
    }
    return comm::CollectivePlace::none;
}

void SharedSlot::give_back(const node::Segment& segment, std::uint32_t slot) {
    std::byte* memory = segment.collective_slot(slot);
    for (StagingKind kind : {StagingKind::small, StagingKind::large, StagingKind::wide}) {
        staging::give_back(segment, staging_word(memory, kind), kind,
                           static_cast<int>(head_of(memory).members));
    }
    std::memset(memory, 0, segment.header().collective_slot_bytes);
    segment.header().collective_map[slot / 64].fetch_and(~(std::uint64_t{1} << (slot % 64)),
                                                         std::memory_order_release);
}

} // namespace warren::coll
