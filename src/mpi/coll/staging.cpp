#include "mpi/coll/staging.hpp"

#include <algorithm>
#include <bit>

#include "base/futex.hpp"
#include "base/invariant.hpp"

namespace warren::coll {

namespace {

std::uint64_t units_of(StagingKind kind, int ranks) {
    return (collective_phases * staging_phase_bytes(kind, ranks) + staging_unit_bytes - 1) /
           staging_unit_bytes;
}

// The bits of units [begin, end) that lie in a word of the map.
std::uint64_t mask_of(std::uint64_t begin, std::uint64_t end, std::uint64_t word) {
    const std::uint64_t from = std::max(begin, 64 * word) - 64 * word;
    const std::uint64_t to = std::min(end, 64 * word + 64) - 64 * word;
    return (~std::uint64_t{0} >> (64 - (to - from))) << from;
}

void free_units(StagingMap& map, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t word = begin / 64; 64 * word < end; ++word) {
        WARREN_INVARIANT((map.used[word].load(std::memory_order_relaxed) &
                          mask_of(begin, end, word)) == mask_of(begin, end, word),
                         "staging 3: the units of an area are marked as used");
        map.used[word].fetch_and(~mask_of(begin, end, word), std::memory_order_release);
    }
}

// Takes units [begin, end) if all are free. Else `busy` is one that is not.
bool take_units(StagingMap& map, std::uint64_t begin, std::uint64_t end, std::uint64_t& busy) {
    for (std::uint64_t word = begin / 64; 64 * word < end; ++word) {
        const std::uint64_t mask = mask_of(begin, end, word);
        std::uint64_t bits = map.used[word].load(std::memory_order_relaxed);
        do {
            if ((bits & mask) != 0) {
                busy = 64 * word + 63 - static_cast<std::uint64_t>(__builtin_clzll(bits & mask));
                if (64 * word > begin) {
                    free_units(map, begin, 64 * word);
                }
                return false;
            }
            // Acquire: pairs with free_units; who had them before has done with them.
        } while (
            !map.used[word].compare_exchange_weak(bits, bits | mask, std::memory_order_acquire));
    }
    return true;
}

} // namespace

namespace staging {

namespace {

// Whether half of all units would be free still.
bool leaves_half(const node::Segment& segment, std::uint64_t units) {
    std::uint64_t used = units;
    for (const std::atomic<std::uint64_t>& word : segment.at(staging_map)->used) {
        used += static_cast<std::uint64_t>(std::popcount(word.load(std::memory_order_relaxed)));
    }
    return 2 * used <= segment.units(staging_units);
}

// Units with memory, as a word says it.
std::uint32_t take(const node::Segment& segment, StagingKind kind, int ranks) {
    const std::uint64_t units = units_of(kind, ranks);
    StagingMap& map = *segment.at(staging_map);
    if (kind == StagingKind::wide && !leaves_half(segment, units)) {
        return refused;
    }
    std::uint64_t begin = 0;
    std::uint64_t busy = 0;
    while (begin + units <= segment.units(staging_units)) {
        if (!take_units(map, begin, begin + units, busy)) {
            begin = busy + 1;
            continue;
        }
        if (segment.commit_units(staging_units, begin, units)) {
            return first + static_cast<std::uint32_t>(begin);
        }
        free_units(map, begin, begin + units);
        break;
    }
    return refused;
}

} // namespace

std::uint32_t decide(const node::Segment& segment, std::atomic<std::uint32_t>& word,
                     StagingKind kind, int ranks) {
    std::uint32_t said = word.load(std::memory_order_acquire);
    if (said == undecided &&
        word.compare_exchange_strong(said, deciding, std::memory_order_acquire)) {
        said = take(segment, kind, ranks);
        // Release: pairs with the acquire of whoever reads it. The memory is there.
        word.store(said, std::memory_order_release);
    }
    while (said == deciding) {
        give_way();
        said = word.load(std::memory_order_acquire);
    }
    return said;
}

void give_back(const node::Segment& segment, std::atomic<std::uint32_t>& word, StagingKind kind,
               int ranks) {
    const std::uint32_t said = word.exchange(undecided, std::memory_order_relaxed);
    if (said < first) {
        return;
    }
    const std::uint64_t begin = said - first;
    const std::uint64_t units = units_of(kind, ranks);
    const std::uint64_t bytes = units * staging_unit_bytes;
    if (bytes > kept_bytes) {
        segment.release_units(staging_units, begin, units);
    }
    free_units(*segment.at(staging_map), begin, begin + units);
}

} // namespace staging

} // namespace warren::coll
