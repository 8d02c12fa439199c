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
    return {.node_rank = node_rank,
            .node_size = segment.ranks(),
            .world_rank = node_rank,
            .world_size = segment.ranks()};
}

} // namespace

MpiexecBootstrap::MpiexecBootstrap(Segment segment, std::uint32_t node_rank, int lifeline)
    : Bootstrap(numbers_of(segment, node_rank)),
      segment_(std::move(segment)),
      lifeline_(lifeline) {}

std::uint32_t MpiexecBootstrap::node_of(std::uint32_t) const {
    return 0;
}

Error MpiexecBootstrap::put(std::string_view key, std::span<const std::byte> value) {
    const std::uint32_t rank = numbers().node_rank;
    if (find(rank, key).data() != nullptr) {
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

std::span<const std::byte> MpiexecBootstrap::find(std::uint32_t rank, std::string_view key) const {
    const std::byte* at = segment_.unit(cards, rank);
    const std::byte* const end =
        at + segment_.at(card_lengths)[rank].load(std::memory_order_acquire);
    while (at != end) {
        CardEntry entry;
        std::memcpy(&entry, at, sizeof entry);
        at += sizeof entry;
        const std::byte* const value = at + entry.key_bytes;
        if (key.size() == entry.key_bytes && std::memcmp(at, key.data(), key.size()) == 0) {
            return {value, entry.value_bytes};
        }
        at = value + entry.value_bytes;
    }
    return {};
}

Error MpiexecBootstrap::get(std::uint32_t world_rank, std::string_view key,
                            std::vector<std::byte>& value) {
    if (world_rank >= numbers().world_size) {
        return fail(MPI_ERR_RANK, "the world has no rank %u: it has %u ranks", world_rank,
                    numbers().world_size);
    }
    const std::span<const std::byte> found = find(world_rank, key);
    if (found.data() == nullptr) {
        return fail(MPI_ERR_ARG, "rank %u has put nothing under \"%.*s\"", world_rank,
                    static_cast<int>(key.size()), key.data());
    }
    value.assign(found.begin(), found.end());
    return {};
}

Error MpiexecBootstrap::fence() {
    JobCounts& counts = *segment_.at(job_counts);
    const std::uint32_t number = counts.fence.load(std::memory_order_acquire);
    // Acquire and release: the last one has seen what all others did before.
    if (counts.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == numbers().node_size) {
        counts.arrived.store(0, std::memory_order_relaxed);
        counts.fence.store(number + 1, std::memory_order_release);
        futex_wake(counts.fence, INT_MAX);
        return {};
    }
    while (counts.fence.load(std::memory_order_acquire) == number) {
        futex_wait(counts.fence, number);
    }
    return {};
}

std::uint32_t MpiexecBootstrap::take_context(std::uint32_t members) {
    return ContextIds::take(segment_, members);
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
    if (lifeline_ < 0 || (first && write(lifeline_, "!", 1) < 0)) {
        return Told::nobody;
    }
    return first ? Told::launcher : Told::before;
}

} // namespace warren::node
