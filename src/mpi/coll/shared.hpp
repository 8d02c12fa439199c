// Shared collectives: small collective operations of a communicator whose ranks are all on one
// node, made in the communicator's collective slot of the node segment instead of by messages.
//
// A slot has a ring of phases; operation number s of the communicator uses phase s mod phases.
// Every rank ARRIVES exactly once in every operation, and no later than it leaves it:
//     at entry, in operations that nobody leaves before all have come (barrier, allreduce);
//     a broadcast's root when it has published, the others when they have read;
//     a reduction's leaves when they have contributed, its root when it has combined.
// A slot is flat or counted. The node's load and the communicator's size decide, so all ranks
// choose the same:
//  * flat (few ranks, a processor for each): each rank has a line per phase with its arrival and
//    contribution, and reads the others' lines itself. An operation costs one cache line transfer.
//  * counted (many ranks, or more than processors): contributions in lines, arrivals counted; the
//    last arriver combines and publishes. Each rank is scheduled once per operation, the minimum.
//    Waiters yield first, then sleep, and wake each other as a tree. Fibres wait for an event
//    instead of sleeping, and continue all at once (Rank::release_event).
//
// Invariants
//  1. A rank that has arrived in s has left all operations before s; in a row: before s - 1.
//  2. What operation s writes into its phase was last read in operation s - phases, or before the
//     reader's arrival in the one after that. A writer of data therefore first makes sure that all
//     have arrived in s - phases + 1 (settle). An operation that waits for all gives that knowledge
//     for free. It follows that nobody arrives in s before all have arrived in s - phases, and that
//     no line says a later operation than the one that a rank looks for in it. The operations of a
//     row (in_row), of which each is read after the arrival in the next, are waited for by one
//     arrival more.
//  3. Counted: arrivals of phase p, modulo 2^32, are size · (operations of p that are complete)
//     plus those of the one under way. Above them ranks add up shares of their calls' signatures,
//     which make nothing if all are the same: the last to arrive finds out whether calls match, and
//     tells all (found_different). Published numbers of a phase only grow.
//  4. Counted: a waiter's bit is in a bitmap for its operation and what it waits for, "published"
//     or "arrived", and a bit is only taken by who knows that this has happened; so a waiter whose
//     bit was taken finds its condition true, leaves, and wakes the next ones.
//  5. A slot's memory is zero when a communicator gets it: the last member of a communicator that
//     ends clears it, and gives its staging areas back.
//  6. Data too large for lines is in a staging area (staging.hpp), in the part of the operation's
//     phase, for which 2 holds as it does for lines.
//  7. What says that a rank has arrived, or that data is published, also says for which operation,
//     size and root (its stamp). A rank that waits for it compares stamps. If calls do not match,
//     the first rank to see it tells the others, and outcome() is an error instead of wrong data.
//  8. Each rank announces every call before it waits for anybody, also a call that takes messages
//     instead of the slot. It reads its neighbours' announcements before it sleeps (differs()).
//     Ranks that wait for each other in different calls, or one in the slot and one for messages,
//     find that out. A rank that takes messages also looks when its call ends, as it may have
//     waited for nobody; so does a rank that leaves a counted slot before all have arrived. (In a
//     flat slot each arrival rings all ranks, and they look at all announcements.)
//     The rank that finds a difference rings the others, which look again. It no longer waits for
//     what its call needs, but still for what 2 requires, and arrives. A rank that waits until
//     others are through with its memory (await_all) waits, for one that no longer arrives, until
//     that one has announced a later call.
//  9. Calls that match get their own data, whatever came before. If each of the calls that do not
//     match was one operation, all ranks still count operations alike. Otherwise the counts differ:
//     the first rank to find that marks the slot's head as broken (break_off) and leaves the slot.
//     Every later wait in the slot then ends with an error, until the communicator is freed. A
//     signature contains the call's number, so that an operation of an earlier call is taken for
//     one of this call in at most 1 of 2,048 cases.
// Thread rule: one operation at a time per communicator and rank (the standard's rule), under the
// rank's lock, which waits release; ranks are processes or threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/invariant.hpp"
#include "mpi/coll/staging.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/coll/tuning.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/op/op.hpp"

