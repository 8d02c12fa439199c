// CopyMethods: how a large message without gaps moves to a rank that has a pair ring (mostly a rank
// of another process). There are three copy methods:
//
//   push    the sender streams it through the pair's bounce buffers
//   pass    likewise, but with stores past the caches, straight to memory
//   fetch   rendezvous: the receiver copies it out of the sender's memory; both may take part
//           (mpi/transport/shm/joint_copy.hpp)
//
// Which is fastest depends on the machine, on where in it the two ranks run, and on what the
// program does with its buffers. The kernel copies fast what is in the receiver's caches, and
// slowly what the sender has just written. Examples for 1 MiB: two cores of one cache push it in
// three fifths of the time of a fetch, and pass it in twice that; two cores without a common cache
// push it in twice the time of a fetch, but pass it, if it has just been written, in half of it.
//
// Each pair therefore measures, for each size class by itself. From time to time the sender sends a
// row of messages by the advised method and a row by each other one; all carry the time at which
// they began. The interval grows while the answer stays the same. The receiver takes the times per
// byte and advises the sender in a word of the pair ring. A fetch that fails counts as endless. How
// late a receiver looks at a message says nothing about the method: for messages that were sent
// long before, only the copies count.
//
// Long messages that have the choice all carry the time, which costs little beside them. When
// several in a row take much longer than the first ones by the best method, the receiver has the
// sender measure anew at once. If that changes nothing, it takes more such messages the next time.
//
// Until a method is known, a message that fits a block is pushed, since its sender need not wait. A
// longer one is fetched, since what follows its first block waits for the receiver in any case.
// Longer ones have the choice only if their sender waits for them (MPI_Send, the blocking
// collectives): pushing others would make the receiver wait for the sender's next call.
//
// A long message whose sender doesn't wait for it yet (MPI_Isend) is offered, and fetched when it
// is received. Once the sender waits for all that it has offered to the receiver (MPI_Waitall), it
// can push, and the receiver asks for that if it is faster. The receiver then has both halves of
// the choice (OwnCopyMethods, Asking).
//
// Ranks of one address space have the same choice, with the direct copy (mpi/message/direct.hpp) in
// place of the fetch. A direct copy costs the sender later, when it rewrites the lines that the
// receiver has read, so the message's time misses that. There, compare the interval between
// messages first, and use message time to break ties. The same holds for two ranks that ask each
// other for pushes at once: a rank that pushes has less time to receive.
//
// Data that two ranks' reductions write into shared memory is not sent, but can be pushed or passed
// for the same reasons; its writer decides alone (OwnCopyMethods). Thread rule: under the rank's
// lock; the two ranks communicate by messages and the word of advice.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "mpi/job/segment.hpp"
#include "mpi/transport/shm/copy_large.hpp"

namespace warren::transport {

// The word of advice. Two bits per size class: its best method xor its first one. One bit per long
// class, which flips when its methods should be measured anew. One bit (no_fetching) if the
// receiver may not fetch at all.
using Advice = std::uint32_t;
inline constexpr Advice no_fetching = Advice{1} << 31;

enum class CopyMethod : std::uint8_t { push, pass, fetch };
inline constexpr std::size_t copy_method_count = 3;

// Whether a method can be chosen at all. `may_fetch`: the kernel lets the receiver fetch.
constexpr bool is_open(CopyMethod method, bool may_fetch) {
    return method == CopyMethod::push ||
           (method == CopyMethod::pass ? LargeCopy::can_pass : may_fetch);
}

// Lengths, in messages, of the rests and rows of CopyMethods.
struct Rhythm {
    std::uint16_t first_rest;
    std::uint16_t shortest_rest;
    std::uint8_t slowest_pace; // rests get no longer than shortest_rest << slowest_pace
    // A row's messages: the first ones, which still show the change of methods, and the measured
    // ones.
    std::uint8_t unmeasured;
    std::uint8_t measured;

    std::uint16_t row() const { return static_cast<std::uint16_t>(unmeasured + measured); }
};

// Size classes of the messages that have a choice, by powers of two.
struct CopyMethodClass {
    static constexpr std::uint64_t smallest_bytes = 8192;
    static constexpr std::uint32_t count = 12; // the last from 16 MiB on
    // The largest message that fits a block belongs to the class below it.
    static constexpr std::uint64_t block_bytes = transport::bounce_bytes;

