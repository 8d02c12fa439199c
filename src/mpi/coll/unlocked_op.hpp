// Unlocked op: combines with an operation that may be the program's. That runs without the rank's
// lock, since it may call MPI. Arguments are as in Op (mpi/op/op.hpp).
#pragma once

#include "mpi/datatype/lent_handle.hpp"
#include "mpi/op/op.hpp"
#include "mpi/rank/rank.hpp"

namespace warren::coll {

inline void apply_unlocked(Rank& rank, const Op& op, const void* in, void* inout, MPI_Count count,
                           const datatype::Datatype& type) {
    if (op.predefined()) [[likely]] {
        op.apply(in, inout, count, type);
        return;
    }
    const datatype::LentHandle lent(type);
    rank.lock.unlock();
    op.apply(in, inout, count, type);
    rank.lock.lock();
}
inline void combine_unlocked(Rank& rank, const Op& op, const void* left, const void* right,
                             void* result, MPI_Count count, const datatype::Datatype& type) {
    if (op.predefined()) [[likely]] {
        op.combine(left, right, result, count, type);
        return;
    }
    const datatype::LentHandle lent(type);
    rank.lock.unlock();
    op.combine(left, right, result, count, type);
    rank.lock.lock();
}

} // namespace warren::coll
