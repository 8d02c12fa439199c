// When a thread's accesses are counted in mode sample: in bursts of its own, which begin and end
// by the number of its instructions.
//
// The thread's instructions are cut into strata of equal length, and each has one burst of
// burst_instructions that begins at a random place in it, each as likely as any other; what would
// reach beyond the stratum's end is at its beginning instead. So each instruction, the first ones
// of a thread and of a stratum too, is counted with the same probability, whatever the program's
// period, and what is counted times `weight`, the stratum's length over the burst's, estimates
// without bias how often the whole program did it. (A block is in the burst if its last instruction
// is. Rows, counters.hpp, are no matter of bursts: they are all counted, and weigh 1.) The first
// burst of a thread, if there is allowance for it (Pool), begins with the thread and is no sample:
// its weight is 1, so that what short programs do is counted exactly.
//
// Strata get longer or shorter by the measured processor time that bursts cost, which stays below
// most_cost of all. That decision depends on the past only, which keeps the estimate unbiased.
//
// How sure is a share s of the accesses? About as sure as by one draw per burst, each of which sees
// one kind of accesses only: its standard error is about sqrt(s (1 - s) / bursts), mostly less.
// More if few bursts have a great part of the accesses, or of the weight: that is not looked at.
//
// The budget, a quadword in the thread's storage, is what inline code subtracts instructions from:
//     0 or more    outside bursts: so many until the next one
//     small < 0    a burst is to begin
//     in_burst + n within a burst, of which n are left; n < 0: it is to end
// Thread rule: a thread's own; others may read instructions() and bursts.
#pragma once

#include <cstdint>

namespace warren::locality::counts {

constexpr std::int64_t in_burst = -(std::int64_t{1} << 62);
// What the upper half of the budget is within bursts: there they have fewer than 2^32 left.
constexpr std::int32_t in_burst_half = -(std::int32_t{1} << 30);
constexpr std::uint64_t burst_instructions = 250'000;
constexpr std::uint64_t first_burst_instructions = 8'000'000;
constexpr std::uint32_t least_weight = 16;
constexpr std::uint32_t usual_weight = 64;
constexpr std::uint32_t largest_weight = 4096;
constexpr std::uint64_t most_cost = 20; // thousandths of the processor time
constexpr std::uint64_t least_cost = 5;

// Instructions that first bursts of threads may take: threads that come and go by thousands are
// not to be counted from beginning to end. All threads of a process.
struct Pool {
    std::int64_t instructions = 4 * std::int64_t{first_burst_instructions};
    std::int64_t most = 4 * std::int64_t{first_burst_instructions};
};

class Bursts {
  public:
    // The thread begins: in a burst or before one. `budget` gets its value.
    void start(std::int64_t* budget, Pool& pool, std::uint64_t seed, std::uint64_t cpu_ns);
    // What is left of the first burst goes back; before the thread's storage goes.
    void stop();

    // The budget says that a burst is to begin or to end. True: the weight of what is counted from
    // now on is another.
    bool turn(std::uint64_t cpu_ns);

    bool counting() const { return counting_; }
    std::uint32_t weight() const { return weight_; }
    std::uint64_t bursts() const { return __atomic_load_n(&bursts_, __ATOMIC_RELAXED); }
    std::uint64_t instructions() const; // of the thread up to now, all

  private:
    void begin(std::uint64_t instructions);
    void draw(); // the next stratum
    // To the next piece of strata; `over` instructions of it are done.
    void go_on(std::int64_t over);
    void adapt();
    std::uint64_t random_below(std::uint64_t limit);
    void set_budget(std::int64_t budget);

    std::int64_t* budget_ = nullptr;
    Pool* pool_ = nullptr;
    bool counting_ = false;
    bool first_ = false;       // the first burst, which is no sample
    std::uint32_t weight_ = 1; // of what is counted
    std::uint32_t next_weight_ = usual_weight;
    // Of the stratum, in this order: what of its burst has come round, nothing, the burst, nothing.
    static constexpr unsigned number_of_pieces = 4;
    std::int64_t pieces_[number_of_pieces] = {};
    unsigned piece_ = number_of_pieces; // the next
    std::int64_t last_budget_ = 0;      // that was set
    std::uint64_t instructions_ = 0;    // before that
    std::uint64_t bursts_ = 0;
    std::uint64_t random_ = 1;
    // Since the strata got their length: processor time and instructions outside bursts and within.
    std::uint64_t since_ns_ = 0;
    std::uint64_t outside_ns_ = 0;
    std::uint64_t outside_ = 0;
    std::uint64_t within_ns_ = 0;
    std::uint64_t within_ = 0;
    std::uint64_t adapted_from_ = 0; // bursts
};

} // namespace warren::locality::counts
