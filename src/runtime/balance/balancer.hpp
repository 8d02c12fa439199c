// Balancers: which worker each rank should be on, so that all workers get done at the same time.
//
// A balancer is a function of a matrix, in a file of its own, and knows nothing of the scheduler:
// it can be tried on recorded matrices. To add one, write its file and name it in balancer.cpp.
// Thread rule: no state; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/balance/matrix.hpp"

namespace warren::balance {

struct Balancer {
    const char* name;
    const char* what; // it does, for --help
    // A worker for each rank of a matrix with at least one worker.
    Placement (*place)(const Matrix& matrix);
    bool uses_distances; // else nobody needs to find them out
};

const std::vector<Balancer>& balancers();
// Null: there is none of that name.
const Balancer* find_balancer(std::string_view name);

// All ranks stay where they are: for measuring.
Placement place_none(const Matrix& matrix);
// The largest load first, each to the worker that has least: within 4/3 of the best that there is
// (Graham 1969), wherever ranks are now. O(ranks · log ranks).
Placement place_greedy(const Matrix& matrix);
// Moves, and exchanges, as few ranks as it takes to have no worker more than 2 % above the mean.
// O(ranks · moves).
Placement place_refined(const Matrix& matrix);
// As refined, and then moves and exchanges ranks among workers, none of which gets more load than
// that, to have those that talk much near each other and all near their memory.
// O(passes · ranks · (workers + 128) · peers), but no more than some dozen milliseconds: with
// thousands of ranks it considers fewer moves, of those first that have most to gain.
Placement place_by_topology(const Matrix& matrix);

} // namespace warren::balance
