// CopyMethods: which of three ways a large message without gaps takes to a rank that has a pair
// ring, and is mostly another process: pushed by its sender through the pair's bounce buffers
// (stream), either through the caches or past them, by stores that go straight to memory; or
// fetched by its receiver out of the sender's memory (rendezvous), in which both may take part
// (mpi/transport/shm/joint_copy.hpp).
//
// Which is quickest depends on the machine, on where in it the two run, and on what the program
// does with its buffers: the kernel copies fast what is in the receiver's caches already, and
// slowly what the sender has just written; two cores of one cache push 1 MiB in three fifths of the
// time that fetching it takes, and past the caches in twice that; two cores without one push it in
// twice the time of fetching, but past the caches, if it has just been written, in half of it. So
// each pair finds out by measuring, for each class of sizes by itself. Now and then, ever more
// seldom while the answer stays the same, the sender sends a row of messages the way that it has
// been told, and a row each other way, all of them with the time at which it began. The receiver
// takes the times that they need, per byte, and advises the sender, in a word of the pair's pair
// ring. What couldn't be fetched counts as endless. How late a receiver comes, to what has been
// sent long before, belongs to no way: of such messages the copies count. Long messages that have
// the choice all carry the time, which costs little beside them: when several in a row take much
// longer than the first that went the best way, the receiver has the sender measure anew at once;
// after more and more of them while that changes nothing.
//
// A long message whose sender doesn't wait for it yet (MPI_Isend) is offered, and fetched when it
// is received. But once the sender waits for all that it has offered to the receiver (MPI_Waitall),
// it can as well push, and the receiver asks it to if that is quicker: the receiver then has both
// halves of the game (OwnCopyMethods, Asking).
//
// Until that is known a message that fits a block is pushed, since its sender need not wait, and a
// longer one is fetched, since what follows its first block waits for the receiver in any case. And
// longer ones only have the choice if their sender waits for them (MPI_Send, and the blocking
// collectives): pushing others would have the receiver wait for the sender's next call.
//
// Ranks of one address space have the same choice; what stands for fetching there is the direct
// copy (mpi/message/direct.hpp). It reads what the program has written just before out of another
// core's cache, and that core then has to fetch the lines back when the program writes them again:
// a price that no message shows. So there the time from message to message counts first, which has
// all in it, and the messages' own time decides between what makes no difference to that. So it is
// where two ask that send to each other at once: who pushes has less time to receive.
//
// Data that two ranks' reductions write into shared memory is not sent, but has the choice between
// pushing and passing for the same reasons; its writer decides alone (OwnCopyMethods). Thread rule:
// under the rank's lock; what the two tell each other is in messages and that word.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "mpi/job/segment.hpp"
#include "mpi/transport/shm/copy_large.hpp"

namespace warren::message {

// In the word of advice: two bits per class, in which its best way differs from its first; a bit
// per long class, which changes when its ways should be measured anew; and one that says that the
// receiver may not fetch at all.
using Advice = std::uint32_t;
inline constexpr Advice no_fetching = Advice{1} << 31;

enum class CopyMethod : std::uint8_t { push, pass, fetch };
inline constexpr std::size_t copy_method_count = 3;

// Whether it can be chosen at all. `may_fetch`: the kernel lets the receiver.
constexpr bool is_open(CopyMethod method, bool may_fetch) {
    return method == CopyMethod::push ||
           (method == CopyMethod::pass ? transport::LargeCopy::can_pass : may_fetch);
}

// How many messages make up what CopyMethods does in turn.
struct Rhythm {
    std::uint16_t first_rest;
    std::uint16_t shortest_rest;
    std::uint8_t slowest_pace; // rests get no longer than shortest_rest << slowest_pace
    // Messages of each row: those that do what comes with a change of ways, and those that are
    // measured.
    std::uint8_t unmeasured;
    std::uint8_t measured;

    std::uint16_t row() const { return static_cast<std::uint16_t>(unmeasured + measured); }
};

// Sizes that can go either way, by powers of two.
struct CopyMethodClass {
    static constexpr std::uint64_t smallest_bytes = 8192;
    static constexpr std::uint32_t count = 12; // the last from 16 MiB on
    // The largest message that fits a block belongs to the class below it.
    static constexpr std::uint64_t block_bytes = node::bounce_bytes;

