// Group: an ordered set of processes (MPI chapter 7, groups), and the operations that make one from
// others. A group is a rank map and the caller's rank in it; all of it is local.
//
// Thread rule: immutable once made; handles under the rank's lock.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/comm/rank_map.hpp"

namespace warren::comm {

struct Group {
    RankMap map;
    int rank = MPI_UNDEFINED;               // of the calling process
    MPI_Session session = MPI_SESSION_NULL; // that it comes from, if from one

    Group() = default;
    Group(RankMap members, std::uint32_t own_endpoint, MPI_Session origin)
        : map(std::move(members)), rank(map.find(own_endpoint)), session(origin) {}

    int size() const { return map.size(); }
};

// The members of the first group in its order, then those of the second that the first lacks.
RankMap union_of(const RankMap& first, const RankMap& second);
// The members of the first that are, or are not, in the second, in the first's order.
RankMap intersection_of(const RankMap& first, const RankMap& second);
RankMap difference_of(const RankMap& first, const RankMap& second);

// The listed ranks in their order, or all but them. MPI_ERR_RANK: a rank that does not exist or is
// listed twice.
Error include(const RankMap& map, int count, const int ranks[], RankMap& made);
Error exclude(const RankMap& map, int count, const int ranks[], RankMap& made);
// As above, for triplets (first, last, stride). MPI_ERR_ARG also for a stride of 0.
Error include_ranges(const RankMap& map, int count, const int ranges[][3], RankMap& made);
Error exclude_ranges(const RankMap& map, int count, const int ranges[][3], RankMap& made);

// For each rank of the first group (or MPI_PROC_NULL) its rank in the second or MPI_UNDEFINED.
Error translate(const RankMap& first, int count, const int ranks[], const RankMap& second,
                int translated[]);

// MPI_IDENT: same members, same order; MPI_SIMILAR: same members; MPI_UNEQUAL.
int compare(const RankMap& first, const RankMap& second);

} // namespace warren::comm
