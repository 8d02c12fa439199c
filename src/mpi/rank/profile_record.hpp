// ProfileRecord: where ranks record their calls for `mpiexec --profile`, in the node segment.
// mpiexec reads it when the job has ended, however it has.
//
// A rank has a record: the messages to each other rank, and rows, in the order in which they were
// first used. Where ranks are many, neighbouring ones share a column. All that a program of some
// dozen ranks uses lies close together: behind a switch between processes a page costs more than
// what is counted in it. Invariants: a row's key is written once, by the rank that owns the record;
// memory of zeros is an empty record. Thread rule: written by the rank, under its lock; read by
// anybody.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/segment_region.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/rank/counts.hpp"
#include "mpi/rank/tuning.hpp"

namespace warren::profile {

enum class RowKind : std::uint8_t {
    call = 1,      // calls of a procedure: how many, their time
    wait = 2,      // …that waited; detail: the column of the rank waited for, or nobody
    collective = 3 // …of collective operations; detail: the size class
};

// The detail of waits for no rank that is known.
inline constexpr std::uint32_t nobody = 0xffffffff;

// 0: nothing; else 2^(class - 1) bytes or more, below 2^class.
inline constexpr std::uint32_t size_class(std::uint64_t bytes) {
    std::uint32_t bits = 0;
    for (; bytes != 0; bytes >>= 1) {
        ++bits;
    }
    return bits;
}

inline constexpr std::uint64_t key_of(RowKind kind, std::uint32_t call, std::uint32_t detail) {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | std::uint64_t{call} << 32 |
           detail;
}
inline constexpr RowKind kind_of(std::uint64_t key) {
    return static_cast<RowKind>(key >> 56);
}
inline constexpr std::uint32_t call_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key >> 32) & 0xffffff;
}
inline constexpr std::uint32_t detail_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key);
}

struct Row {
    std::atomic<std::uint64_t> key; // 0: free
    Count calls;
    Count ticks;
    Count bytes; // of collective operations; of a call's row: its Sampling
};

// How a procedure's calls are timed. After some short ones the processor's clock, which costs more
// than all else, is read for one call in several, which then stands for those since the last one.
// Distances are random: a program's own period must not choose the calls.
class Sampling {
  public:
    explicit Sampling(std::uint64_t word) : word_(word) {}
    std::uint64_t word() const { return word_; }

    // Whether the call that begins is timed.
    bool times_next() const { return left() == 0; }
    // For how many calls a timed one stands.
    std::uint64_t weight() const { return skipped() + 1; }
    // (Calls that threads, or functions of the program, make at once may all be the last one.)
    void skip() { word_ += (std::uint64_t{1} << skipped_at) - (left() != 0 ? 1 : 0); }
    // A timed call has ended; `ticks`: without its waits.
    void timed(std::uint64_t ticks, std::uint64_t random) {
        const std::uint64_t shorts =
            ticks < short_call_ticks ? std::min(word_ >> shorts_at, short_calls - 1) + 1 : 0;
        const std::uint64_t next =
            shorts < short_calls ? 0 : least_distance + random % random_distance;
        word_ = shorts << shorts_at | next;
    }

  private:
    static constexpr unsigned skipped_at = 16;
    static constexpr unsigned shorts_at = 32;
    std::uint64_t left() const { return word_ & 0xffff; }
    std::uint64_t skipped() const { return word_ >> skipped_at & 0xffff; }

    std::uint64_t word_; // calls left untimed, skipped ones, short ones in a row
};

// From the record's rank to the ranks of a column.
struct PairCount {
    MessageCount messages;
    MessageCount windows; // puts, gets and accumulates; their bytes in either direction
};

// One moment by the monotonic clock and by the processor's (fibre::ticks), in which all other times
// are: two moments tell how long a tick is.
struct Moment {
    std::atomic<std::uint64_t> ns;
    std::atomic<std::uint64_t> ticks;
};

// How the ranks of a node are divided into columns.
struct Columns {
    explicit Columns(std::uint32_t ranks)
        : ranks_each((ranks + columns_most - 1) / columns_most),
          count((ranks + ranks_each - 1) / ranks_each) {}
    std::uint32_t of(std::uint32_t rank) const {
        return ranks_each == 1 ? rank : rank / ranks_each; // a division costs more than a branch
    }

    std::uint32_t ranks_each;
    std::uint32_t count;
};

struct ProfileRecord {
    Moment begin; // of MPI; 0: the rank has not begun
    Moment end;   // 0: it has not ended
    Count rows_used;
    Count left_out;             // calls and waits for which there was no row
    MessageCount of_operations; // messages of the library's own operations
    // PairCount for each column follows, then the rows, then their places.

    static std::uint64_t bytes(const Columns& columns) {
        return sizeof(ProfileRecord) + columns.count * sizeof(PairCount) + rows_most * sizeof(Row) +
               row_places * sizeof(std::uint16_t);
    }
    PairCount* pairs() { return reinterpret_cast<PairCount*>(this + 1); }
    const PairCount* pairs() const { return reinterpret_cast<const PairCount*>(this + 1); }
    Row* rows(const Columns& columns) { return reinterpret_cast<Row*>(pairs() + columns.count); }
    // A hash table of the rows' numbers from 1 on; 0: none. Its owner's.
    std::uint16_t* places(const Columns& columns) {
        return reinterpret_cast<std::uint16_t*>(rows(columns) + rows_most);
    }
    std::span<const Row> used_rows(const Columns& columns) const {
        return {reinterpret_cast<const Row*>(pairs() + columns.count),
                std::min<std::size_t>(rows_used.read(), rows_most)};
    }
};
static_assert(sizeof(ProfileRecord) % sizeof(Row) == 0 && sizeof(PairCount) % sizeof(Row) == 0,
              "no row lies in two cache lines");

// Who has come last to a collective operation so far, by which the others tell for whom they
// waited. Several operations share a place, which the newest has: one word of time, operation and
// rank, so that nobody sees parts of two.
class alignas(32) LastArrival {
  public:
    // A tag names an operation: its communicator's context, and how many it has had. (A rank that
    // loses its processor after it took the time does not hide a later one.)
    void note(std::uint64_t tag, std::uint32_t rank, std::uint64_t ticks);
    // `near`: a time within an hour. False: another operation has the place.
    bool find(std::uint64_t tag, std::uint64_t near, std::uint32_t& rank,
              std::uint64_t& ticks) const;

  private:
    static constexpr std::uint32_t rank_bits = 14;
    static_assert(node::rank_limit <= 1U << rank_bits);
    static constexpr std::uint32_t operation_bits = 14; // a hash; 0: none has been here
    static constexpr std::uint32_t other_bits = rank_bits + operation_bits;
    static constexpr std::uint64_t unit = 512;

    static std::uint64_t operation_of(std::uint64_t tag);
    // By how many units, modulo 2^36, one word's time is after another's.
    static std::int64_t units_between(std::uint64_t later, std::uint64_t earlier) {
        return static_cast<std::int64_t>((later >> other_bits << other_bits) -
                                         (earlier >> other_bits << other_bits)) >>
               other_bits;
    }

    std::atomic<std::uint64_t> word_;
};

inline constexpr node::RegionId<ProfileRecord> records{20};     // a unit per rank
inline constexpr node::RegionId<LastArrival> last_arrivals{21}; // a unit per place

} // namespace warren::profile
