// Ways: which of two ways a large message without gaps takes to a rank that is another process and
// has a box: pushed by its sender through the pair's bounce buffers (stream), or fetched by its
// receiver out of the sender's memory (rendezvous).
//
// Which is quicker depends on the machine and on what the program does with its buffers: the kernel
// copies fast what is in the receiver's caches already, and slowly what the sender has just
// written. So each pair finds out by measuring, for each class of sizes by itself. Now and then,
// ever more seldom while the answer stays the same, the sender sends a row of messages the way that
// it has been told, and a row the other way, all of them with the time at which it began. The
// receiver takes the times that they need, and advises the sender, in a word of the pair's box.
//
// A message that fits no single block is fetched, unless that is refused: what follows the first
// block has to wait for the receiver in any case, and both can take part in its one copy
// (transport/joint_copy.hpp).
// Thread rule: under the rank's lock; what the two tell each other is in messages and that word.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <ctime>

#include "node/segment.hpp"

namespace warren::message {

// In the word of advice: a bit per class whose messages should be fetched, and one that says that
// the receiver may not fetch at all.
using Advice = std::uint32_t;
inline constexpr Advice no_fetching = Advice{1} << 31;

// Sizes that can go either way, by powers of two.
struct WayClass {
    static constexpr std::uint64_t smallest_bytes = 8192;
    static constexpr std::uint64_t largest_bytes = node::bounce_bytes;
    static constexpr std::uint32_t count =
        std::bit_width(largest_bytes - 1) - std::bit_width(smallest_bytes) + 1;

    static bool has(std::uint64_t bytes) {
        return bytes >= smallest_bytes && bytes <= largest_bytes;
    }
    // Of a size that it has; the largest belongs to those below it.
    static std::uint32_t of(std::uint64_t bytes) {
        return static_cast<std::uint32_t>(std::bit_width(bytes - (bytes == largest_bytes)) -
                                          std::bit_width(smallest_bytes));
    }
};

enum class Way : std::uint8_t { push, fetch };

// How many messages of each row do what comes with a change of ways, and how many are measured.
inline constexpr std::uint32_t unmeasured_in_row = 8;
inline constexpr std::uint32_t measured_in_row = 12;

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
    // How the next message of a class goes.
    Way next(std::uint32_t way_class, Advice advice) const {
        const Class& now = classes_[way_class];
        return now.phase == Phase::rest ? advised(way_class, advice)
                                        : (now.phase == Phase::other ? other(now.own) : now.own);
    }
    // The time that it is to carry; 0: it is not measured.
    std::uint64_t stamp(std::uint32_t way_class) const {
        return classes_[way_class].phase == Phase::rest ? 0 : way_clock();
    }
    // It has gone so.
    void sent(std::uint32_t way_class, Advice advice) {
        Class& now = classes_[way_class];
        if (--now.left == 0) [[unlikely]] {
            turn_phase(now, advised(way_class, advice), advice);
        }
    }

  private:
    enum class Phase : std::uint8_t { rest, own, other };
    static constexpr std::uint16_t first_rest = 16;
    static constexpr std::uint16_t shortest_rest = 128;
    static constexpr std::uint8_t slowest_pace = 6; // 8,192 messages

    struct Class {
        std::uint16_t left = first_rest; // of this phase
        Phase phase = Phase::rest;
        Way own = Way::push;   // the way advised when rows began last
        std::uint8_t pace = 0; // of rests
    };

    static Way other(Way way) { return way == Way::push ? Way::fetch : Way::push; }
    static Way advised(std::uint32_t way_class, Advice advice) {
        return (advice >> way_class & 1) != 0 ? Way::fetch : Way::push;
    }
    static void turn_phase(Class& now, Way advised, Advice advice);

    std::array<Class, WayClass::count> classes_;
};

// The receiver's half, for one sender.
class WayJudge {
  public:
    // A message that carried a time has arrived: its class and way, when it began as far as it
    // counts, and when it was there. True: the advice for its class is now `best`.
    bool add(std::uint32_t way_class, Way way, std::uint64_t began, std::uint64_t ended, Way& best);

  private:
    using Row = std::array<float, measured_in_row>;
    struct Class {
        std::array<Row, 2> rows = {}; // by way
        std::array<bool, 2> full = {};
        Way way = Way::push; // of the row that is arriving
        Way best = Way::push;
        std::uint32_t seen = 0; // of that row
    };

    static float typical(Row& row);

    std::array<Class, WayClass::count> classes_;
    std::uint64_t last_end_ = 0;
};

} // namespace warren::message
