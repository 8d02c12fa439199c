#include <algorithm>
#include <numeric>
#include <queue>

#include "runtime/balance/balancer.hpp"

namespace warren::balance {

Placement place_greedy(const Matrix& matrix) {
    std::vector<std::uint32_t> order(matrix.ranks());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return matrix.loads[a] > matrix.loads[b];
    });
    struct Worker {
        double load;
        std::uint32_t ranks; // so that ranks without a load are spread, too
        std::uint32_t number;
        bool operator<(const Worker& other) const { // the queue's first is its largest
            return load != other.load     ? load > other.load
                   : ranks != other.ranks ? ranks > other.ranks
                                          : number > other.number;
        }
    };
    std::priority_queue<Worker> workers;
    for (std::uint32_t number = 0; number < matrix.workers; ++number) {
        workers.push({0, 0, number});
    }
    Placement placement(matrix.ranks());
    for (const std::uint32_t rank : order) {
        Worker worker = workers.top();
        workers.pop();
        placement[rank] = worker.number;
        worker.load += matrix.loads[rank];
        ++worker.ranks;
        workers.push(worker);
    }
    return placement;
}

} // namespace warren::balance
