// Which processors each rank may run on.
//
// The machine's cores, caches and NUMA nodes come from hwloc, which is loaded only when something
// is to be bound: a job that binds nothing starts without it. Thread rule: mpiexec's only thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/cpu_set.hpp"

namespace warren::launch {

// A part of the machine that a rank can be bound to.
struct Place {
    std::string name; // "core 3"
    CpuSet processors;
};

struct BindingPlan {
    BindTo bound_to = BindTo::none; // none: sets and names are empty
    std::vector<CpuSet> sets;       // one per rank
    std::vector<std::string> names; // of the places, one per rank
    std::string reason;             // of a choice that was not the user's
};

// Decides for `ranks` ranks on the processors in `allowed`. Without a core for each rank, or when
// control groups grant less time than the processors have (`quota`; 0: they don't), automatic binds
// nothing. Errors: hwloc is missing, or the machine has no such places.
Error plan_bindings(BindTo bind_to, std::uint32_t ranks, const CpuSet& allowed, std::uint32_t quota,
                    BindingPlan& plan);

// Spreads ranks over places. With share, each gets its equal share of neighbouring places (there
// are at least as many places as ranks); else one place, neighbours first in blocks (`block`) or
// one after another, starting over when there are more ranks than places.
enum class Spread { share, block, one_by_one };
void assign_places(const std::vector<Place>& places, std::uint32_t ranks, Spread spread,
                   BindingPlan& plan);

// Gives each of `together` neighbouring ranks, which are one process, the places of all of them.
void join_places(std::uint32_t together, BindingPlan& plan);

// The machine's places of a kind that `allowed` leaves something of, in hwloc's order.
Error find_places(BindTo kind, const CpuSet& allowed, std::vector<Place>& places);

// "found, interface 2.8" (the interface's number moves less often than hwloc's), or why it can't be
// used.
std::string hwloc_version();

} // namespace warren::launch
