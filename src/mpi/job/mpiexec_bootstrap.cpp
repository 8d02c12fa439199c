#include "mpi/job/mpiexec_bootstrap.hpp"

#include <climits>
#include <cstring>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "base/invariant.hpp"
#include "mpi.h"
#include "mpi/job/context_ids.hpp"

namespace warren::node {

namespace {

struct CardEntry {
    std::uint16_t key_bytes;
    std::uint16_t value_bytes;
};
static_assert(card_bytes <= UINT16_MAX);

RankNumbers numbers_of(const Segment& segment, std::uint32_t node_rank) {
    const NodePlace& place = *segment.at(node_place);
    return {.node_rank = node_rank,
            .node_size = segment.ranks(),
            .world_rank = NodeMap::of(segment).world_rank_at(place.node, node_rank),
            .world_size = place.world_size,
            .node = place.node,
            .nodes = place.nodes};
}

// The value under a key on a card; its data is null when there is none.
std::span<const std::byte> find(std::span<const std::byte> card, std::string_view key) {
    CardEntry entry;
    while (card.size() >= sizeof entry) {
        std::memcpy(&entry, card.data(), sizeof entry);
        card = card.subspan(sizeof entry);
        if (card.size() < std::size_t{entry.key_bytes} + entry.value_bytes) {
            return {}; // from another node: not trusted
        }
        const std::span<const std::byte> value = card.subspan(entry.key_bytes, entry.value_bytes);
        if (key.size() == entry.key_bytes &&
            std::memcmp(card.data(), key.data(), key.size()) == 0) {
            return value;
        }
        card = card.subspan(std::size_t{entry.key_bytes} + entry.value_bytes);
    }
    return {};
}

} // namespace

MpiexecBootstrap::MpiexecBootstrap(Segment segment, std::uint32_t node_rank, int lifeline, int book)
    : Bootstrap(numbers_of(segment, node_rank)),
      segment_(std::move(segment)),
      map_(NodeMap::of(segment_)),
      lifeline_(lifeline),
      book_(book) {}

std::uint32_t MpiexecBootstrap::node_of(std::uint32_t world_rank) const {
    return map_.node_of(world_rank);
}

std::uint32_t MpiexecBootstrap::slot_of(std::uint32_t world_rank) const {
    return map_.slot_of(world_rank);
}

std::uint32_t MpiexecBootstrap::world_rank_at(std::uint32_t node, std::uint32_t slot) const {
    return map_.world_rank_at(node, slot);
}

std::string MpiexecBootstrap::name_of_node(std::uint32_t node) const {
    return book_.name(node);
}

std::uint64_t MpiexecBootstrap::secret() const {
    return segment_.at(node_place)->secret;
}

Error MpiexecBootstrap::put(std::string_view key, std::span<const std::byte> value) {
    const std::uint32_t rank = numbers().node_rank;
    if (find(card(rank), key).data() != nullptr) {
        return fail(MPI_ERR_ARG, "rank %u has put a value under \"%.*s\" before", rank,
                    static_cast<int>(key.size()), key.data());
    }
    std::atomic<std::uint32_t>& length = segment_.at(card_lengths)[rank];
    const std::uint32_t begin = length.load(std::memory_order_relaxed);
    const std::size_t bytes = sizeof(CardEntry) + key.size() + value.size();
    if (bytes > card_bytes - begin) {
        return fail(MPI_ERR_ARG,
                    "rank %u puts %zu bytes under \"%.*s\", which do not fit its card of %zu "
                    "bytes, of which %u are in use",
                    rank, value.size(), static_cast<int>(key.size()), key.data(), card_bytes,
                    begin);
    }
    if (begin == 0 && !segment_.commit_units(cards, rank, 1)) {
        return fail(MPI_ERR_NO_MEM, "no memory of the node for the card of rank %u", rank);
    }
    const CardEntry entry = {.key_bytes = static_cast<std::uint16_t>(key.size()),
                             .value_bytes = static_cast<std::uint16_t>(value.size())};
    std::byte* to = segment_.unit(cards, rank) + begin;
    std::memcpy(to, &entry, sizeof entry);
    std::memcpy(to + sizeof entry, key.data(), key.size());
    if (!value.empty()) {
        std::memcpy(to + sizeof entry + key.size(), value.data(), value.size());
    }
    length.store(begin + static_cast<std::uint32_t>(bytes), std::memory_order_release);
    return {};
}

std::span<const std::byte> MpiexecBootstrap::card(std::uint32_t slot) const {
    return {segment_.unit(cards, slot),
            segment_.at(card_lengths)[slot].load(std::memory_order_acquire)};
}

Error MpiexecBootstrap::get(std::uint32_t world_rank, std::string_view key,
                            std::vector<std::byte>& value) {
    if (world_rank >= numbers().world_size) {
        return fail(MPI_ERR_RANK, "the world has no rank %u: it has %u ranks", world_rank,
                    numbers().world_size);
    }
    const std::uint32_t node = node_of(world_rank);
    const std::uint32_t slot = slot_of(world_rank);
    const bool is_here = node == numbers().node;
    const std::vector<std::byte> from_book =
        is_here ? std::vector<std::byte>() : card_elsewhere(node, slot);
    const std::span<const std::byte> found =
        find(is_here ? card(slot) : std::span<const std::byte>(from_book), key);
    if (found.data() == nullptr) {
        return fail(MPI_ERR_ARG, "rank %u has put nothing under \"%.*s\"", world_rank,
                    static_cast<int>(key.size()), key.data());
    }
    value.assign(found.begin(), found.end());
    return {};
}

std::vector<std::byte> MpiexecBootstrap::card_elsewhere(std::uint32_t node, std::uint32_t slot) {
    return book_.card(node, slot);
}

std::uint32_t MpiexecBootstrap::enter_fence() {
    JobCounts& counts = *segment_.at(job_counts);
    const std::uint32_t number = counts.fence.load(std::memory_order_acquire);
    // Acquire and release: the last one has seen what all others did before.
    if (counts.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < numbers().node_size) {
        return number;
    }
    // Without an agent, this rank is about to be ended.
    if (numbers().nodes == 1 || write(lifeline_, &fences, 1) < 0) {
        end_fence(segment_);
    }
    return number;
}

void MpiexecBootstrap::end_fence(const Segment& segment) {
    JobCounts& counts = *segment.at(job_counts);
    counts.arrived.store(0, std::memory_order_relaxed);
    counts.fence.fetch_add(1, std::memory_order_release);
    futex_wake(counts.fence, INT_MAX);
}

bool MpiexecBootstrap::fence_is_over(std::uint32_t number) const {
    return segment_.at(job_counts)->fence.load(std::memory_order_acquire) != number;
}

Error MpiexecBootstrap::fence() {
    const std::uint32_t number = enter_fence();
    while (!fence_is_over(number)) {
        futex_wait(segment_.at(job_counts)->fence, number);
    }
    return {};
}

std::uint32_t MpiexecBootstrap::take_context(std::uint32_t members) {
    return ContextIds::take(segment_, members);
}

std::uint32_t MpiexecBootstrap::take_spanning_context() {
    return ContextIds::take_spanning(segment_);
}

std::uint32_t MpiexecBootstrap::give_back_context(std::uint32_t context) {
    return ContextIds::give_back(segment_, context);
}

std::uint32_t MpiexecBootstrap::add(JobCount count, std::int32_t change) {
    JobCounts& counts = *segment_.at(job_counts);
    if (count == JobCount::withdrawing) {
        const auto more = static_cast<std::uint32_t>(change);
        return counts.withdrawing.fetch_add(more, std::memory_order_seq_cst) + more;
    }
    WARREN_INVARIANT(count == JobCount::finishing, "job counts: finishes counts by itself");
    std::uint64_t before = counts.finishing.load(std::memory_order_relaxed);
    std::uint32_t now;
    std::uint64_t finishes;
    do {
        now = static_cast<std::uint32_t>(before) + static_cast<std::uint32_t>(change);
        finishes = (before >> 32) + (change > 0 && now == numbers().world_size ? 1 : 0);
    } while (!counts.finishing.compare_exchange_weak(before, finishes << 32 | now,
                                                     std::memory_order_seq_cst));
    return now;
}

std::uint32_t MpiexecBootstrap::read(JobCount count) const {
    const JobCounts& counts = *segment_.at(job_counts);
    if (count == JobCount::withdrawing) {
        return counts.withdrawing.load(std::memory_order_acquire);
    }
    const std::uint64_t both = counts.finishing.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(count == JobCount::finishing ? both : both >> 32);
}

Bootstrap::Told MpiexecBootstrap::abort(JobEnd end, int code, const char* text) {
    const bool first = segment_.record_end(end, numbers().node_rank, code, text);
    if (lifeline_ < 0 || (first && write(lifeline_, &ends_job, 1) < 0)) {
        return Told::nobody;
    }
    return first ? Told::launcher : Told::before;
}

} // namespace warren::node
