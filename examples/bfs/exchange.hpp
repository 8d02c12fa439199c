// The template of graph.hpp.
#pragma once

#include <climits>
#include <stdexcept>
#include <vector>

namespace bfs {

template <typename Item>
std::vector<Item> exchange(std::vector<std::vector<Item>>& outgoing, MPI_Comm comm) {
    const std::size_t ranks = outgoing.size();
    std::vector<int> counts(ranks);
    std::vector<int> starts(ranks);
    std::vector<int> their_counts(ranks);
    std::vector<int> their_starts(ranks);
    std::size_t sum = 0;
    const auto next = [&](std::size_t items) {
        const std::size_t start = sum;
        sum += items;
        if (sum * sizeof(Item) > INT_MAX) {
            throw std::runtime_error("too much for one rank: use more, or a smaller scale");
        }
        return static_cast<int>(start * sizeof(Item));
    };
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        starts[rank] = next(outgoing[rank].size());
        counts[rank] = static_cast<int>(outgoing[rank].size() * sizeof(Item));
    }
    std::vector<Item> sent;
    sent.reserve(sum);
    for (std::vector<Item>& items : outgoing) {
        sent.insert(sent.end(), items.begin(), items.end());
        items.clear();
    }
    MPI_Alltoall(counts.data(), 1, MPI_INT, their_counts.data(), 1, MPI_INT, comm);
    sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        their_starts[rank] = next(static_cast<std::size_t>(their_counts[rank]) / sizeof(Item));
    }
    std::vector<Item> received(sum);
    MPI_Alltoallv(sent.data(), counts.data(), starts.data(), MPI_BYTE, received.data(),
                  their_counts.data(), their_starts.data(), MPI_BYTE, comm);
    return received;
}

} // namespace bfs