    static bool has(std::uint64_t bytes) { return bytes >= smallest_bytes; }
    // For a size for which has() is true.
    static std::uint32_t of(std::uint64_t bytes) {
        const auto exact = static_cast<std::uint32_t>(
            std::bit_width(bytes - (bytes == block_bytes)) - std::bit_width(smallest_bytes));
        return exact < count ? exact : count - 1;
    }
    static bool is_long(std::uint64_t bytes) { return bytes > block_bytes; }
    static constexpr std::uint32_t first_long =
        std::bit_width(block_bytes) - std::bit_width(smallest_bytes);
    static CopyMethod first_method(std::uint32_t size_class) {
        return size_class < first_long ? CopyMethod::push : CopyMethod::fetch;
    }
    static CopyMethod advised(std::uint32_t size_class, Advice advice) {
        const auto method = static_cast<CopyMethod>(
            (advice >> 2 * size_class & 3) ^ static_cast<std::uint32_t>(first_method(size_class)));
        return method == CopyMethod::fetch && (advice & no_fetching) != 0 ? CopyMethod::push
                                                                          : method;
    }
    // The advice to use `method`, in the bits of mask().
    static Advice advice(std::uint32_t size_class, CopyMethod method) {
        return (static_cast<std::uint32_t>(method) ^
                static_cast<std::uint32_t>(first_method(size_class)))
               << 2 * size_class;
    }
    static Advice mask(std::uint32_t size_class) { return Advice{3} << 2 * size_class; }
    // The bit that changes, for a long class.
    static Advice again(std::uint32_t size_class) {
        return Advice{1} << (2 * count + size_class - first_long);
    }
    // Long messages are few, and one by a slower method costs more.
    static constexpr Rhythm short_rhythm = {16, 192, 6, 8, 12};
    static constexpr Rhythm long_rhythm = {8, 96, 3, 2, 6};
    static const Rhythm& rhythm(std::uint32_t size_class) {
        return size_class < first_long ? short_rhythm : long_rhythm;
    }
};

static_assert(3 * CopyMethodClass::count - CopyMethodClass::first_long <= 31);

// A clock that all ranks of the node share, ns; never less than 4.
inline std::uint64_t node_time_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec) + 4;
}

// Stamp of a measured message: the time when its sender began, to 4 ns. The two lowest bits say
// whether it is passed, and whether it is outside of rows. 0: it is not measured.
struct Stamp {
    static std::uint64_t of(std::uint64_t time, CopyMethod method, bool resting) {
        return (time & ~std::uint64_t{3}) | (resting ? 2 : 0) |
               (method == CopyMethod::pass ? 1 : 0);
    }
    // In an offer: the receiver may ask for a push. (No time is so small.)
    static constexpr std::uint64_t receivers_choice = 1;
    static std::uint64_t time(std::uint64_t stamp) { return stamp & ~std::uint64_t{3}; }
    static bool resting(std::uint64_t stamp) { return (stamp & 2) != 0; }
    // For a message that is pushed.
    static CopyMethod method(std::uint64_t stamp) {
        return (stamp & 1) != 0 ? CopyMethod::pass : CopyMethod::push;
    }
};

// The sender's half: chooses the method of each message to one receiver.
class CopyMethods {
  public:
    CopyMethods();
    // The method of the next message of a class.
    CopyMethod next(std::uint32_t size_class, Advice advice) const {
        const Class& now = classes_[size_class];
        return !now.measures || (now.method == CopyMethod::fetch && (advice & no_fetching) != 0)
                   ? CopyMethodClass::advised(size_class, advice)
                   : now.method;
    }
    // The stamp of that message, if it uses the method.
    std::uint64_t stamp(std::uint32_t size_class, CopyMethod method) const {
        const bool resting = !classes_[size_class].measures;
        return resting && size_class < CopyMethodClass::first_long
                   ? 0
                   : Stamp::of(node_time_ns(), method, resting);
    }
    // The message has been sent.
    void sent(std::uint32_t size_class, Advice advice) {
        if (size_class >= CopyMethodClass::first_long) {
            look_for_wish(size_class, advice);
        }
        if (--classes_[size_class].left == 0) [[unlikely]] {
            turn(size_class, advice);
        }
    }

  private:
    struct Class {
        std::uint16_t left = 0; // messages of this row, or rest
        bool measures = false;
        CopyMethod method = CopyMethod::push; // of this row
        CopyMethod own = CopyMethod::push;    // the one advised when rows began last
        std::uint8_t pace = 0;                // of rests
        bool again = false;                   // as last seen in the advice
    };

