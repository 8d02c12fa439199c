#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/balance/balancer.hpp"
#include "runtime/balance/shares.hpp"

namespace warren::balance {

namespace {

// The exchange that makes two workers most equal: a rank of the one that has more, and for it one
// of the other's or nobody.
struct Step {
    std::uint32_t rank = 0;
    std::uint32_t other = 0;
    bool exchanges = false;
    double moved = 0; // load; 0: there is none
};

Step best_step(const Matrix& matrix, const Shares& shares, std::uint32_t from, std::uint32_t to) {
    const double wanted = (shares.load(from) - shares.load(to)) / 2;
    Step best;
    const auto consider = [&](const Step& step) {
        if (step.moved > 0 && step.moved < 2 * wanted &&
            (best.moved == 0 || std::abs(step.moved - wanted) < std::abs(best.moved - wanted))) {
            best = step;
        }
    };
    const auto by_load = [&](std::uint32_t rank, double load) { return matrix.loads[rank] < load; };
    const auto& ranks = shares.ranks(from); // by load
    const auto& others = shares.ranks(to);
    if (const double most = ranks.empty() ? 0 : matrix.loads[ranks.back()];
        most > 0 && most <= wanted) { // nothing moves more than the first of these does
        return {.rank = *std::lower_bound(ranks.begin(), ranks.end(), most, by_load),
                .moved = most};
    }
    for (const std::uint32_t rank : ranks) {
        const double load = matrix.loads[rank];
        consider({.rank = rank, .moved = load});
        // For it one whose load is nearest to what is too much.
        const auto place = std::lower_bound(others.begin(), others.end(), load - wanted, by_load);
        for (const auto near : {place, place == others.begin() ? place : place - 1}) {
            if (near != others.end()) {
                consider({rank, *near, true, load - matrix.loads[*near]});
            }
        }
    }
    return best;
}

} // namespace

Placement place_refined(const Matrix& matrix) {
    Shares shares(matrix);
    std::vector<std::uint32_t> order(matrix.workers);
    // Each step makes the sum of squares smaller; the limit is for loads that differ by rounding.
    for (std::uint32_t step = 0; step < 4 * matrix.ranks(); ++step) {
        std::iota(order.begin(), order.end(), 0U);
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return shares.load(a) < shares.load(b);
        });
        const std::uint32_t most = order.back();
        if (shares.load(most) <= shares.limit()) {
            break;
        }
        Step best;
        std::uint32_t to = 0;
        // The least loaded first: whoever can take something.
        for (std::size_t index = 0; best.moved == 0 && index + 1 < order.size(); ++index) {
            to = order[index];
            best = best_step(matrix, shares, most, to);
        }
        if (best.moved == 0) {
            break;
        }
        shares.move(best.rank, to);
        if (best.exchanges) {
            shares.move(best.other, most);
        }
    }
    return shares.placement();
}

} // namespace warren::balance
