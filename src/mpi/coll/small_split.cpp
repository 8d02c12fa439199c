// MPI_Comm_split in a collective slot. Each rank writes its colour and key into its line. In a
// counted slot, the last to arrive sorts them, takes a context for each colour, and writes each
// rank's context and place into its line; each rank then collects the ranks of its colour from the
// lines. In a flat slot, each rank sorts for itself, and the first of each colour publishes its
// context in a second operation.

#include <algorithm>
#include <climits>

#include "mpi/coll/small_collectives.hpp"

namespace warren::coll {

struct SmallCollectives::SplitLine {
    std::int32_t colour;
    std::int32_t key;
    // The answer.
    std::uint32_t context;
    std::int32_t place; // among the ranks of the colour
    std::int32_t count; // of those
};

SmallCollectives::SplitLine& SmallCollectives::split_line(std::uint64_t operation, int rank) const {
    static_assert(sizeof(SplitLine) <= line_data_bytes);
    return *reinterpret_cast<SplitLine*>(ring_.line_data(operation, rank));
}

// The last to arrive, for all.
void SmallCollectives::deal_out(std::uint64_t operation) {
    std::vector<int> ranks;
    ranks.reserve(static_cast<std::size_t>(ring_.size()));
    for (int rank = 0; rank < ring_.size(); ++rank) {
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
        const std::uint32_t context = ring_.slot().node_rank.bootstrap().take_context(
            static_cast<std::uint32_t>(end - begin));
        for (std::size_t i = begin; i < end; ++i) {
            of(i).context = context;
            of(i).place = static_cast<int>(i - begin);
            of(i).count = static_cast<int>(end - begin);
        }
    }
}

std::uint32_t SmallCollectives::split(int colour, int key, std::vector<int>& members) {
    ring_.call().begin(Tag::agreement, 0);
    const std::uint64_t operation = ring_.begin_operation();
    members.clear();
    if (!ring_.settle(operation)) {
        return 0;
    }
    SplitLine& own = split_line(operation, ring_.rank());
    own.colour = colour;
    own.key = key;
    return ring_.is_flat() ? split_flat(operation, colour, members)
                           : split_counted(operation, colour, members);
}

std::uint32_t SmallCollectives::split_counted(std::uint64_t operation, int colour,
                                              std::vector<int>& members) {
    CallAgreement& call = ring_.call();
    if (counted::arrive(call, operation)) {
        if (!unequal()) {
            deal_out(operation);
        }
        counted::publish(call, operation);
    } else {
        counted::wait_published(call, operation);
    }
    ring_.all_have_arrived(operation);
    if (unequal()) {
        return 0; // the lines are another operation's
    }
    const SplitLine& own = split_line(operation, ring_.rank());
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

std::uint32_t SmallCollectives::split_flat(std::uint64_t operation, int colour,
                                           std::vector<int>& members) {
    CallAgreement& call = ring_.call();
    const SlotMember& slot = ring_.slot();
    flat::arrive(call, operation);
    for (int rank = 0; rank < slot.size; ++rank) {
        ring_.await(operation, rank);
        if (colour != MPI_UNDEFINED && split_line(operation, rank).colour == colour) {
            members.push_back(rank);
        }
    }
    ring_.all_have_arrived(operation);
    if (unequal()) {
        members.clear();
        return 0;
    }
    // Stable: equal keys stay in the order of ranks.
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
        return split_line(operation, a).key < split_line(operation, b).key;
    });
    const std::uint64_t answer = ring_.begin_operation();
    std::uint32_t context = 0;
    if (!members.empty() && members[0] == slot.rank) {
        if (!ring_.settle(answer)) {
            return 0;
        }
        context =
            slot.node_rank.bootstrap().take_context(static_cast<std::uint32_t>(members.size()));
        split_line(answer, slot.rank).context = context;
    } else if (!members.empty()) {
        ring_.await(answer, members[0]);
        if (!ring_.may_arrive(answer)) {
            return 0;
        }
        context = unequal() ? 0 : split_line(answer, members[0]).context;
    }
    flat::arrive(call, answer);
    return context;
}

} // namespace warren::coll
