#include <algorithm>
#include <numeric>

#include "runtime/balance/balancer.hpp"
#include "runtime/balance/shares.hpp"

namespace warren::balance {

namespace {

constexpr int pass_limit = 16;
// Ranks with which one is considered to change places: the nearest by load, on either side. Fewer
// when there are so many ranks that one pass over all would take too long.
constexpr std::uint64_t most_partners = 64;
constexpr std::uint64_t least_partners = 4;
// How often the search looks at a peer, at a nanosecond or two: whoever waits for it does no more
// than some dozen milliseconds, however many ranks there are.
constexpr std::uint64_t look_limit = 20'000'000;
// Bytes that a rank that runs for a second takes from its memory, as if it were messages: far less
// than what a core can, because most of it comes from the caches.
constexpr double memory_bytes_per_s = 1e9;

class Search {
  public:
    explicit Search(const Matrix& matrix)
        : matrix_(matrix), start_(refined(matrix)), shares_(start_) {
        peers_.resize(matrix.ranks());
        for (const Exchange& exchange : matrix.exchanges) {
            if (exchange.from != exchange.to) {
                const auto bytes = static_cast<double>(exchange.bytes);
                peers_[exchange.from].push_back({exchange.to, bytes});
                peers_[exchange.to].push_back({exchange.from, bytes});
            }
        }
        by_load_.resize(matrix.ranks());
        std::iota(by_load_.begin(), by_load_.end(), 0U);
        std::stable_sort(by_load_.begin(), by_load_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return matrix.loads[a] < matrix.loads[b];
        });
        place_of_.resize(matrix.ranks());
        for (std::uint32_t place = 0; place < matrix.ranks(); ++place) {
            place_of_[by_load_[place]] = place;
        }
        const std::uint64_t looks = 2 * matrix.exchanges.size() + matrix.ranks(); // of all costs
        const std::uint64_t costs = look_limit / 2 / std::max<std::uint64_t>(looks, 1);
        partners_ = static_cast<std::uint32_t>(
            std::clamp((costs - std::min<std::uint64_t>(costs, matrix.workers)) / costs_of_partners,
                       least_partners, most_partners));
        limit_ = shares_.limit();
        for (std::uint32_t worker = 0; worker < matrix.workers; ++worker) {
            limit_ = std::max(limit_, shares_.load(worker));
        }
    }

    Placement run() {
        // Those with most to gain first: the search may end before all have had their turn.
        std::vector<double> costs(matrix_.ranks());
        for (std::uint32_t rank = 0; rank < matrix_.ranks(); ++rank) {
            costs[rank] = cost(rank, shares_.worker(rank), matrix_.ranks(), 0);
        }
        std::vector<std::uint32_t> order(matrix_.ranks());
        std::iota(order.begin(), order.end(), 0U);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return costs[a] > costs[b]; });
        bool changed = true;
        for (int pass = 0; pass < pass_limit && changed; ++pass) {
            changed = false;
            for (const std::uint32_t rank : order) {
                if (looks_ > look_limit) {
                    return shares_.placement();
                }
                changed = improve(place_of_[rank]) || changed;
            }
        }
        return shares_.placement();
    }

  private:
    struct Peer {
        std::uint32_t rank;
        double bytes;
    };

    static Matrix refined(const Matrix& matrix) {
        Matrix made = matrix;
        made.placement = place_refined(matrix);
        return made;
    }

    // Cost of a rank if it were on a worker, and `absent`, if that is a rank, where it is then.
    double cost(std::uint32_t rank, std::uint32_t worker, std::uint32_t absent,
                std::uint32_t place_of_absent) {
        looks_ += peers_[rank].size() + 1;
        double sum = matrix_.loads[rank] * memory_bytes_per_s *
                     matrix_.distance(worker, matrix_.memory[rank]);
        for (const Peer& peer : peers_[rank]) {
            sum += peer.bytes * matrix_.distance(worker, peer.rank == absent
                                                             ? place_of_absent
                                                             : shares_.worker(peer.rank));
        }
        return sum;
    }

    // Does what helps most with the rank at this place of the order of loads.
    bool improve(std::uint32_t place) {
        const std::uint32_t rank = by_load_[place];
        const std::uint32_t from = shares_.worker(rank);
        const std::uint32_t nobody = matrix_.ranks();
        const double now = cost(rank, from, nobody, 0);
        double best = 1e-9 * now; // what is gained at least
        std::uint32_t best_worker = from;
        std::uint32_t best_partner = nobody;
        for (std::uint32_t to = 0; to < matrix_.workers; ++to) {
            if (to != from && shares_.load(to) + matrix_.loads[rank] <= limit_) {
                const double gain = now - cost(rank, to, nobody, 0);
                if (gain > best) {
                    best = gain;
                    best_worker = to;
                }
            }
        }
        const std::uint32_t first = place > partners_ ? place - partners_ : 0;
        const std::uint32_t last = std::min(place + partners_, matrix_.ranks() - 1);
        for (std::uint32_t other_place = first; other_place <= last; ++other_place) {
            const std::uint32_t other = by_load_[other_place];
            const std::uint32_t to = shares_.worker(other);
            const double more = matrix_.loads[rank] - matrix_.loads[other];
            if (to == from || shares_.load(to) + more > limit_ ||
                shares_.load(from) - more > limit_) {
                continue;
            }
            const double gain = now + cost(other, to, nobody, 0) - cost(rank, to, other, from) -
                                cost(other, from, rank, to);
            if (gain > best) {
                best = gain;
                best_worker = to;
                best_partner = other;
            }
        }
        if (best_worker == from) {
            return false;
        }
        shares_.move(rank, best_worker);
        if (best_partner != nobody) {
            shares_.move(best_partner, from);
        }
        return true;
    }

    const Matrix& matrix_;
    const Matrix start_;
    Shares shares_;
    std::vector<std::vector<Peer>> peers_;
    std::vector<std::uint32_t> by_load_;
    std::vector<std::uint32_t> place_of_;                     // of each rank in that order
    static constexpr std::uint64_t costs_of_partners = 2 * 4; // for one more on either side
    std::uint32_t partners_ = 0;
    std::uint64_t looks_ = 0;
    double limit_ = 0; // of a worker's load
};

} // namespace

Placement place_by_topology(const Matrix& matrix) {
    return Search(matrix).run();
}

} // namespace warren::balance
