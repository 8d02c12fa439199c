// Phase ring: the operations of a communicator's ranks in its collective slot. What a call of one
// of MPI's procedures does is one operation here, or several.
//
// A slot has a ring of phases; operation number s of the communicator uses phase s mod phases.
// Every rank ARRIVES exactly once in every operation, and no later than it leaves it:
//     at entry, in operations that nobody leaves before all have come (together);
//     in from_root, the root when it has published, the others when they have read;
//     in to_root, the others when they have contributed, the root when it has combined.
// A slot is flat (flat_sync.hpp) or counted (counted_sync.hpp).
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
//  3. Data too large for lines is in a staging area (staging.hpp), in the part of the operation's
//     phase, for which 2 holds as it does for lines.
// Thread rule: as SlotMember.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/invariant.hpp"
#include "mpi/coll/call_agreement.hpp"
#include "mpi/coll/counted_sync.hpp"
#include "mpi/coll/flat_sync.hpp"
#include "mpi/coll/staging.hpp"

namespace warren::coll {

class PhaseRing {
  public:
    // For one call, or several. For a communicator that has a slot.
    PhaseRing(message::Engine& engine, comm::Communicator& communicator)
        : call_(engine, communicator) {}
    // `flat`: SlotMember::is_flat(), for callers that know it.
    PhaseRing(message::Engine& engine, comm::Communicator& communicator, bool flat)
        : call_(engine, communicator, flat) {}

    const SlotMember& slot() const { return call_.slot(); }
    int rank() const { return slot().rank; }
    int size() const { return slot().size; }
    bool is_flat() const { return slot().flat; }
    bool is_pair() const { return slot().flat && slot().size == 2; }
    // Calls begin there before their first operation, and have their outcome there.
    CallAgreement& call() { return call_; }
    const CallAgreement& call() const { return call_; }

    // --- Operations. Functions get the operation's number. Those that read call await() for each
    // rank whose data they look at. (They are taken by reference: a copy of what has just been
    // stored is slow, see src/mpi/CMakeLists.txt.)

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

    // The arrival of a call that has not taken the slot, where others did; and of one of no data.
    void arrive_aside();
    // Nobody goes on before all have come here.
    void close();

    // --- Parts of operations

    std::uint64_t begin_operation() { return slot().place().operations++; }
    std::uint64_t next_operation() const { return slot().place().operations; }
    // Nothing in a counted slot, where all have come before anybody reads.
    void await(std::uint64_t operation, int rank) {
        if (slot().flat && rank != slot().rank) {
            flat::wait(call_, rank, operation);
        }
    }
    // Waits until all have arrived in an operation in which this rank has, whatever their calls
    // are: those that match may be reading what is this rank's.
    void await_all(std::uint64_t operation);
    // Waits until the phase of the operation may be written: invariant 2. False: it may not, and
    // this rank takes no part in the operation; the slot is broken.
    [[nodiscard]] bool settle(std::uint64_t operation) {
        return operation + 1 < collective_phases ||
               // Mostly that is known already, for rows of operations, too.
               slot().place().all_arrived > operation + 2 - collective_phases ||
               settle_later(operation);
    }
    // Whether a rank that has waited for others before its arrival may arrive.
    bool may_arrive(std::uint64_t operation) { return !call_.unequal() || settle(operation); }
    // All have arrived in an operation that waits for them, unless the wait was given up.
    void all_have_arrived(std::uint64_t operation) {
        if (!call_.unequal()) [[likely]] {
            slot().place().all_arrived = operation + 1;
            WARREN_INVARIANT(slot().place().all_arrived <= slot().place().operations,
                             "phase ring 2: all have arrived only where this rank has");
        }
    }

    // For lines with data that only a matching call may use. sign(): signs this rank's line.
    // agrees(): whether the line of a rank that has arrived belongs to a matching call.
    void sign(std::uint64_t operation) {
        if (!slot().flat) {
            counted::sign_line(call_, operation);
        }
    }
    bool agrees(std::uint64_t operation, int rank) {
        return call_.agrees(
            slot().memory.line(operation, rank).stamp.load(std::memory_order_relaxed), operation);
    }

    // --- Where data is