    static bool has(std::uint64_t bytes) { return bytes >= smallest_bytes; }
    // For a size that it has.
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
    // The advice for a copy method, in the bits of `mask`.
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
    // Long messages are few, and one that goes a slower way costs more.
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

// Time of a measured message: when its sender began, to 4 ns, and in the lowest bits whether
// it passes the caches, and whether it is outside of rows. 0: it is not measured.
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

// The sender's half: what it has under way with one receiver.
class CopyMethods {
  public:
    CopyMethods();
    // How the next message of a class goes.
    CopyMethod next(std::uint32_t size_class, Advice advice) const {
        const Class& now = classes_[size_class];
        return !now.measures || (now.method == CopyMethod::fetch && (advice & no_fetching) != 0)
                   ? CopyMethodClass::advised(size_class, advice)
                   : now.method;
    }
    // The time that it carries, if it goes so.
    std::uint64_t stamp(std::uint32_t size_class, CopyMethod method) const {
        const bool resting = !classes_[size_class].measures;
        return resting && size_class < CopyMethodClass::first_long
                   ? 0
                   : Stamp::of(node_time_ns(), method, resting);
    }
    // It has gone so.
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
        std::uint16_t left = 0; // of this row, or rest
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

// The times of a message that carried one: when its sender began, when the receiver looked at what
// came first of it, and when all was there. `unexpected`: it has waited for its receive, which
// looked at it then, if it was fetched; if it was pushed, it is yet to be copied once more.
struct Trial {
    std::uint64_t began; // 0: it carried none
    std::uint64_t looked;
    std::uint64_t ended;
    bool unexpected;
    bool resting; // outside of rows
    CopyMethod method;
    bool asked = false;   // of a message whose way the receiver has chosen
    bool ignored = false; // nothing is to be learnt from it
    bool failed = false;  // what was to be fetched couldn't be
    bool mutual = false;  // of a message that was asked for: others are on their way to its sender
};

// The receiver's half, for one sender.
class CopyMethodJudge {
  public:
    CopyMethodJudge();
    // A message of a row has arrived, or failed to. True: the advice for its class is now `best`.
    // `by_period`: the program pays for a way outside of messages, too (see the head of this file).
    bool add(std::uint32_t size_class, const Trial& trial, std::uint64_t bytes, bool may_fetch,
             CopyMethod& best, bool by_period = false);
    // A long one outside of rows. True: it is time to measure anew, and `again` the bit in the
    // advice that says so.
    bool drifts(std::uint32_t size_class, const Trial& trial, std::uint64_t bytes, Advice& again);

  private:
    using Row = std::array<float, CopyMethodClass::short_rhythm.measured>;
    struct Class {
        std::array<Row, copy_method_count> rows = {};    // by way, per byte: a class has many sizes
        std::array<Row, copy_method_count> periods = {}; // likewise: from end to end
        std::array<bool, copy_method_count> full = {};
        std::array<std::uint64_t, copy_method_count> full_since = {}; // of those
        std::uint64_t last_end = 0;                                   // of what was measured
        CopyMethod method = CopyMethod::push;                         // of the row that is arriving
        CopyMethod best = CopyMethod::push;
        std::uint32_t seen = 0; // of that row
        // Outside of rows: the least time per byte of the first messages that went the best way,
        // how many those are yet, and how many in a row have taken much longer since.
        float usual = 0;
        std::uint32_t usual_seen = 0;
        std::uint32_t slow = 0;
        std::uint32_t in_vain = 0; // how often measuring anew has changed nothing
        bool wished = false;       // to measure anew, which is under way
        bool again = false;
    };

    // Cost of a message, ns.
    std::uint64_t cost(std::uint32_t size_class, const Trial& trial) const;
    // Forgets rows that don't belong to the one of which a message has come.
    static void drop_stale(Class& now, const Trial& trial);
    // The quickest of the rows, if all that can be chosen are there.
    static bool judge(Class& now, const Rhythm& rhythm, bool may_fetch, bool by_period);

    std::array<Class, CopyMethodClass::count> classes_;
    std::uint64_t last_end_ = 0;
};

// Both halves in one rank, which decides alone how data goes.
class OwnCopyMethods {
  public:
    explicit OwnCopyMethods(bool may_fetch) : advice_(may_fetch ? 0 : no_fetching) {}

    // How the next data goes; `trial` is what to end it with. Only if its `began` isn't 0 it is
    // measured, and the caller may put another beginning there. `beside`: other data is under way,
    // which would make fetching seem slower, or would itself: nothing is learnt from a fetch then.
    CopyMethod next(std::uint64_t bytes, Trial& trial, bool beside = false);
    // It has gone, as the trial says. Data that comes to nothing need not be ended.
    void end(std::uint64_t bytes, const Trial& trial);
    // From now on nothing goes by fetching.
    void refuse_fetching() { advice_ |= no_fetching; }

  private:
    CopyMethods methods_;
    CopyMethodJudge judge_;
    Advice advice_;
};

// For the messages of one sender that the receiver may fetch or have pushed. Several may be on
// their way at once, since those are asked for as soon as they are received, and come one behind
// the other.
class Asking {
  public:
    // How the next one goes; `trial` is what to end it with.
    CopyMethod next(std::uint64_t bytes, Trial& trial, bool may_fetch = true, bool mutual = false);
    // It is there, or will never be (`trial.ignored`).
    void end(std::uint64_t bytes, const Trial& trial);

  private:
    OwnCopyMethods methods_{true};
    std::uint32_t under_way_ = 0; // that have been asked for
};

} // namespace warren::message