namespace warren::coll {

inline constexpr std::size_t line_bytes = node::cache_line_bytes;

// Operands up to this size go through the slot.
inline constexpr MPI_Count shared_bytes = 56;

// Values that matching calls have in common beside their kind. A negative `bytes`: unknown.
struct InCommon {
    MPI_Count bytes = -1;
    int root = 0;
    OpKind op = OpKind::null;
};

class SharedSlot {
  public:
    // For one call, or several. For a communicator that has a place (`has_place`).
    SharedSlot(message::Engine& engine, comm::Communicator& communicator)
        : engine_(engine),
          node_rank_(engine.rank()),
          communicator_(communicator),
          place_(communicator.place),
          rank_(communicator.rank()),
          size_(communicator.size()),
          flat_(is_flat(node_rank_, size_)),
          base_(node_rank_.segment.collective_slot(communicator.place.slot)),
          phases_(base_ + node::collective_head_bytes(node_rank_.size)),
          phase_bytes_(node::collective_phase_bytes(node_rank_.size)) {}
    static bool is_flat(const Rank& rank, int ranks) {
        return !rank.oversubscribed() && ranks <= flat_ranks;
    }
    static bool has_place(const comm::Communicator& communicator) {
        return communicator.place.slot < comm::CollectivePlace::unknown;
    }
    // The same, after it has been found out: the first member that asks takes a slot for all.
    static bool find_place(message::Engine& engine, comm::Communicator& communicator) {
        if (communicator.place.slot == comm::CollectivePlace::unknown) [[unlikely]] {
            settle_place(engine.rank().segment, communicator);
        }
        return has_place(communicator);
    }

