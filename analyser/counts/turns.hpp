// Counting many turns of a loop at once: of a basic block that repeats itself, with addresses that
// are the same in each turn or move by a constant. Before the first of some turns inline code
// (loops.hpp) stores where each site is; begin_turns() says how many turns stay in the same units,
// and when those are done, or the loop is left, they are counted by multiplication. A unit that the
// thread touches for the first time is counted before that, like everywhere.
//
// A turn in whose middle the program faults is counted whole; if its handler mends that and
// returns, the instructions from there on are counted once more, and if it jumps away, they never
// ran.
//
// Others see what is counted; the turns in between, less than most_turns, they see later. Thread
// rule: all of a thread's own. Like counters.cpp compiled to use general registers only.
#pragma once

#include <cstdint>

namespace warren::locality::counts {

struct Site;
struct ThreadCounters;

constexpr unsigned most_moving_sites = 16;
// Signals and other threads' wishes wait for so many.
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
    // How often turns were counted together, and how many in all; not exactly, with many threads.
    std::uint32_t times;
    std::uint64_t turns;
    // Of traces, which are made of blocks that run often, fixed by the first of them: too few turns
    // follow each other, so that each is counted alone.
    enum Way : std::uint32_t { unknown, together, alone } way;
    MovingSite site[most_moving_sites];
};

// What a thread has of the loop that it is in.
struct Turns {
    std::uint64_t next[most_moving_sites];    // inline code stores: what is to be …
    std::uint64_t address[most_moving_sites]; // lowest of each site in the first turn
    Loop* loop;                               // null: in none
    std::uint32_t planned;
    std::uint32_t done;    // and counted
    std::uint32_t crosses; // a bit per site: it is counted already, in several units
    std::uint32_t once[2]; // per direction, a bit per site: one turn is counted already
    // What inline code counts down from planned - 1 after each turn but the last.
    std::int64_t* left;
    std::uint64_t* instructions; // of the thread: inline code counts them
};

// Returns to what inline code does for `loop`, whose addresses are stored.
void begin_turns(ThreadCounters& thread, Loop& loop);
// Counts what has begun up to now, once.
void settle_turns(ThreadCounters& thread);
// The loop is left.
void end_turns(ThreadCounters& thread);

} // namespace warren::locality::counts
