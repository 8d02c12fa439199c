// Profile: records a rank's calls in the node segment, when `mpiexec --profile` asks for it.
//
// The rank's lock is then guarded, so each call of an entry point comes here at its begin and end,
// and the rank is observed, so messages and waits take the ways that count them. Without the option
// nothing comes here.
//
// A wait belongs to the rank whose message ended it. In a blocking collective operation ranks
// don't know each other's messages: each that the others wait for notes when it comes, and one that
// has come earlier has waited for the last of them until then. Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/job/segment.hpp"
#include "mpi/rank/profile_record.hpp"

namespace warren {

class Profile {
  public:
    // Who waits for whom in a collective operation.
    enum class Pattern : std::uint8_t {
        none,      // not known here; the waits' messages tell
        all,       // each for all
        from_root, // each for the root
        to_root    // the root for all
    };

    // A call that has begun; on the caller's stack.
    struct Call {
        std::uint64_t begin;  // in ticks, as all times here; 0: it is not timed
        std::uint64_t waited; // by the thread, before it
        profile::Row* row;    // null: none is left
        std::uint64_t bytes;  // of a collective operation, beside its pattern
        std::uint64_t tag;    // of its last arrival; 0: none
        bool collective;
        bool waits; // for the last arrival
    };

    Profile(const node::Segment& segment, std::uint32_t rank);
    ~Profile();
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;

    bool on() const { return record_ != nullptr; }

    // --- By entry points; only if on().
    void begin(std::uint32_t procedure, Call& call);
    // After begin(). `number`: of the communicator's operations with this pattern.
    void begin_collective(Call& call, Pattern pattern, bool is_root, std::uint64_t bytes,
                          std::uint32_t context, std::uint32_t number);
    void end(std::uint32_t procedure, const Call& call);

    // --- By the rank's waits
    // The number of what had come before.
    std::uint64_t wait_begins() const { return arrivals_; }
    // `peer`: the rank that was waited for, if it is known without asking.
    void waited(std::uint32_t procedure, std::uint32_t peer, std::uint64_t since,
                std::uint64_t ticks);

    // --- By the message layer
    // Something from a rank has come; a message without a receive if `kept`.
    void arrived(std::uint32_t from, bool kept) {
        (kept ? kept_ : received_) = Arrival{.from = from, .number = ++arrivals_};
    }
    void sent(std::uint32_t to, std::uint32_t context, std::uint64_t bytes);
    void accessed(std::uint32_t target, std::uint64_t bytes);

  private:
    struct Arrival {
        std::uint32_t from = profile::nobody;
        std::uint64_t number = 0;
    };

    // The rows that were found last, by their keys; in turns.
    struct RecentRows {
        static constexpr std::uint32_t most = 16;
        std::uint64_t keys[most] = {}; // 0: none
        profile::Row* rows[most] = {};
        std::uint32_t next = 0;
    };
    // Columns to which messages went last.
    struct RecentPairs {
        static constexpr std::uint32_t most = 4;
        profile::PairCount* pairs[most] = {};
        std::uint32_t newest = 0;
    };

    // After a wait, other ranks' data has pushed the entries that are used in turns out of the
    // cache, and a miss costs more than all else here: all are fetched at once.
    void fetch_recent() const;
    static std::uint32_t place_of(std::uint64_t key);
    profile::Row* find_row(profile::RowKind kind, std::uint32_t procedure, std::uint32_t detail);
    profile::Row* find_older_row(profile::RowKind kind, std::uint64_t key);
    void add(profile::RowKind kind, std::uint32_t procedure, std::uint32_t detail,
             std::uint64_t ticks, std::uint64_t bytes = 0);
    void count_call(const Call& call, std::uint64_t now);
    profile::LastArrival& last_arrival(std::uint64_t tag) const;

    profile::ProfileRecord* record_ = nullptr; // null: off
    profile::LastArrival* last_arrivals_ = nullptr;
    const std::uint32_t rank_;
    const std::uint32_t ranks_;
    const profile::Columns columns_;
    profile::Row* rows_ = nullptr;
    std::uint16_t* places_ = nullptr;
    RecentRows recent_rows_;
    RecentPairs recent_pairs_;
    std::uint64_t random_ = 1;
    std::uint64_t arrivals_ = 0; // by any thread of the rank
    Arrival received_;           // the last one that had a receive
    Arrival kept_;               // …that had none
};

} // namespace warren