    void barrier();
    // `count` elements of a contiguous type, at most shared_bytes. `in` and `out` may be the same.
    // Combined in the order of ranks.
    void allreduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                   const Op& op);
    // `out` only at the root.
    void reduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                const Op& op, int root);
    void bcast(void* data, MPI_Count bytes, int root);

    // MPI_ERR_TRUNCATE: another rank's call had another size, root or operator; MPI_ERR_OTHER: it
    // was another operation. What this rank has received has no meaning then. At the end of a call.
    Error outcome() { return unequal_ == 0 ? Error() : inequality(); }
    bool unequal() const { return unequal_ != 0; }

    // Announces a call that takes messages, so that ranks in the slot, or in a call with other
    // messages, don't wait for it. Returns the call's number, which identifies its messages.
    std::uint64_t begin_messages(Tag kind, const InCommon& common = {}) {
        bytes_ = common.bytes;
        signature_ =
            bytes_ < 0 ? static_cast<std::uint64_t>(kind) << size_bits : signature_of(kind, common);
        announce();
        return communicator_.announced_collectives;
    }
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
    bool is_next(int rank) const { return rank == (rank_ + 1) % size_; }
    bool is_previous(int rank) const { return rank_ == (rank + 1) % size_; }
    // The arrival, in the slot, of a call that has not taken it, where others did.
    void arrive_aside();
    // This rank's part of a call can't be done, as it alone knows: tells the others.
    void refuse();
    // A call of no bytes, in which nobody waits: unless others have some.
    void pass(Tag kind, int root, OpKind op);

    // --- What operations on staging areas are made of (shared_data.cpp). Functions get the
    // operation's number. Those that read call await() for each rank whose data they look at. (They
    // are taken by reference: a copy of what has just been stored is slow, see
    // src/mpi/CMakeLists.txt.)

    // Signature of the next operations, all of one call: `bytes`, `root` and the operator are the
    // same at all ranks.
    void begin(Tag kind, MPI_Count bytes, int root = 0, OpKind op = OpKind::null) {
        bytes_ = bytes;
        signature_ = signature_of(kind, {bytes, root, op}) | through_slot;
        announce();
    }

    // Everybody writes, and reads when all have written; in a counted slot the last one to write
    // does `last` before anybody reads. `read` awaits all ranks.
    template <typename Write, typename Last, typename Read>
    void together(const Write& write, const Last& last, const Read& read);
    // As above, in a row of operations of a flat slot: writes one, then reads the one before, which
    // the others have written meanwhile; `first`: there is none before. After the row: its last.
    template <typename Write, typename Read>
    void in_row(bool first, const Write& write, const Read& read);
    template <typename Read>
    void end_row(const Read& read);
    // The root writes, the others read.
    template <typename Write, typename Read>
    void from_root(int root, const Write& write, const Read& read);
    // The others write, the root reads: it awaits all others.
    template <typename Write, typename Read>
    void to_root(int root, const Write& write, const Read& read);

    // Nothing in a counted slot, where all have come before anybody reads.
    void await(std::uint64_t operation, int rank) {
        if (flat_ && rank != rank_) {
            flat_wait(rank, operation);
        }
    }
    // ArrivalWait: one operation of a flat slot in which all ranks wait for all. Construct it,
    // await each other rank, then call end().
    //
    // Polling a line while its owner is about to write it steals the line and delays the write. A
    // rank that had to wait therefore pauses before its first poll in the next delayed_operations
    // operations, then polls at once again.
    class ArrivalWait {
      public:
        // `pauses`: length of the delay, in spin_pause() calls.
        ArrivalWait(SharedSlot& slot, int pauses)
            : slot_(slot), polls_at_once_(slot.place_.delayed_polls == 0) {
            if (!polls_at_once_) {
                --slot.place_.delayed_polls;
                for (int pause = 0; pause < pauses; ++pause) {
                    spin_pause();
                }
            }
        }
        void await(std::uint64_t operation, int rank) {
            waited_ |= slot_.flat_wait(rank, operation);
        }
        void end() {
            if (waited_ && polls_at_once_) {
                slot_.place_.delayed_polls = delayed_operations;
            }
        }

      private:
        SharedSlot& slot_;
        const bool polls_at_once_;
        bool waited_ = false;
    };
    // Waits until all have arrived in an operation in which this rank has, whatever their calls
    // are: those that match may be reading what is this rank's.
    void await_all(std::uint64_t operation);
    // Nobody goes on before all have come here.
    void close();
    // For lines with data that only a matching call may use. sign(): signs this rank's line.
    // agrees(): whether the line of a rank that has arrived belongs to a matching call.
    void sign(std::uint64_t operation) {
        if (!flat_) {
            sign_line(operation);
        }
    }
    bool agrees(std::uint64_t operation, int rank) {
        const std::uint64_t seen = line(operation, rank).stamp.load(std::memory_order_relaxed);
        if (seen != stamp(operation)) [[unlikely]] {
            note_unequal(seen, operation);
            unequal_ = unequal_ == 0 ? unsigned_call : unequal_; // a counted line that isn't signed
        }
        return unequal_ == 0;
    }
    // Waits until the phase of the operation may be written: invariant 2. False: it may not, and
    // this rank takes no part in the operation; the slot is broken.
    [[nodiscard]] bool settle(std::uint64_t operation) {
        return operation + 1 < node::collective_phases ||
               // Mostly that is known already, for rows of operations, too.
               place_.all_arrived > operation + 2 - node::collective_phases ||
               settle_later(operation);
    }

    bool flat() const { return flat_; }
    // Up to shared_bytes of a rank's data.
    std::byte* line_data(std::uint64_t operation, int rank) const {
        return line(operation, rank).data;
    }
    // In a counted slot: the same of the last to come, which the others read.
    std::byte* published_data(std::uint64_t operation) const { return published(operation).data; }
    // On some processors a cache line moves to its last reader, and its previous writer is slow to
    // get it back. Two ranks that exchange data in a staging area therefore swap rows each time the
    // phases wrap around, so that each writes where it last read.
    static bool exchanges_places(std::uint64_t operation) {
        return (operation / node::collective_phases & 1) != 0;
    }
    // The row in which a rank writes for all others.
    int alternating_row(std::uint64_t operation, int rank) const {
        return is_pair() && exchanges_places(operation) ? 1 - rank : rank;
    }
    bool is_pair() const { return flat_ && size_ == 2; }
    // The first operation of the call that has begun.
    std::uint64_t first_operation() const { return first_; }
    // The communicator's staging area, or null: the same at all ranks.
    std::byte* staging_area(StagingKind kind) const {
        const std::uint32_t known = place_.staging[static_cast<std::size_t>(kind)];
        if (known >= staging::first) [[likely]] {
            return staging::memory(node_rank_.segment, known);
        }
        return find_staging(kind);
    }

    // MPI_Comm_split: returns the new communicator's context, 0 when none is left. `members`: the
    // ranks of this colour, ordered by key, then rank; none for MPI_UNDEFINED. (shared_split.cpp)
    std::uint32_t split(int colour, int key, std::vector<int>& members);

    // Takes a free slot of the node for a communicator of `members` ranks; CollectivePlace::none
    // when none is free, or memory is out; and gives it back, when all of them have ended their
    // use.
    static std::uint32_t acquire(const node::Segment& segment, int members);
    static void give_back(const node::Segment& segment, std::uint32_t slot);
    // In a context's entry: there was no slot for it.
    static constexpr std::uint32_t refused = 0xffffffff;

  private:
    friend class ShortBlocks;

    // One cache line: the data first, for its alignment.
    struct Line {
        std::byte data[shared_bytes];
        std::atomic<std::uint64_t> stamp; // of the operation that it belongs to
    };
    static_assert(sizeof(Line) == node::cache_line_bytes);
    struct SplitLine;

    [[gnu::cold]] static void settle_place(const node::Segment& segment,
                                           comm::Communicator& communicator);
    SplitLine& split_line(std::uint64_t operation, int rank) const;
    void deal_out(std::uint64_t operation);

    // Contents of a line: an operation's number + 1 above the signature of the call, which is the
    // kind of operation above a bit that says whether it goes through the slot, and bits of its
    // size, root and operator, as far as all ranks know these alike.
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
    // Signature of this rank's next call, that takes messages: a few bits of what it has in common
    // with others, by multiplication with the golden ratio.
    std::uint64_t signature_of(Tag kind, const InCommon& common) const {
        const std::uint64_t all = (static_cast<std::uint64_t>(common.op) << 40) +
                                  static_cast<std::uint64_t>(common.bytes) * 64 +
                                  static_cast<unsigned>(common.root) +
                                  // Far from what another root or size adds.
                                  communicator_.announced_collectives * 0xd6e8feb86659fd93;
        return static_cast<std::uint64_t>(kind) << size_bits |
               all * 0x9e3779b97f4a7c15 >> (64 - size_bits + 1);
    }

    // Announcements of a rank: its last calls, their numbers, modulo 2^32, above their signatures.
    // More of them than others can be ahead, who wait for it in an operation of theirs (2).
    static constexpr std::uint64_t announced_calls = 8;
    std::atomic<std::uint64_t>& announced(int rank, std::uint64_t call) const {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(
            base_ +
            (1 + static_cast<std::size_t>(rank)) * node::cache_line_bytes)[call % announced_calls];
    }
    void announce() {
        const std::uint64_t call = ++communicator_.announced_collectives;
        // The fences of who sleeps and who rings order it before looks at the others'. Release:
        // has_left().
        announced(rank_, call)
            .store(call << signature_bits | signature_, std::memory_order_release);
        first_ = place_.operations;
    }
    // The announcement of a rank for this rank's call, if that is something else; 0 otherwise.
    std::uint64_t other_call_of(int rank) const;
    void tell_of_difference();
    void ring_others() const;
    void fence_as_waker() const;
    void arrive(std::uint64_t operation);
    [[gnu::cold]] void found_different(std::uint64_t operation, std::uint64_t excess);
    std::uint64_t stamp(std::uint64_t operation) const {
        return (operation + 1) << signature_bits | signature_;
    }
    static std::uint64_t differing_stamp(std::uint64_t operation) {
        return (operation + 1) << signature_bits | differing;
    }
    void compare(std::uint64_t seen, std::uint64_t operation) {
        if (seen != stamp(operation)) [[unlikely]] {
            note_unequal(seen, operation);
        }
    }
    void note_unequal(std::uint64_t seen, std::uint64_t operation);
    // All have arrived in an operation that waits for them, unless the wait was given up.
    void all_have_arrived(std::uint64_t operation) {
        if (unequal_ == 0) [[likely]] {
            place_.all_arrived = operation + 1;
            WARREN_INVARIANT(place_.all_arrived <= place_.operations,
                             "collective slot 2: all have arrived only where this rank has");
        }
    }
    // Whether a rank that has waited for others before its arrival may arrive.
    bool may_arrive(std::uint64_t operation) { return unequal_ == 0 || settle(operation); }
    // Counted: what a root compares.
    void sign_line(std::uint64_t operation);
    void compare_lines(std::uint64_t operation);
    [[gnu::cold]] Error inequality();

    bool settle_later(std::uint64_t operation);
    // Whether the ranks' operations are known to differ (invariant 9). If so, it sets unequal_.
    bool is_broken();
    [[gnu::cold]] void break_off();

    // Whether a rank has come to a later call than this one of ours: it reads nothing of this one.
    bool has_left(int rank) const;
    bool all_have_left() const;

    // When a wait ends without what it waits for: calls turn out not to match; the slot turns out
    // to be broken; never.
    enum class GivesUp : std::uint8_t { unequal, broken, never };

    // Flat.
    void flat_arrive(std::uint64_t operation) {
        WARREN_INVARIANT(line(operation, rank_).stamp.load(std::memory_order_relaxed) >>
                             signature_bits <= operation,
                         "collective slot 1: a rank arrives once in each operation, in order");
        // Pairs with the acquire in flat_wait: who sees the arrival sees the data, and that
        // everything before is done.
        line(operation, rank_).stamp.store(stamp(operation), std::memory_order_release);
        for (int other = 0; other < size_; ++other) {
            if (other != rank_) {
                node_rank_.ring(communicator_.world_rank(other));
            }
        }
        own_line_soon(&line(operation + 1, rank_));
    }
    // In a flat slot: all wait for all.
    void flat_wait_for_all(std::uint64_t operation);
    // Whether it was not there yet.
    bool flat_wait(int rank, std::uint64_t operation) {
        std::uint64_t seen = line(operation, rank).stamp.load(std::memory_order_acquire);
        const bool waits = seen >> signature_bits <= operation;
        if (waits) {
            seen = flat_wait_for(rank, operation);
        }
        compare(seen, operation);
        return waits;
    }
    // Prefetches for writing the line that this rank writes next, which the others have read,
    // while this rank waits for something else.
    static void own_line_soon(const void* line) {
#if defined(__x86_64__)
        asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
        __builtin_prefetch(line, 1);
#endif
    }
    // As above, for an operation of an earlier call; gives what the rank's line says.
    std::uint64_t flat_wait_for(int rank, std::uint64_t operation,
                                GivesUp gives_up = GivesUp::unequal);
    // Counted.
    bool count_arrival(std::uint64_t operation); // true: as the last
    void publish(std::uint64_t operation);
    void wait_published(std::uint64_t operation);
    bool wait_arrived(std::uint64_t operation); // false: the slot is broken, and all have left
    void wait_for_others(std::uint64_t operation);
    // In a counted slot, of a rank that may not have slept: as tell_sleepers().
    void tell_before_leaving();
    bool arrive_at_root(std::uint64_t operation);
    void wake_arrived(std::uint64_t operation) {
        wake_some(arrived_waiters(operation));
        Rank::release_event(&arrivals(operation));
    }
    // `event`: who wakes the waiters releases it, too.
    template <typename Done>
    void wait_counted(std::atomic<std::uint64_t>* waiters, const void* event, Done done,
                      GivesUp gives_up = GivesUp::unequal);
    template <typename Done>
    void wait_long(Done done, GivesUp gives_up, const void* event = nullptr);
    bool has_given_up(GivesUp gives_up);
    void wake_some(std::atomic<std::uint64_t>* waiters);

    [[gnu::cold]] std::byte* find_staging(StagingKind kind) const;
    void combine(void* result, const std::byte* own, std::uint64_t operation, MPI_Count count,
                 const datatype::Datatype& type, const Op& op);
    WaitReason reason() const;

    std::byte* phase(std::uint64_t operation) const {
        return phases_ + operation % node::collective_phases * phase_bytes_;
    }
    Line& line(std::uint64_t operation, int rank) const {
        return *reinterpret_cast<Line*>(phase(operation) + (2 + static_cast<std::size_t>(rank)) *
                                                               node::cache_line_bytes);
    }
    // Their number in the lower half; above it, the sum of what calls' signatures add: ranks'
    // weights times a number made of the signature, and the first rank's is minus all others'. So
    // it is 0 of calls that match; of calls that differ once in millions.
    std::atomic<std::uint64_t>& arrivals(std::uint64_t operation) const {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(phase(operation));
    }
    std::uint64_t arrival() const {
        const auto ranks = static_cast<std::uint64_t>(size_);
        const std::uint64_t weight =
            rank_ == 0 ? 1 - ranks * ranks : 2 * static_cast<std::uint64_t>(rank_) + 1;
        std::uint64_t mixed = signature_ * 0x9e3779b97f4a7c15;
        mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93 >> 32;
        return (weight * mixed << 32) + 1;
    }
    // Arrivals beyond `expected`, modulo 2^32; negative: arrivals that are missing.
    static std::int32_t beyond(std::uint64_t arrived, std::uint64_t expected) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(arrived) -
                                         static_cast<std::uint32_t>(expected));
    }
    Line& published(std::uint64_t operation) const;
    std::atomic<std::uint64_t>* published_waiters(std::uint64_t operation) const;
    std::atomic<std::uint64_t>* arrived_waiters(std::uint64_t operation) const;
    // The phase's arrivals once all have arrived in the operation, if their calls match.
    std::uint64_t arrivals_after(std::uint64_t operation) const {
        return (operation / node::collective_phases + 1) * static_cast<std::uint64_t>(size_);
    }

    message::Engine& engine_;
    Rank& node_rank_;
    comm::Communicator& communicator_;
    comm::CollectivePlace& place_;
    const int rank_;
    const int size_;
    const bool flat_;
    std::byte* const base_;
    std::byte* const phases_;
    const std::size_t phase_bytes_;
    MPI_Count bytes_ = 0;         // of this rank's call
    std::uint64_t signature_ = 0; // of this rank's call
    std::uint64_t first_ = 0;     // the first operation of this rank's call
    std::uint64_t unequal_ = 0;   // the first other one that was seen
};

