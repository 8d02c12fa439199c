// Counts many turns of a loop at once. A loop is a basic block that repeats itself, with addresses
// that stay the same or move by a constant. Before the first turn inline code (loops.hpp) stores
// where each site is, and begin_turns() says how many turns stay in the same units. When those are
// done or the loop is left, they are counted by multiplication. A unit that the thread touches for
// the first time is counted before that.
//
// A turn that faults is counted whole. If the handler repairs the fault and returns, the
// instructions from there on are counted once more. If the handler jumps away, they never ran.
//
// Other threads see up to most_turns turns late. Thread rule: a thread's own. Like counters.cpp
// this is compiled to use general registers only.
#pragma once

#include <cstdint>

namespace warren::locality::counts {

struct Site;
struct ThreadCounters;

constexpr unsigned most_moving_sites = 16;
// Limit of turns for which a signal or a request of another thread waits.
constexpr std::uint32_t most_turns = 1024;

// A site of a loop.
struct MovingSite {
    const Site* site;
    std::uint32_t extent; // bytes from its lowest to its highest
    std::int32_t step;    // from turn to turn
};

struct alignas(8) Loop {
    std::uint32_t sites;
    std::uint32_t instructions; // of a turn
    std::uint32_t most;         // turns that fit in a word
    // How often turns were counted together, and how many in all. Inexact with many threads.
    std::uint32_t times;
    std::uint64_t turns;
    // How traces of this block count. The first trace decides: `alone` if too few turns follow each
    // other.
    enum Way : std::uint32_t { unknown, together, alone } way;
    MovingSite site[most_moving_sites];
};

// A thread's state in its current loop.
struct Turns {
    std::uint64_t next[most_moving_sites];    // inline code stores: what is to be …
    std::uint64_t address[most_moving_sites]; // lowest of each site in the first turn
    Loop* loop;                               // null: in none
    std::uint32_t planned;
    std::uint32_t done;    // and counted
    std::uint32_t crosses; // a bit per site: it is counted already, in several units
    std::uint32_t once[2]; // per direction, a bit per site: one turn is counted already
    // Inline code counts it down from planned - 1 after each turn but the last.
    std::int64_t* left;
    std::uint64_t* instructions; // of the thread: inline code counts them
};

// Begins turns of `loop`, whose addresses inline code has stored.
void begin_turns(ThreadCounters& thread, Loop& loop);
// Counts the turns that have begun up to now, once.
void settle_turns(ThreadCounters& thread);
// The loop is left.
void end_turns(ThreadCounters& thread);

} // namespace warren::locality::counts
