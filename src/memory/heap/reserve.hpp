// The system's reserve of huge pages (hugetlbfs): pages of a larger size that the administrator
// sets apart per NUMA node. A program gets them only if it asks for that page size. Placement
// (placement.hpp) takes the pages of such kinds from the reserve.
//
// Placement replaces a whole range by pages of the reserve, or fails. The system commits the pages
// at that time, so that no later write finds the reserve empty. A child of fork is the exception:
// the system kills it if there is no page for its copy. Fair shares do not count these pages,
// because other memory is not reduced by them. First come, first served.
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

// How often this process has given pages back to the reserve. A heap that has found the reserve
// empty tries again when this number has changed.
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
