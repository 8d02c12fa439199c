// Balancing: assigns home workers to fibres, again and again, so that all workers finish at the
// same time.
//
// A balancer (runtime/balance/balancer.hpp) gets the load of each fibre between two points of the
// program, and assigns home workers. From then on a waker puts a fibre into the queue of its home
// worker, also when another worker had taken it meanwhile. A fibre also goes there when it yields
// or is at a point. The fibre's memory stays where it is, unless the callback `placed` moves it.
//
// At a point (point()) each fibre counts its own load, and the last fibre to arrive runs the
// balancer. So loads are those of whole steps of a program, in whatever order the fibres ran;
// single outliers are left out (runtime/balance/steady_load.hpp). For programs that have no points,
// the monitor looks at the clock (tick()).
//
// Thread rule: fibres call point(), the monitor calls tick(). One thread at a time balances; the
// others go on.
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
    std::uint32_t collectives = 0;               // so many collectives make a point; 0: no points
    std::vector<std::uint32_t> distances;        // of workers (runtime/balance/matrix.hpp)
    std::string record;                          // file for the last matrix; empty: none
    // Called once if the record can't be written, with the errno. May be null.
    void (*record_failed)(int error) = nullptr;
    // Called after each balancing with the home workers of all fibres before and now, to move their
    // memory. Must not take long. Null: memory stays.
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
    std::vector<Account> accounts_; // a fibre writes its own; the balancing thread reads the loads
    std::vector<std::uint32_t> home_workers_;
    std::vector<std::uint32_t> first_homes_;
    std::vector<std::uint64_t> idled_; // of workers, when last balanced
    std::uint64_t balanced_ticks_ = 0;
    std::uint64_t due_ns_ = 0;
    bool record_failed_ = false;
    // The number of the window in the upper half, and the number of fibres that have arrived at its
    // end in the lower half. They share one word, so that a fibre that ends takes back its arrival
    // in that window and in no later one.
    std::atomic<std::uint64_t> window_{std::uint64_t{1} << 32};
    std::atomic<std::uint32_t> ended_{0};
    std::atomic<bool> busy_{false};
};

} // namespace warren::fibre
