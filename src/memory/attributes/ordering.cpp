#include "memory/attributes/ordering.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace warren::memory {

namespace {

// Products of doubles may miss an exact equality (a fifth more than 120 is 144) by their last bit.
constexpr double rounding = 1e-9;

class Sorter {
  public:
    Sorter(std::span<const Candidate> candidates, std::span<const Column> columns)
        : candidates_(candidates), columns_(columns) {}

    std::vector<Placed> sorted() {
        std::vector<std::size_t> all(candidates_.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        std::sort(all.begin(), all.end(), [&](std::size_t one, std::size_t other) {
            return candidates_[one].relation < candidates_[other].relation;
        });
        for (auto begin = all.begin(); begin != all.end();) {
            const auto end = std::find_if(begin, all.end(), [&](std::size_t index) {
                return candidates_[index].relation != candidates_[*begin].relation;
            });
            split({begin, end}, 0);
            begin = end;
        }
        return std::move(placed_);
    }

  private:
    // Sorts a group of equals by the columns from `column` on.
    void split(std::span<std::size_t> group, std::size_t column) {
        if (column == columns_.size()) {
            finish(group);
            return;
        }
        const Column& by = columns_[column];
        std::sort(group.begin(), group.end(), [&](std::size_t one, std::size_t other) {
            return better(by, by.values[one], by.values[other]);
        });
        while (!group.empty()) {
            const std::uint64_t leader = by.values[group.front()];
            const auto end = std::find_if(group.begin(), group.end(), [&](std::size_t index) {
                return !equals_leader(by, leader, by.values[index]);
            });
            const auto count = static_cast<std::size_t>(end - group.begin());
            split(group.first(count), column + 1);
            group = group.subspan(count);
        }
    }

    void finish(std::span<std::size_t> equals) {
        std::sort(equals.begin(), equals.end(), [&](std::size_t one, std::size_t other) {
            return std::tie(candidates_[one].distance, candidates_[one].node) <
                   std::tie(candidates_[other].distance, candidates_[other].node);
        });
        for (const std::size_t index : equals) {
            placed_.push_back({index, tier_});
        }
        ++tier_;
    }

    static bool better(const Column& by, std::uint64_t one, std::uint64_t other) {
        if (one == no_value || other == no_value) {
            return other == no_value && one != no_value;
        }
        return by.more_is_better ? one > other : one < other;
    }

    std::span<const Candidate> candidates_;
    std::span<const Column> columns_;
    std::vector<Placed> placed_;
    std::uint32_t tier_ = 0;
};

} // namespace

bool equals_leader(const Column& column, std::uint64_t leader, std::uint64_t value) {
    if (leader == value) {
        return true;
    }
    if (leader == no_value || value == no_value || column.tolerance == 0) {
        return false;
    }
    const auto best = static_cast<double>(column.more_is_better ? value : leader);
    const auto worst = static_cast<double>(column.more_is_better ? leader : value);
    return worst <= best * (1 + column.tolerance) * (1 + rounding);
}

std::vector<Placed> order(std::span<const Candidate> candidates, std::span<const Column> columns) {
    return Sorter(candidates, columns).sorted();
}

} // namespace warren::memory
