// Ways: which of two ways a large message without gaps takes to a rank that is another process and
// has a box: pushed by its sender through the pair's bounce buffers (stream), or fetched by its
// receiver out of the sender's memory (rendezvous), in which both may take part
// (transport/joint_copy.hpp).
//
// Which is quicker depends on the machine, on where in it the two run, and on what the program does
// with its buffers: the kernel copies fast what is in the receiver's caches already, and slowly
// what the sender has just written; two cores of one cache push 1 MiB in three fifths of the time
// that fetching it takes, two cores without one in twice that time. So each pair finds out by
// measuring, for each class of sizes by itself. Now and then, ever more seldom while the answer
// stays the same, the sender sends a row of messages the way that it has been told, and a row the
// other way, all of them with the time at which it began. The receiver takes the times that they
// need, and advises the sender, in a word of the pair's box. How late a receiver comes, to what has
// been sent long before, belongs to neither way: of such messages the copies count.
//
// Until that is known a message that fits a block is pushed, since its sender need not wait, and a
// longer one is fetched, since what follows its first block waits for the receiver in any case. And
// longer ones only have the choice if their sender waits for them (MPI_Send): pushing others would
// have the receiver wait for the sender's next call.
// Thread rule: under the rank's lock; what the two tell each other is in messages and that word.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <ctime>

#include "node/segment.hpp"

namespace warren::message {

// In the word of advice: a bit per class whose messages should go the other way than at first, and
// one that says that the receiver may not fetch at all.
using Advice = std::uint32_t;
inline constexpr Advice no_fetching = Advice{1} << 31;

enum class Way : std::uint8_t { push, fetch };

// How many messages make up what Ways does in turn.
struct Rhythm {
    std::uint16_t first_rest;
    std::uint16_t shortest_rest;
    std::uint8_t slowest_pace; // rests get no longer than shortest_rest << slowest_pace
    // Of each row: those that do what comes with a change of ways, and those that are measured.
    std::uint8_t unmeasured;
    std::uint8_t measured;

    std::uint16_t row() const { return static_cast<std::uint16_t>(unmeasured + measured); }
};

// Sizes that can go either way, by powers of two.
struct WayClass {
    static constexpr std::uint64_t smallest_bytes = 8192;
    static constexpr std::uint32_t count = 12; // the last from 16 MiB on
    // The largest message that fits a block belongs to the class below it.
    static constexpr std::uint64_t block_bytes = node::bounce_bytes;

    static bool has(std::uint64_t bytes) { return bytes >= smallest_bytes; }
    // Of a size that it has.
    static std::uint32_t of(std::uint64_t bytes) {
        const auto exact = static_cast<std::uint32_t>(
            std::bit_width(bytes - (bytes == block_bytes)) - std::bit_width(smallest_bytes));
        return exact < count ? exact : count - 1;
    }
    static bool is_long(std::uint64_t bytes) { return bytes > block_bytes; }
    static constexpr std::uint32_t first_long =
        std::bit_width(block_bytes) - std::bit_width(smallest_bytes);
    static Way first_way(std::uint32_t way_class) {
        return way_class < first_long ? Way::push : Way::fetch;
    }
    static Way advised(std::uint32_t way_class, Advice advice) {
        if ((advice & no_fetching) != 0) {
            return Way::push;
        }
        const bool other = (advice >> way_class & 1) != 0;
        return (first_way(way_class) == Way::push) != other ? Way::push : Way::fetch;
    }
    // What advises a way; of the bit 1 << way_class.
    static Advice advice(std::uint32_t way_class, Way way) {
        return way == first_way(way_class) ? 0 : Advice{1} << way_class;
    }
    // Long messages are few, and one that goes the slower way costs more.
    static constexpr Rhythm short_rhythm = {16, 128, 6, 8, 12};
    static constexpr Rhythm long_rhythm = {8, 64, 3, 2, 6};
    static const Rhythm& rhythm(std::uint32_t way_class) {
        return way_class < first_long ? short_rhythm : long_rhythm;
    }
};

// A clock that all ranks of the node share, ns; never 0.
inline std::uint64_t way_clock() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec) + 1;
}

// The sender's half: what it has under way with one receiver.
class Ways {
  public:
    Ways();
    // How the next message of a class goes.
    Way next(std::uint32_t way_class, Advice advice) const {
        const Class& now = classes_[way_class];
        return now.phase == Phase::rest || (advice & no_fetching) != 0
                   ? WayClass::advised(way_class, advice)
                   : (now.phase == Phase::other ? other(now.own) : now.own);
    }
    // The time that it is to carry; 0: it is not measured.
    std::uint64_t stamp(std::uint32_t way_class) const {
        return classes_[way_class].phase == Phase::rest ? 0 : way_clock();
    }
    // It has gone so.
    void sent(std::uint32_t way_class, Advice advice) {
        if (--classes_[way_class].left == 0) [[unlikely]] {
            turn_phase(way_class, advice);
        }
    }

  private:
    enum class Phase : std::uint8_t { rest, own, other };

    struct Class {
        std::uint16_t left = 0; // of this phase
        Phase phase = Phase::rest;
        Way own = Way::push;   // the way advised when rows began last
        std::uint8_t pace = 0; // of rests
    };

    static Way other(Way way) { return way == Way::push ? Way::fetch : Way::push; }
    void turn_phase(std::uint32_t way_class, Advice advice);

    std::array<Class, WayClass::count> classes_;
};

// The times of a message that carried one: when its sender began, when the receiver looked at what
// came first of it, and when all was there. `unexpected`: it has waited for its receive, which
// looked at it then, if it was fetched; if it was pushed, it is yet to be copied once more.
struct Trial {
    std::uint64_t began; // 0: it carried none
    std::uint64_t looked;
    std::uint64_t ended;
    bool unexpected;
};

// The receiver's half, for one sender.
class WayJudge {
  public:
    WayJudge();
    // A message that carried a time has arrived. True: the advice for its class is now `best`.
    bool add(std::uint32_t way_class, Way way, const Trial& trial, Way& best);

  private:
    using Row = std::array<float, WayClass::short_rhythm.measured>;
    struct Class {
        std::array<Row, 2> rows = {}; // by way
        std::array<bool, 2> full = {};
        Way way = Way::push; // of the row that is arriving
        Way best = Way::push;
        std::uint32_t seen = 0; // of that row
    };

    // What a message has cost, ns.
    std::uint64_t cost(std::uint32_t way_class, Way way, const Trial& trial) const;

    std::array<Class, WayClass::count> classes_;
    std::uint64_t last_end_ = 0;
};

} // namespace warren::message
