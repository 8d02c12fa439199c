// How many arenas the C library's heap may have in a process of many ranks whose pages follow them
// (launch/host/heap_calls.hpp): each costs mappings, of which the kernel gives a process so many.
// Thread rule: any thread; plain values.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>

namespace warren::launch {

// An arena for each rank and for some other threads; fewer where `mappings` (vm.max_map_count)
// would not suffice for them beside the ranks' images and stacks, and a part that is the
// programs'. Ranks beyond that share.
inline int heap_arenas(std::uint64_t ranks, std::uint64_t mappings) {
    constexpr std::uint64_t others = 64; // workers, and threads that ranks make
    constexpr std::uint64_t mappings_of_rank = 6;
    constexpr std::uint64_t mappings_of_arena = 3; // used, yet unused, and a guard between two
    constexpr std::uint64_t reserved_part = 16;
    const std::uint64_t taken = mappings_of_rank * ranks + mappings / reserved_part;
    const std::uint64_t room = mappings > taken ? (mappings - taken) / mappings_of_arena : 0;
    return static_cast<int>(
        std::min<std::uint64_t>({ranks + others, std::max<std::uint64_t>(room, others), INT_MAX}));
}

} // namespace warren::launch