template <typename Write, typename Last, typename Read>
void SharedSlot::together(const Write& write, const Last& last, const Read& read) {
    const std::uint64_t operation = place_.operations++;
    if (!settle(operation)) [[unlikely]] {
        return;
    }
    write(operation);
    if (flat_) {
        flat_arrive(operation);
    } else if (count_arrival(operation)) {
        last(operation);
        publish(operation);
    } else {
        wait_published(operation);
    }
    if (unequal_ == 0) [[likely]] {
        read(operation);
        all_have_arrived(operation);
    }
}

template <typename Write, typename Read>
void SharedSlot::in_row(bool first, const Write& write, const Read& read) {
    const std::uint64_t operation = place_.operations++;
    if (!settle(operation)) [[unlikely]] {
        return;
    }
    write(operation);
    flat_arrive(operation);
    place_.read_late = operation + 1;
    if (!first) {
        read(operation - 1);
        all_have_arrived(operation - 1);
    }
}

template <typename Read>
void SharedSlot::end_row(const Read& read) {
    read(place_.operations - 1);
    all_have_arrived(place_.operations - 1);
}

template <typename Write, typename Read>
void SharedSlot::from_root(int root, const Write& write, const Read& read) {
    const std::uint64_t operation = place_.operations++;
    if (rank_ == root) {
        if (!settle(operation)) [[unlikely]] {
            return;
        }
        write(operation);
        if (!flat_) {
            publish(operation);
        }
    } else {
        if (flat_) {
            flat_wait(root, operation);
        } else {
            wait_published(operation);
        }
        if (unequal_ == 0) [[likely]] {
            if (is_pair()) {
                place_.all_arrived = operation; // invariant 1
            }
            read(operation);
        } else if (!settle(operation)) {
            return;
        }
    }
    if (flat_) {
        flat_arrive(operation);
    } else {
        if (count_arrival(operation)) {
            wake_arrived(operation);
        }
        tell_before_leaving();
    }
}

