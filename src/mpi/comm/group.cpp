#include "mpi/comm/group.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace warren::comm {

namespace {

// Ranks of a map: start, start + step, …
struct Progression {
    std::int64_t start = 0;
    std::int64_t step = 1;
    std::int64_t count = 0;
};

std::int64_t ceil_divide(std::int64_t dividend, std::int64_t divisor) {
    return dividend / divisor + (dividend % divisor > 0 ? 1 : 0);
}

// The number by which `number` must be multiplied to be 1 modulo `modulus`; they have no common
// divisor.
std::int64_t inverse_of(std::int64_t number, std::int64_t modulus) {
    std::int64_t rest = modulus;
    std::int64_t next = ((number % modulus) + modulus) % modulus;
    std::int64_t factor = 0;
    std::int64_t next_factor = 1;
    while (next != 0) {
        const std::int64_t quotient = rest / next;
        rest = std::exchange(next, rest - quotient * next);
        factor = std::exchange(next_factor, factor - quotient * next_factor);
    }
    return ((factor % modulus) + modulus) % modulus;
}

// The ranks of `first` that are in `second`, both affine: where two progressions meet.
Progression common(const RankForm& first, const RankForm& second) {
    if (first.size == 0 || second.size == 0) {
        return {};
    }
    const std::int64_t distance = static_cast<std::int64_t>(second.offset - first.offset);
    const std::int64_t modulus = std::abs(second.stride);
    const std::int64_t divisor = std::gcd(first.stride, modulus);
    if (distance % divisor != 0) {
        return {};
    }
    // first.stride · rank ≡ distance, modulo the second's stride.
    Progression ranks;
    ranks.step = modulus / divisor;
    std::int64_t residue = distance / divisor % ranks.step;
    residue += residue < 0 ? ranks.step : 0;
    if (ranks.step > 1) {
        residue = static_cast<std::int64_t>(
            DoubleWord{static_cast<std::uint64_t>(residue)} *
            static_cast<std::uint64_t>(inverse_of(first.stride / divisor, ranks.step)) %
            static_cast<std::uint64_t>(ranks.step));
    } else {
        residue = 0;
    }
    // Between the second's ends, and in the first.
    std::int64_t low = distance;
    std::int64_t high = distance + second.stride * (second.size - 1);
    if (low > high) {
        std::swap(low, high);
    }
    const std::int64_t stride = std::abs(first.stride);
    if (first.stride < 0) {
        low = std::exchange(high, -low);
        low = -low;
    }
    const std::int64_t begin = std::max<std::int64_t>(0, ceil_divide(low, stride));
    const std::int64_t end = std::min<std::int64_t>(first.size - 1, -ceil_divide(-high, stride));
    ranks.start = residue + ceil_divide(begin - residue, ranks.step) * ranks.step;
    ranks.count = ranks.start > end ? 0 : (end - ranks.start) / ranks.step + 1;
    return ranks;
}

RankMap select(const RankMap& map, const Progression& ranks) {
    return map.select_range(static_cast<int>(ranks.start), static_cast<int>(ranks.step),
                            static_cast<int>(ranks.count));
}

// All of the map but these; false: that is no progression.
bool select_rest(const RankMap& map, const Progression& ranks, RankMap& made) {
    const std::int64_t size = map.size();
    if (ranks.count == 0) {
        made = map;
    } else if (ranks.count == size) {
        made = RankMap();
    } else if ((ranks.step == 1 || ranks.count == 1) && ranks.start == 0) {
        made = select(map, {ranks.count, 1, size - ranks.count});
    } else if ((ranks.step == 1 || ranks.count == 1) && ranks.start + ranks.count == size) {
        made = select(map, {0, 1, ranks.start});
    } else if (ranks.step == 2 && ranks.start < 2 && ranks.start + 2 * ranks.count >= size) {
        made = select(map, {1 - ranks.start, 2, size - ranks.count});
    } else {
        return false;
    }
    return true;
}

// The members of `first` whose being in `second` is `wanted`.
RankMap filter(const RankMap& first, const RankMap& second, bool wanted) {
    if (first.affine() && second.affine()) {
        const Progression ranks = common(first.form(), second.form());
        RankMap rest;
        if (wanted) {
            return select(first, ranks);
        }
        if (select_rest(first, ranks, rest)) {
            return rest;
        }
    }
    std::vector<int> members;
    for (int rank = 0; rank < first.size(); ++rank) {
        if ((second.rank_of(first.process(rank)) != MPI_UNDEFINED) == wanted) {
            members.push_back(rank);
        }
    }
    return first.select(members.data(), static_cast<int>(members.size()));
}

// A range of ranks, up or down, as a progression; false: it is empty, or refused by expand().
bool progression_of(const RankMap& map, const int range[3], Progression& ranks) {
    const std::int64_t first = range[0];
    const std::int64_t stride = range[2];
    if (stride == 0 || first < 0 || first >= map.size()) {
        return false;
    }
    const std::int64_t steps = (range[1] - first) / stride;
    const std::int64_t last = first + steps * stride;
    if ((range[1] - first) * (stride < 0 ? -1 : 1) < 0 || last < 0 || last >= map.size()) {
        return false;
    }
    ranks = {first, stride, steps + 1};
    return true;
}

Error mark(const RankMap& map, int rank, std::vector<bool>& listed) {
    if (rank < 0 || rank >= map.size()) {
        return fail(MPI_ERR_RANK, "rank %d is not in the group's 0…%d", rank, map.size() - 1);
    }
    if (listed[static_cast<std::size_t>(rank)]) {
        return fail(MPI_ERR_RANK, "rank %d is listed twice", rank);
    }
    listed[static_cast<std::size_t>(rank)] = true;
    return {};
}

Error expand(const RankMap& map, int count, const int ranges[][3], std::vector<int>& ranks) {
    for (int i = 0; i < count; ++i) {
        const std::int64_t first = ranges[i][0];
        const std::int64_t last = ranges[i][1];
        const std::int64_t stride = ranges[i][2];
        if (stride == 0) {
            return fail(MPI_ERR_ARG, "range %d has stride 0", i);
        }
        if (first < 0 || first >= map.size()) {
            return fail(MPI_ERR_RANK,
                        "range %d begins with rank %d, which is not in the group's 0…%d", i,
                        ranges[i][0], map.size() - 1);
        }
        for (std::int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
            if (rank < 0 || rank >= map.size()) {
                return fail(MPI_ERR_RANK, "range %d has rank %d, which is not in the group's 0…%d",
                            i, static_cast<int>(rank), map.size() - 1);
            }
            ranks.push_back(static_cast<int>(rank));
        }
    }
    return {};
}

} // namespace