    // Up to line_data_bytes of a rank's data.
    std::byte* line_data(std::uint64_t operation, int rank) const {
        return slot().memory.line(operation, rank).data;
    }
    // In a counted slot, the data of the rank that comes last, which the others read.
    std::byte* published_data(std::uint64_t operation) const {
        return slot().memory.published(operation).data;
    }
    // The communicator's staging area, or null: the same at all ranks.
    std::byte* staging_area(StagingKind kind) const {
        const std::uint32_t known = slot().place().staging[static_cast<std::size_t>(kind)];
        if (known >= staging::first) [[likely]] {
            return staging::memory(slot().node_rank.segment, known);
        }
        return find_staging(kind);
    }
    // On some processors a cache line moves to its last reader, and its previous writer is slow to
    // get it back. Two ranks that exchange data in a staging area therefore swap rows each time the
    // phases wrap around, so that each writes where it last read.
    static bool exchanges_places(std::uint64_t operation) {
        return (operation / collective_phases & 1) != 0;
    }
    // The row in which a rank writes for all others.
    int alternating_row(std::uint64_t operation, int rank) const {
        return is_pair() && exchanges_places(operation) ? 1 - rank : rank;
    }

  private:
    bool settle_later(std::uint64_t operation);
    [[gnu::cold]] std::byte* find_staging(StagingKind kind) const;

    CallAgreement call_;
};

template <typename Write, typename Last, typename Read>
void PhaseRing::together(const Write& write, const Last& last, const Read& read) {
    const std::uint64_t operation = begin_operation();
    if (!settle(operation)) [[unlikely]] {
        return;
    }
    write(operation);
    if (slot().flat) {
        flat::arrive(call_, operation);
    } else if (counted::arrive(call_, operation)) {
        last(operation);
        counted::publish(call_, operation);
    } else {
        counted::wait_published(call_, operation);
    }
    if (!call_.unequal()) [[likely]] {
        read(operation);
        all_have_arrived(operation);
    }
}

template <typename Write, typename Read>
void PhaseRing::in_row(bool first, const Write& write, const Read& read) {
    const std::uint64_t operation = begin_operation();
    if (!settle(operation)) [[unlikely]] {
        return;
    }
    write(operation);
    flat::arrive(call_, operation);
    slot().place().read_late = operation + 1;
    if (!first) {
        read(operation - 1);
        all_have_arrived(operation - 1);
    }
}

template <typename Read>
void PhaseRing::end_row(const Read& read) {
    const std::uint64_t last = next_operation() - 1;
    read(last);
    all_have_arrived(last);
}

template <typename Write, typename Read>
void PhaseRing::from_root(int root, const Write& write, const Read& read) {
    const std::uint64_t operation = begin_operation();
    if (slot().rank == root) {
        if (!settle(operation)) [[unlikely]] {
            return;
        }
        write(operation);
        if (!slot().flat) {
            counted::publish(call_, operation);
        }
    } else {
        if (slot().flat) {
            flat::wait(call_, root, operation);
        } else {
            counted::wait_published(call_, operation);
        }
        if (!call_.unequal()) [[likely]] {
            if (is_pair()) {
                slot().place().all_arrived = operation; // invariant 1
            }
            read(operation);
        } else if (!settle(operation)) {
            return;
        }
    }
    if (slot().flat) {
        flat::arrive(call_, operation);
    } else {
        if (counted::arrive(call_, operation)) {
            counted::wake_arrived(slot(), operation);
        }
        call_.tell_before_leaving();
    }
}

template <typename Write, typename Read>
void PhaseRing::to_root(int root, const Write& write, const Read& read) {
    const std::uint64_t operation = begin_operation();
    if (slot().rank != root) {
        if (!settle(operation)) [[unlikely]] {
            return;
        }
        write(operation);
        if (slot().flat) {
            flat::arrive(call_, operation);
        } else {
            counted::sign_line(call_, operation);
            if (counted::arrive_before_root(call_, operation)) {
                slot().ring(root);
            }
            call_.tell_before_leaving();
        }
        return;
    }
    if (slot().flat) {
        read(operation);
        if (!may_arrive(operation)) [[unlikely]] {
            return;
        }
        flat::arrive(call_, operation);
    } else {
        counted::wait_for_others(call_, operation);
        if (!call_.unequal()) [[likely]] {
            read(operation);
        } else if (!settle(operation)) {
            return;
        }
        counted::arrive(call_, operation);
        counted::wake_arrived(slot(), operation);
    }
    all_have_arrived(operation);
}

} // namespace warren::coll
