#include "mpi/rma/collected_puts.hpp"

#include <cstring>
#include <utility>

#include "mpi/rma/tuning.hpp"
#include "mpi/rma/wait_reason.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

Error CollectedPuts::add(int target, std::uint64_t address, const void* from, std::size_t bytes) {
    Target& its = targets_[target];
    if (!its.pieces.empty() && its.pieces.back().address + its.pieces.back().bytes == address) {
        its.pieces.back().bytes += bytes;
    } else {
        its.pieces.push_back({.address = address, .bytes = bytes});
    }
    const auto* const first = static_cast<const std::byte*>(from);
    its.data.insert(its.data.end(), first, first + bytes);
    if (its.pieces.size() < collected_pieces && its.data.size() < collected_bytes) [[likely]] {
        return {};
    }
    return send(target, its);
}

Error CollectedPuts::send(int target) {
    const auto found = targets_.find(target);
    return found == targets_.end() ? Error() : send(target, found->second);
}

Error CollectedPuts::send(int rank, Target& target) {
    Error earlier;
    if (target.begun - target.over >= requests_under_way) {
        // (Another thread may send meanwhile.)
        earlier = await(rank, target, target.over + 1);
    }
    if (target.pieces.empty()) {
        return earlier;
    }
    const ServedHead head = {.kind = ServedKind::write,
                             .pieces = static_cast<std::uint32_t>(target.pieces.size()),
                             .bytes = target.data.size()};
    const std::size_t pieces_bytes = target.pieces.size() * sizeof(ServedPiece);
    Sent& sent = target.sent.emplace_back();
    sent.request.resize(sizeof head + pieces_bytes + target.data.size());
    std::byte* const to = sent.request.data();
    std::memcpy(to, &head, sizeof head);
    std::memcpy(to + sizeof head, target.pieces.data(), pieces_bytes);
    std::memcpy(to + sizeof head + pieces_bytes, target.data.data(), target.data.size());
    target.pieces.clear();
    target.data.clear();
    Error error =
        server_.begin(window_, rank, sent.request, &sent.answer, sizeof sent.answer, sent.asked);
    if (error) {
        target.sent.pop_back();
    } else {
        ++target.begun;
    }
    return first_of(earlier, error);
}

void CollectedPuts::end_requests(Target& target) {
    while (!target.sent.empty() && target.sent.front().asked.is_over()) {
        const Sent& sent = target.sent.front();
        const std::int32_t received = server_.end(sent.asked);
        const std::int32_t its = received != MPI_SUCCESS ? received : sent.answer.error_class;
        if (target.error_class == MPI_SUCCESS) {
            target.error_class = its;
        }
        target.sent.pop_front();
        ++target.over;
    }
}

Error CollectedPuts::told(int rank, Target& target) {
    const std::int32_t error_class = std::exchange(target.error_class, MPI_SUCCESS);
    return error_class == MPI_SUCCESS
               ? Error()
               : fail(error_class,
                      "rank %d refuses an earlier MPI_Put: the target's place is not within its "
                      "memory of the window",
                      rank);
}

Error CollectedPuts::await(int rank, Target& target, std::uint64_t over) {
    const auto is_over = [&] {
        end_requests(target);
        return target.over >= over;
    };
    if (!is_over()) {
        engine_.wait_until(is_over, wait_reason(engine_, window_.communicator(), rank, "a window"));
    }
    return told(rank, target);
}

Error CollectedPuts::complete(int rank, Target& target) {
    Error error = send(rank, target);
    return first_of(error, await(rank, target, target.begun));
}

Error CollectedPuts::complete(int target) {
    const auto found = targets_.find(target);
    return found == targets_.end() ? Error() : complete(target, found->second);
}

Error CollectedPuts::complete_all() {
    Error first;
    // All leave before any is awaited. (Other threads may add targets: none is ever removed.)
    for (auto& [rank, target] : targets_) {
        first = first_of(first, send(rank, target));
    }
    for (auto& [rank, target] : targets_) {
        first = first_of(first, complete(rank, target));
    }
    return first;
}

bool CollectedPuts::empty() const {
    for (const auto& [rank, target] : targets_) {
        if (!target.empty()) {
            return false;
        }
    }
    return true;
}

} // namespace warren::rma