RankMap union_of(const RankMap& first, const RankMap& second) {
    const RankMap added = difference_of(second, first);
    if (added.size() == 0) {
        return first;
    }
    if (first.size() == 0) {
        return second;
    }
    if (first.affine() && added.affine()) {
        // One may continue the other.
        const RankForm head = first.form();
        const RankForm tail = added.form();
        const auto gap = static_cast<std::int64_t>(tail.offset - head[head.size - 1]);
        if ((head.size == 1 || head.stride == gap) && (tail.size == 1 || tail.stride == gap)) {
            return RankMap::affine(head.offset, gap, head.size + tail.size);
        }
    }
    std::vector<Process> members;
    members.reserve(static_cast<std::size_t>(first.size()) +
                    static_cast<std::size_t>(added.size()));
    for (const RankMap* map : {&first, &added}) {
        for (int rank = 0; rank < map->size(); ++rank) {
            members.push_back(map->process(rank));
        }
    }
    return RankMap::of_processes(members);
}

RankMap intersection_of(const RankMap& first, const RankMap& second) {
    return filter(first, second, true);
}

RankMap difference_of(const RankMap& first, const RankMap& second) {
    return filter(first, second, false);
}

Error include(const RankMap& map, int count, const int ranks[], RankMap& made) {
    std::vector<bool> listed(static_cast<std::size_t>(map.size()));
    for (int i = 0; i < count; ++i) {
        if (Error error = mark(map, ranks[i], listed)) {
            return error;
        }
    }
    made = map.select(ranks, count);
    return {};
}

Error exclude(const RankMap& map, int count, const int ranks[], RankMap& made) {
    std::vector<bool> listed(static_cast<std::size_t>(map.size()));
    for (int i = 0; i < count; ++i) {
        if (Error error = mark(map, ranks[i], listed)) {
            return error;
        }
    }
    std::vector<int> rest;
    for (int rank = 0; rank < map.size(); ++rank) {
        if (!listed[static_cast<std::size_t>(rank)]) {
            rest.push_back(rank);
        }
    }
    made = map.select(rest.data(), static_cast<int>(rest.size()));
    return {};
}

Error include_ranges(const RankMap& map, int count, const int ranges[][3], RankMap& made) {
    Progression range;
    if (count == 1 && progression_of(map, ranges[0], range)) {
        made = select(map, range);
        return {};
    }
    std::vector<int> ranks;
    if (Error error = expand(map, count, ranges, ranks)) {
        return error;
    }
    return include(map, static_cast<int>(ranks.size()), ranks.data(), made);
}

Error exclude_ranges(const RankMap& map, int count, const int ranges[][3], RankMap& made) {
    Progression range;
    if (count == 1 && progression_of(map, ranges[0], range)) {
        if (range.step < 0) {
            range = {range.start + (range.count - 1) * range.step, -range.step, range.count};
        }
        if (select_rest(map, range, made)) {
            return {};
        }
    }
    std::vector<int> ranks;
    if (Error error = expand(map, count, ranges, ranks)) {
        return error;
    }
    return exclude(map, static_cast<int>(ranks.size()), ranks.data(), made);
}

Error translate(const RankMap& first, int count, const int ranks[], const RankMap& second,
                int translated[]) {
    for (int i = 0; i < count; ++i) {
        if (ranks[i] == MPI_PROC_NULL) {
            translated[i] = MPI_PROC_NULL;
        } else if (ranks[i] >= 0 && ranks[i] < first.size()) {
            translated[i] = second.rank_of(first.process(ranks[i]));
        } else {
            return fail(MPI_ERR_RANK, "rank %d is not in the group's 0…%d", ranks[i],
                        first.size() - 1);
        }
    }
    return {};
}

int compare(const RankMap& first, const RankMap& second) {
    if (first == second) {
        return MPI_IDENT;
    }
    if (first.size() != second.size()) {
        return MPI_UNEQUAL;
    }
    RankForm one;
    RankForm other;
    if (first.regular() && second.regular() && first.form().sorted(one) &&
        second.form().sorted(other)) {
        return one == other ? MPI_SIMILAR : MPI_UNEQUAL;
    }
    for (int rank = 0; rank < first.size(); ++rank) {
        if (second.rank_of(first.process(rank)) == MPI_UNDEFINED) {
            return MPI_UNEQUAL;
        }
    }
    return MPI_SIMILAR;
}

} // namespace warren::comm
