// Call agreement: finds collective calls of a communicator's ranks that do not match, and tells all
// ranks that such calls have to do with, instead of giving wrong data or waiting for ever.
//
// A call has a SIGNATURE: the kind of operation, whether it goes through the slot, and bits of its
// size, root and operator, as far as all ranks know these alike. A STAMP says for which operation a
// line was written: the operation's number above the signature.
//
// Invariants
//  1. What says that a rank has arrived, or that data is published, is a stamp. A rank that waits
//     for it compares stamps. If calls do not match, the first rank to see it tells the others, and
//     outcome() is an error instead of wrong data.
//  2. Each rank announces every call before it waits for anybody, also a call that takes messages
//     instead of the slot. It reads its neighbours' announcements before it sleeps (differs()).
//     Ranks that wait for each other in different calls, or one in the slot and one for messages,
//     find that out. A rank that takes messages also looks when its call ends, as it may have
//     waited for nobody; so does a rank that leaves a counted slot before all have arrived. (In a
//     flat slot each arrival rings all ranks, and they look at all announcements.)
//     The rank that finds a difference rings the others, which look again. It no longer waits for
//     what its call needs, but still for what the phase ring's invariant 2 requires, and arrives. A
//     rank that waits until others are through with its memory (PhaseRing::await_all) waits, for
//     one that no longer arrives, until that one has announced a later call.
//  3. Calls that match get their own data, whatever came before. If each of the calls that do not
//     match was one operation, all ranks still count operations alike. Otherwise the counts differ:
//     the first rank to find that marks the slot's head as broken (break_off) and leaves the slot.
//     Every later wait in the slot then ends with an error, until the communicator is freed. A
//     signature contains the call's number, so that an operation of an earlier call is taken for
//     one of this call in at most 1 of 2,048 cases.
//  4. A rank that waits in vain, and finds before it sleeps that a member has ended (mpiexec
//     --keep-going), gives up with an error; the slot is broken from there on.
// Thread rule: as SlotMember.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "mpi/coll/slot_member.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/op/op.hpp"

namespace warren::coll {

// Values that matching calls have in common beside their kind. A negative `bytes`: unknown.
struct InCommon {
    MPI_Count bytes = -1;
    int root = 0;
    OpKind op = OpKind::null;
};

// When a wait ends without what it waits for: calls turn out not to match; the slot turns out to be
// broken; never.
enum class GivesUp : std::uint8_t { unequal, broken, never };

class CallAgreement {
  public:
    CallAgreement(message::Engine& engine, comm::Communicator& communicator)
        : slot_(engine, communicator) {}
    CallAgreement(message::Engine& engine, comm::Communicator& communicator, bool flat)
        : slot_(engine, communicator, flat) {}
    const SlotMember& slot() const { return slot_; }

    // --- This rank's call

    // Announces a call, of which all following operations are: `bytes`, `root` and the operator are
    // the same at all ranks.
    void begin(Tag kind, MPI_Count bytes, int root = 0, OpKind op = OpKind::null) {
        bytes_ = bytes;
        signature_ = signature_of(kind, {bytes, root, op}) | through_slot;
        announce();
    }
    // Announces a call that takes messages, so that ranks in the slot, or in a call with other
    // messages, don't wait for it. Returns the call's number, which identifies its messages.
    std::uint64_t begin_messages(Tag kind, const InCommon& common = {}) {
        bytes_ = common.bytes;
        signature_ =
            bytes_ < 0 ? static_cast<std::uint64_t>(kind) << size_bits : signature_of(kind, common);
        announce();
        return call();
    }
    // Announces that this rank can't do its part of a call, as it alone knows.
    void begin_refused() {
        signature_ = refused_kind << size_bits;
        announce();
    }
    std::uint64_t signature() const { return signature_; }
    // The slot's first operation of the call that has begun.
    std::uint64_t first_operation() const { return first_; }

    // MPI_ERR_TRUNCATE: another rank's call had another size, root or operator; MPI_ERR_OTHER: it
    // was another operation; MPI_ERR_PROC_ABORTED: a rank has ended. What this rank has received
    // has no meaning then. At the end of a call.
    Error outcome() { return unequal_ == 0 ? Error() : inequality(); }
    bool unequal() const { return unequal_ != 0; }

    // --- Stamps: an operation's number + 1 above the signature

    static std::uint64_t number_in(std::uint64_t stamp) { return stamp >> signature_bits; }
    // Whether a line with this stamp says that the operation, or a later one, has come.
    static bool has_come(std::uint64_t stamp, std::uint64_t operation) {
        return number_in(stamp) > operation;
    }
    std::uint64_t stamp(std::uint64_t operation) const {
        return (operation + 1) << signature_bits | signature_;
    }
    // The stamp of an operation of calls that differ.
    static std::uint64_t differing_stamp(std::uint64_t operation) {
        return (operation + 1) << signature_bits | differing;
    }
    // Compares the stamp of an operation that another rank has entered with this call.
    void compare(std::uint64_t seen, std::uint64_t operation) {
        if (seen != stamp(operation)) [[unlikely]] {
            note_unequal(seen, operation);
        }
    }
    void note_unequal(std::uint64_t seen, std::uint64_t operation);
    // As compare(), where only a matching call may go on, and a line may be without a signature.
    bool agrees(std::uint64_t seen, std::uint64_t operation) {
        if (seen != stamp(operation)) [[unlikely]] {
            note_unequal(seen, operation);
            note_unsigned();
        }
        return unequal_ == 0;
    }
    // A call that differs, nobody knows how.
    void note_unsigned() { unequal_ = unequal_ == 0 ? unsigned_call : unequal_; }
    void note_broken() { unequal_ = unequal_ == 0 ? broken_slot : unequal_; }