    void turn(std::uint32_t size_class, Advice advice);
    // Ends a rest if the receiver wants that.
    void look_for_wish(std::uint32_t size_class, Advice advice);

    std::array<Class, CopyMethodClass::count> classes_;
};

// Times of a message with a stamp: when its sender began, when the receiver looked at its first
// part, and when all of it had arrived. `unexpected`: the message came before its receive. A
// fetched one was first looked at by that receive; a pushed one is still to be copied once more.
struct Trial {
    std::uint64_t began; // 0: it carried none
    std::uint64_t looked;
    std::uint64_t ended;
    bool unexpected;
    bool resting; // outside of rows
    CopyMethod method;
    bool asked = false;   // the receiver has chosen the method
    bool ignored = false; // nothing is to be learnt from it
    bool failed = false;  // what was to be fetched couldn't be
    bool mutual = false;  // of a message that was asked for: others are on their way to its sender
};

// The receiver's half, for one sender.
class CopyMethodJudge {
  public:
    CopyMethodJudge();
    // A message of a row has arrived, or failed to. True: the advice for its class is now `best`.
    // `by_period`: a method also costs time outside of messages (see the head of this file).
    bool add(std::uint32_t size_class, const Trial& trial, std::uint64_t bytes, bool may_fetch,
             CopyMethod& best, bool by_period = false);
    // A long message outside of rows has arrived. True: the sender should measure anew, and `again`
    // is the advice's bit for that.
    bool drifts(std::uint32_t size_class, const Trial& trial, std::uint64_t bytes, Advice& again);

  private:
    using Row = std::array<float, CopyMethodClass::short_rhythm.measured>;
    struct Class {
        std::array<Row, copy_method_count> rows = {};    // ns per byte: a class has many sizes
        std::array<Row, copy_method_count> periods = {}; // likewise: from end to end
        std::array<bool, copy_method_count> full = {};
        std::array<std::uint64_t, copy_method_count> full_since = {}; // of those
        std::uint64_t last_end = 0;                                   // of what was measured
        CopyMethod method = CopyMethod::push;                         // of the row that is arriving
        CopyMethod best = CopyMethod::push;
        std::uint32_t seen = 0; // of that row
        // Outside of rows: the least time per byte of the first messages by the best method, the
        // number of these so far, and how many in a row have taken much longer since.
        float usual = 0;
        std::uint32_t usual_seen = 0;
        std::uint32_t slow = 0;
        std::uint32_t in_vain = 0; // how often measuring anew has changed nothing
        bool wished = false;       // to measure anew, which is under way
        bool again = false;
    };

    // Cost of a message, ns.
    std::uint64_t cost(std::uint32_t size_class, const Trial& trial) const;
    // Forgets rows of an earlier round than the arrived message's.
    static void drop_stale(Class& now, const Trial& trial);
    // Finds the fastest method, if the rows of all that can be chosen are full.
    static bool judge(Class& now, const Rhythm& rhythm, bool may_fetch, bool by_period);

    std::array<Class, CopyMethodClass::count> classes_;
    std::uint64_t last_end_ = 0;
};

// Both halves in one rank, which decides alone how data goes.
class OwnCopyMethods {
  public:
    explicit OwnCopyMethods(bool may_fetch) : advice_(may_fetch ? 0 : no_fetching) {}

    // The method for the next data; pass `trial` to end(). The data is measured only if trial.began
    // isn't 0; the caller may replace that time. `beside`: other data is under way, which distorts
    // the time of a fetch, so nothing is learnt from one.
    CopyMethod next(std::uint64_t bytes, Trial& trial, bool beside = false);
    // The data has moved. Data that fails need not be ended.
    void end(std::uint64_t bytes, const Trial& trial);
    // From now on nothing is fetched.
    void refuse_fetching() { advice_ |= no_fetching; }

  private:
    CopyMethods methods_;
    CopyMethodJudge judge_;
    Advice advice_;
};

// Asking: chooses, at the receiver, the method of one sender's offered messages. Several pushes may
// be under way at once: each is asked for when its receive matches, and they arrive one by one.
class Asking {
  public:
    // The method of the next message; pass `trial` to end().
    CopyMethod next(std::uint64_t bytes, Trial& trial, bool may_fetch = true, bool mutual = false);
    // The message has arrived, or never will (`trial.ignored`).
    void end(std::uint64_t bytes, const Trial& trial);

  private:
    OwnCopyMethods methods_{true};
    std::uint32_t under_way_ = 0; // that have been asked for
};

} // namespace warren::transport
