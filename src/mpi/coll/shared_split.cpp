// MPI_Comm_split in a collective slot. Each rank writes its colour and key into its line. In a
// counted slot, the last to arrive sorts them, takes a context for each colour, and writes each
// rank's context and place into its line; each rank then collects the ranks of its colour from the
// lines. In a flat slot, each rank sorts for itself, and the first of each colour publishes its
// context in a second operation.

#include <algorithm>
#include <climits>

#include "mpi/coll/shared.hpp"
#include "mpi/comm/context_ids.hpp"

namespace warren::coll {

struct SharedSlot::SplitLine {
    std::int32_t colour;
    std::int32_t key;
    // The answer.
    std::uint32_t context;
    std::int32_t place; // among the ranks of the colour
    std::int32_t count; // of those
};

SharedSlot::SplitLine& SharedSlot::split_line(std::uint64_t operation, int rank) const {
    static_assert(sizeof(SplitLine) <= shared_bytes);
    return *reinterpret_cast<SplitLine*>(line_data(operation, rank));
}

// The last to arrive, for all.
void SharedSlot::deal_out(std::uint64_t operation) {
    std::vector<int> ranks;
    ranks.reserve(static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) {
        SplitLine& its = split_line(operation, rank);
        its.context = 0;
        its.count = 0;
        if (its.colour != MPI_UNDEFINED) {
            ranks.push_back(rank);
        }
    }
    const auto of = [&](std::size_t i) -> SplitLine& { return split_line(operation, ranks[i]); };
    std::sort(ranks.begin(), ranks.end(), [&](int a, int b) {
        const SplitLine& first = split_line(operation, a);
        const SplitLine& second = split_line(operation, b);
        return first.colour != second.colour ? first.colour < second.colour
               : first.key != second.key     ? first.key < second.key
                                             : a < b;
    });
    for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
        while (end < ranks.size() && of(end).colour == of(begin).colour) {
            ++end;
        }
        const std::uint32_t context =
            comm::ContextIds::take(node_rank_.segment, static_cast<std::uint32_t>(end - begin));
        for (std::size_t i = begin; i < end; ++i) {
            of(i).context = context;
            of(i).place = static_cast<int>(i - begin);
            of(i).count = static_cast<int>(end - begin);
        }
    }
}

std::uint32_t SharedSlot::split(int colour, int key, std::vector<int>& members) {
    begin(Tag::agreement, 0);
    const std::uint64_t operation = place_.operations++;
    members.clear();
    if (!settle(operation)) {
        return 0;
    }
    SplitLine& own = split_line(operation, rank_);
    own.colour = colour;
    own.key = key;
    if (!flat_) {
        if (count_arrival(operation)) {
            if (!unequal()) {
                deal_out(operation);
            }
            publish(operation);
        } else {
            wait_published(operation);
        }
        all_have_arrived(operation);
        if (unequal()) {
            return 0; // the lines are another operation's
        }
        members.resize(static_cast<std::size_t>(own.count));
        for (int rank = 0, left = own.count; left > 0; ++rank) {
            const SplitLine& its = split_line(operation, rank);
            if (its.colour == colour) {
                members[static_cast<std::size_t>(its.place)] = rank;
                --left;
            }
        }
        return own.context;
    }
    flat_arrive(operation);
    for (int rank = 0; rank < size_; ++rank) {
        if (rank != rank_) {
            flat_wait(rank, operation);
        }
        if (colour != MPI_UNDEFINED && split_line(operation, rank).colour == colour) {
            members.push_back(rank);
        }
    }
    all_have_arrived(operation);
    if (unequal()) {
        members.clear();
        return 0;
    }
    // Stable: equal keys stay in the order of ranks.
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
        return split_line(operation, a).key < split_line(operation, b).key;
    });
    const std::uint64_t answer = place_.operations++;
    std::uint32_t context = 0;
    if (!members.empty() && members[0] == rank_) {
        if (!settle(answer)) {
            return 0;
        }
        context =
            comm::ContextIds::take(node_rank_.segment, static_cast<std::uint32_t>(members.size()));
        split_line(answer, rank_).context = context;
    } else if (!members.empty()) {
        flat_wait(members[0], answer);
        if (!may_arrive(answer)) {
            return 0;
        }
        context = unequal() ? 0 : split_line(answer, members[0]).context;
    }
    flat_arrive(answer);
    return context;
}

} // namespace warren::coll