    // --- Announcements

    // In a call that takes messages: whether all ranks that have announced theirs take messages, in
    // the same operation. Then no rank uses the slot for it.
    bool all_take_messages() const;
    // Whether a rank (or, without an argument, any that this one must look at) has announced
    // something else for this call. What this rank waits for may then never come.
    bool differs_at(int rank);
    bool differs();
    // In a call that takes messages, before this rank sleeps and at the call's end: if a neighbour
    // has announced something else, rings the ranks that were asleep before this call began. False:
    // neither neighbour has yet. A neighbour that has sent a message of the call need not be looked
    // at.
    bool tell_sleepers(bool look_at_next = true, bool look_at_previous = true);
    // In a counted slot, of a rank that may not have slept: as tell_sleepers().
    void tell_before_leaving();
    // Whether a rank, or all others, have come to a later call than this one of ours: they read
    // nothing of this one.
    bool has_left(int rank) const;
    bool all_have_left() const;

    // --- Members that have ended, while others go on

    // The first of them; -1: none has.
    int ended_member() const {
        return slot_.node_rank.header().ended_ranks.load(std::memory_order_acquire) == 0
                   ? -1
                   : find_ended();
    }
    bool has_ended(int rank) const;
    // This rank waits for what an ended one has not done.
    void note_ended() { unequal_ = unequal_ == 0 ? ended_rank : unequal_; }

    // --- Broken slots

    // Whether the ranks' operations are known to differ (invariant 3). If so, this call is unequal.
    bool is_broken();
    // From here on the phase ring lets this rank into no operation (PhaseRing::settle).
    [[gnu::cold]] void break_off();

    bool has_given_up(GivesUp gives_up) {
        return gives_up == GivesUp::unequal ? unequal_ != 0
                                            : gives_up == GivesUp::broken && is_broken();
    }

  private:
    static constexpr int signature_bits = 16;
    static constexpr std::uint64_t signature_mask = (1 << signature_bits) - 1;
    static constexpr int size_bits = 12;
    static constexpr std::uint64_t through_slot = 1 << (size_bits - 1);
    // Kinds of no operation: a call that its rank has refused, and one that differs somehow.
    static constexpr std::uint64_t refused_kind = 14;
    static constexpr std::uint64_t differing = std::uint64_t{15} << size_bits;
    // Instead of a signature: a call that differs, nobody knows how; and the slot is broken.
    static constexpr std::uint64_t unsigned_call = 1 << signature_bits;
    static constexpr std::uint64_t broken_slot = unsigned_call + 1;
    static constexpr std::uint64_t ended_rank = unsigned_call + 2;

    // The number of this rank's call; while it is not announced yet, of the one before.
    std::uint32_t call() const { return slot_.communicator.announced_collectives; }
    // Signature of this rank's next call, that takes messages: a few bits of what it has in common
    // with others, by multiplication with the golden ratio.
    std::uint64_t signature_of(Tag kind, const InCommon& common) const {
        const std::uint64_t all = (static_cast<std::uint64_t>(common.op) << 40) +
                                  static_cast<std::uint64_t>(common.bytes) * 64 +
                                  static_cast<unsigned>(common.root) +
                                  // Far from what another root or size adds.
                                  call() * 0xd6e8feb86659fd93;
        return static_cast<std::uint64_t>(kind) << size_bits |
               all * 0x9e3779b97f4a7c15 >> (64 - size_bits + 1);
    }
    // An announcement: the call's number, modulo 2^32, above its signature.
    void announce() {
        const std::uint64_t call = ++slot_.communicator.announced_collectives;
        // The fences of who sleeps and who rings order it before looks at the others'. Release:
        // has_left().
        slot_.memory.announced(slot_.rank, call)
            .store(call << signature_bits | signature_, std::memory_order_release);
        first_ = slot_.place().operations;
    }
    // The announcement of a rank for this rank's call, if that is something else; 0 otherwise.
    std::uint64_t other_call_of(int rank) const;
    void tell_of_difference();
    [[gnu::cold]] int find_ended() const;
    [[gnu::cold]] Error inequality();

    const SlotMember slot_;
    MPI_Count bytes_ = 0;         // of this rank's call
    std::uint64_t signature_ = 0; // of this rank's call
    std::uint64_t first_ = 0;     // the first operation of this rank's call
    std::uint64_t unequal_ = 0;   // the first other signature that was seen
};

// Waits until done(), or for the wait to be given up. `event`: who brings done() about releases it,
// too (Rank::wait).
template <typename Done>
void wait_long(CallAgreement& call, Done done, GivesUp gives_up, const void* event = nullptr) {
    const SlotMember& slot = call.slot();
    slot.engine.wait_until([&] { return done() || call.has_given_up(gives_up); },
                           slot.wait_reason(), BroughtBy::others, event,
                           [&] {
                               // A rank that has ended may have done its part before.
                               if (call.ended_member() >= 0 && !done()) [[unlikely]] {
                                   call.note_ended();
                               }
                               return gives_up == GivesUp::unequal ? call.differs()
                                                                   : call.has_given_up(gives_up);
                           });
}

} // namespace warren::coll
