// The system's reserve of pages of a larger size (hugetlbfs): pages that the administrator sets
// apart per NUMA node, and that are there for who asks for them by their size. Placement
// (placement.hpp) takes the pages of such kinds from it.
//
// A range becomes pages of the reserve when it is placed, whole or not at all. The system commits
// to them then, so that no later write finds the reserve used up, but those of a child of fork,
// which the system ends if there is none for its copy. They are not of the memory that others want:
// neither the job's shares nor what is left for others counts. First come, first served.
//
// Thread rule: any thread at any time, on ranges of its own. Nothing here allocates from the heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/heap/kind.hpp"

namespace warren::memory {

// Pages of kinds with a reserved_shift, as place() and displace() of placement.hpp: the same
// arguments, whole pages of that size, and the same errors. The pages come in elsewhere and are
// moved to the range when they are there: a range that gets none stays mapped as it was.
bool place_reserved(const Kind& kind, void* begin, std::size_t bytes);
void displace_reserved(void* begin, std::size_t bytes);

// How often this process has given pages back to the reserve. For who remembers that it was empty.
std::uint64_t reserved_pages_returned();

enum class Reserve : std::uint8_t {
    there,      // pages of this size are set apart, or may be made when they are asked for
    none,       // the system has such pages, but none are set apart
    no_size,    // the machine has no pages of this size
    old_system, // Linux before 5.16, which can't move such pages
};

// Whether pages of 2^shift bytes can be had at all; `root` is "" but in tests.
Reserve look_at_reserve(const char* root, unsigned shift);

// Pages of 2^shift bytes that are set apart on a NUMA node and free; -1: not known.
std::int64_t free_reserved_pages(const char* root, int node, unsigned shift);

} // namespace warren::memory
