// Matrix: what a balancer looks at. How long each rank ran in a stretch of the program, what ranks
// sent to each other, the workers and how far they are from each other, and who is where now.
//
// It has a text form, so that a running program's can be kept (mpiexec --balance-record) and
// balancers compared on it afterwards (warren balance). Lines, in this order, in any number where
// there are several; '#' begins a comment:
//     warren-balance 1
//     workers W
//     distance D0 … DW-1                        one line per worker, from the first on
//     rank LOAD WORKER MEMORY                   one line per rank, from the first on
//     exchange FROM TO MESSAGES BYTES
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace warren::balance {

// The ranks' workers.
using Placement = std::vector<std::uint32_t>;

struct Exchange {
    std::uint32_t from;
    std::uint32_t to;
    std::uint64_t messages;
    std::uint64_t bytes;
};

struct Matrix {
    std::vector<double> loads; // seconds, by rank
    Placement placement;       // now
    Placement memory;          // the worker near each rank's memory: where it began
    std::vector<Exchange> exchanges;
    std::uint32_t workers = 0;
    // From worker to worker, row by row, in steps up and down the machine: 0 to itself, 1 on the
    // same core, and 1 more for each of cache, NUMA node and package that they don't share.
    std::vector<std::uint32_t> distances;

    std::uint32_t ranks() const { return static_cast<std::uint32_t>(loads.size()); }
    std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
        return distances[std::size_t{from} * workers + to];
    }
};

// Reads the text form. Errors (class MPI_ERR_ARG) name the line.
Error parse(std::string_view text, Matrix& matrix);
std::string text_of(const Matrix& matrix);

// λ, the load imbalance: what the largest is above the mean, relative to that; 0 when nobody has
// any.
double imbalance(const std::vector<double>& loads);
// The loads of the workers if ranks were placed so.
std::vector<double> worker_loads(const Matrix& matrix, const Placement& placement);
// Bytes times distance, of all exchanges.
double traffic(const Matrix& matrix, const Placement& placement);
// Ranks that are elsewhere than now.
std::uint32_t moves(const Matrix& matrix, const Placement& placement);

} // namespace warren::balance
