#include "comm/group.hpp"

#include <vector>

namespace warren::comm {

namespace {

// The members of `first` whose being in `second` is `wanted`.
RankMap filter(const RankMap& first, const RankMap& second, bool wanted) {
    std::vector<std::uint32_t> members;
    for (int rank = 0; rank < first.size(); ++rank) {
        if ((second.rank_of(first[rank]) != MPI_UNDEFINED) == wanted) {
            members.push_back(first[rank]);
        }
    }
    if (members.size() == static_cast<std::size_t>(first.size())) {
        return first;
    }
    return RankMap::of(std::move(members));
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
    std::vector<std::uint32_t> members;
    members.reserve(static_cast<std::size_t>(first.size()) +
                    static_cast<std::size_t>(added.size()));
    for (int rank = 0; rank < first.size(); ++rank) {
        members.push_back(first[rank]);
    }
    for (int rank = 0; rank < added.size(); ++rank) {
        members.push_back(added[rank]);
    }
    return RankMap::of(std::move(members));
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
    std::vector<int> ranks;
    if (Error error = expand(map, count, ranges, ranks)) {
        return error;
    }
    return include(map, static_cast<int>(ranks.size()), ranks.data(), made);
}

Error exclude_ranges(const RankMap& map, int count, const int ranges[][3], RankMap& made) {
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
            translated[i] = second.rank_of(first[ranks[i]]);
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
    for (int rank = 0; rank < first.size(); ++rank) {
        if (second.rank_of(first[rank]) == MPI_UNDEFINED) {
            return MPI_UNEQUAL;
        }
    }
    return MPI_SIMILAR;
}

} // namespace warren::comm