template <typename Write, typename Read>
void SharedSlot::to_root(int root, const Write& write, const Read& read) {
    const std::uint64_t operation = place_.operations++;
    if (rank_ != root) {
        if (!settle(operation)) [[unlikely]] {
            return;
        }
        write(operation);
        if (flat_) {
            flat_arrive(operation);
        } else {
            sign_line(operation);
            if (arrive_at_root(operation)) {
                node_rank_.ring(communicator_.world_rank(root));
            }
            tell_before_leaving();
        }
        return;
    }
    if (flat_) {
        read(operation);
        if (!may_arrive(operation)) [[unlikely]] {
            return;
        }
        flat_arrive(operation);
    } else {
        wait_for_others(operation);
        compare_lines(operation);
        if (unequal_ == 0) [[likely]] {
            read(operation);
        } else if (!settle(operation)) {
            return;
        }
        count_arrival(operation);
        wake_arrived(operation);
    }
    all_have_arrived(operation);
}

// Combines with an operation that may be the program's: it runs without the rank's lock, since it
// may call MPI. As in Op.
inline void apply_unlocked(Rank& rank, const Op& op, const void* in, void* inout, MPI_Count count,
                           const datatype::Datatype& type) {
    if (op.predefined()) [[likely]] {
        op.apply(in, inout, count, type);
        return;
    }
    rank.lock.unlock();
    op.apply(in, inout, count, type);
    rank.lock.lock();
}
inline void combine_unlocked(Rank& rank, const Op& op, const void* left, const void* right,
                             void* result, MPI_Count count, const datatype::Datatype& type) {
    if (op.predefined()) [[likely]] {
        op.combine(left, right, result, count, type);
        return;
    }
    rank.lock.unlock();
    op.combine(left, right, result, count, type);
    rank.lock.lock();
}

} // namespace warren::coll
