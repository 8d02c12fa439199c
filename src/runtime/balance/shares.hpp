// Shares: which ranks each worker has while a balancer moves them, and their loads.
// Invariant: a worker's ranks are in the order of their loads, equal ones by number.
// Thread rule: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "runtime/balance/matrix.hpp"

namespace warren::balance {

class Shares {
  public:
    explicit Shares(const Matrix& matrix)
        : matrix_(matrix),
          placement_(matrix.placement),
          loads_(worker_loads(matrix, placement_)),
          ranks_(matrix.workers) {
        for (std::uint32_t rank = 0; rank < matrix.ranks(); ++rank) {
            ranks_[placement_[rank]].push_back(rank);
        }
        for (std::vector<std::uint32_t>& list : ranks_) {
            std::sort(list.begin(), list.end(), order_);
        }
        constexpr double tolerance = 1.02; // measured loads differ by as much anyway
        limit_ = std::accumulate(loads_.begin(), loads_.end(), 0.0) / matrix.workers * tolerance;
    }

    // The load that a worker may have to be called balanced.
    double limit() const { return limit_; }
    double load(std::uint32_t worker) const { return loads_[worker]; }
    std::uint32_t worker(std::uint32_t rank) const { return placement_[rank]; }
    const std::vector<std::uint32_t>& ranks(std::uint32_t worker) const { return ranks_[worker]; }
    const Placement& placement() const { return placement_; }

    void move(std::uint32_t rank, std::uint32_t to) {
        const std::uint32_t from = placement_[rank];
        std::vector<std::uint32_t>& left = ranks_[from];
        left.erase(std::lower_bound(left.begin(), left.end(), rank, order_));
        std::vector<std::uint32_t>& got = ranks_[to];
        got.insert(std::lower_bound(got.begin(), got.end(), rank, order_), rank);
        loads_[from] -= matrix_.loads[rank];
        loads_[to] += matrix_.loads[rank];
        placement_[rank] = to;
    }

  private:
    // By load, equal ones by number.
    struct Order {
        const std::vector<double>& loads;
        bool operator()(std::uint32_t a, std::uint32_t b) const {
            return loads[a] != loads[b] ? loads[a] < loads[b] : a < b;
        }
    };

    const Matrix& matrix_;
    const Order order_{matrix_.loads};
    Placement placement_;
    std::vector<double> loads_;
    std::vector<std::vector<std::uint32_t>> ranks_; // of each worker
    double limit_ = 0;
};

} // namespace warren::balance
