// Bursts: when a thread's accesses are counted in mode sample. Each thread has bursts of its own,
// which begin and end by the number of its instructions.
//
// The thread's instructions are cut into strata of equal length. Each stratum has one burst of
// burst_instructions that begins at a random place, each place as likely as any other; the part
// that would pass the stratum's end lies at its beginning instead. So each instruction, also the
// first ones of a thread and of a stratum, is counted with the same probability, whatever the
// program's period. Counts times `weight`, the stratum's length over the burst's, are unbiased
// estimates. A block is in the burst if its last instruction is. Rows (counters.hpp) are all
// counted and weigh 1. The first burst of a thread, if the Pool allows it, begins with the thread
// and is no sample: its weight is 1, so that short programs are counted exactly.
//
// Strata get longer or shorter so that the measured processor time that bursts cost stays below
// most_cost of all. This decision depends on the past only, which keeps the estimate unbiased.
//
// A share s of the accesses has a standard error of about sqrt(s (1 - s) / bursts), mostly less:
// about that of one draw per burst, as each burst sees one kind of accesses only. It is more if few
// bursts have a great part of the accesses or of the weight, which is not examined.
//
// The budget is a quadword in the thread's storage, from which inline code subtracts instructions:
//     0 or more    outside bursts: so many until the next one
//     small < 0    a burst is to begin
//     in_burst + n within a burst, of which n are left; n < 0: it is to end
// Thread rule: a thread's own; others may read instructions() and bursts.
#pragma once

#include <cstdint>

namespace warren::locality::counts {

constexpr std::int64_t in_burst = -(std::int64_t{1} << 62);
// Upper half of the budget within bursts, in which fewer than 2^32 instructions are left.
constexpr std::int32_t in_burst_half = -(std::int32_t{1} << 30);
constexpr std::uint64_t burst_instructions = 250'000;
constexpr std::uint64_t first_burst_instructions = 8'000'000;
constexpr std::uint32_t least_weight = 16;
constexpr std::uint32_t usual_weight = 64;
constexpr std::uint32_t largest_weight = 4096;
constexpr std::uint64_t most_cost = 20; // thousandths of the processor time
constexpr std::uint64_t least_cost = 5;

// Instructions that first bursts of a process's threads may take together, so that threads which
// come and go by thousands are not counted from beginning to end.
struct Pool {
    std::int64_t instructions = 4 * std::int64_t{first_burst_instructions};
    std::int64_t most = 4 * std::int64_t{first_burst_instructions};
};

class Bursts {
  public:
    // The thread begins: in a burst or before one. `budget` gets its value.
    void start(std::int64_t* budget, Pool& pool, std::uint64_t seed, std::uint64_t cpu_ns);
    // Returns the rest of the first burst to the pool. Call before the thread's storage is freed.
    void stop();

    // Begins or ends a burst, when the budget says so. True: the weight of later counts has
    // changed.
    bool turn(std::uint64_t cpu_ns);

    bool counting() const { return counting_; }
    std::uint32_t weight() const { return weight_; }
    std::uint64_t bursts() const { return __atomic_load_n(&bursts_, __ATOMIC_RELAXED); }
    std::uint64_t instructions() const; // of the thread up to now, all

  private:
    void begin(std::uint64_t instructions);
    void draw(); // the next stratum
    // Goes to the next piece of the strata, of which `over` instructions are done.
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
    // Instructions of the stratum's pieces: the burst's part that wrapped around, a gap, the burst,
    // a gap.
    static constexpr unsigned number_of_pieces = 4;
    std::int64_t pieces_[number_of_pieces] = {};
    unsigned piece_ = number_of_pieces; // the next
    std::int64_t last_budget_ = 0;      // that was set
    std::uint64_t instructions_ = 0;    // before that
    std::uint64_t bursts_ = 0;
    std::uint64_t random_ = 1;
    // Processor time and instructions outside and within bursts, since the strata got their length.
    std::uint64_t since_ns_ = 0;
    std::uint64_t outside_ns_ = 0;
    std::uint64_t outside_ = 0;
    std::uint64_t within_ns_ = 0;
    std::uint64_t within_ = 0;
    std::uint64_t adapted_from_ = 0; // bursts
};

} // namespace warren::locality::counts
