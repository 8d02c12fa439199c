// Balancing: gives fibres workers where they are at home, again and again, so that all workers get
// done at the same time.
//
// A balancer (runtime/balance/balancer.hpp) looks at what each fibre ran between two points of the
// program, and says where each should be. From then on who wakes a fibre puts it into the queue of
// its home, also when another worker took it in the meantime, and there it goes when it gives way
// or is at a point. That is all: the fibre's memory stays where it is, unless who is told of it
// (placed) has it follow.
//
// Points are where fibres say that they are at one (point()): each then counts its own load, and
// the last one has the balancer run. So loads are of whole steps of a program, whatever the order
// in which they ran, but for what was out of line once (runtime/balance/steady_load.hpp). Or, where
// programs say nothing, the monitor looks at the clock (tick()).
//
// Thread rule: point() by fibres, tick() by the monitor; one at a time balances, others go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/balance/balancer.hpp"
#include "runtime/balance/load_table.hpp"
#include "runtime/balance/steady_load.hpp"
#include "runtime/fibres/fibre.hpp"

namespace warren::fibre {

class Scheduler;

struct BalancingOptions {
    const balance::Balancer* balancer = nullptr; // null: nothing is done
    std::uint64_t period_ns = 0;                 // by the clock; 0: at points
    std::uint32_t collectives = 0;               // every so many are a point; 0: none is
    std::vector<std::uint32_t> distances;        // of workers (runtime/balance/matrix.hpp)
    std::string record;                          // file for the last matrix; empty: none
    // It can't be written, for this reason (an errno); once. May be null.
    void (*record_failed)(int error) = nullptr;
    // Told of the homes of all fibres before and after each balancing: their memory is to follow.
    // Must not take long. Null: memory stays.
    void (*placed)(const std::uint32_t* before, const std::uint32_t* now,
                   std::uint32_t fibres) = nullptr;
};

class Balancing {
  public:
    Balancing(Scheduler& scheduler, BalancingOptions options);

    const BalancingOptions& options() const { return options_; }
    bool gives_homes() const { return options_.balancer->place != balance::place_none; }
    // The calling fibre is at a point; its home may change.
    void point(Fibre& self);
    // The calling fibre enters a collective operation of all ranks.
    void collective(Fibre& self);
    // Looks at the clock.
    void tick(std::uint64_t now_ns);
    // The workers begin.
    void begin();
    // A fibre has ended: the others need not wait for it at points.
    void ended(const Fibre& fibre);

  private:
    // State of one fibre.
    struct Account {
        std::uint64_t mark = 0; // what it had run when it was last at a point
        std::uint64_t load = 0; // ticks, as expected between this one and the next
        balance::SteadyLoad steady;
        std::uint32_t window = 0;
        std::uint32_t collectives = 0;
        std::uint64_t bytes[balance::peers_kept] = {};    // sent to each peer before this window
        std::uint64_t messages[balance::peers_kept] = {}; // (of its load table)
    };

    void arrive(Fibre& self);
    void balance();
    balance::Matrix matrix();
    void add_exchanges(std::uint32_t fibre, balance::Matrix& matrix);
    void note_imbalance();
    void record(const balance::Matrix& matrix);

    Scheduler& scheduler_;
    const BalancingOptions options_;
    std::vector<Account> accounts_; // each fibre's its own; the loads then of who balances
    std::vector<std::uint32_t> home_workers_;
    std::vector<std::uint32_t> first_homes_;
    std::vector<std::uint64_t> idled_; // of workers, when last balanced
    std::uint64_t balanced_ticks_ = 0;
    std::uint64_t due_ns_ = 0;
    bool record_failed_ = false;
    // The number of the window, and, in the low half, how many have arrived at its end: one word,
    // so that who ends takes back its arrival in that window and no later one.
    std::atomic<std::uint64_t> window_{std::uint64_t{1} << 32};
    std::atomic<std::uint32_t> ended_{0};
    std::atomic<bool> busy_{false};
};

} // namespace warren::fibre
