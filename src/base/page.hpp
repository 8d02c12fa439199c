// The size of a page, for what is laid out or bounded by pages. It is a constant, because sizes of
// tables and regions are computed from it when Warren is compiled.
// Thread rule: a constant.
#pragma once

#include <cstddef>

namespace warren {

inline constexpr std::size_t page_bytes = 4096; // the smallest page of x86-64

// MPI_BOTTOM and MPI_IN_PLACE are addresses below this one, and no memory is: Linux maps nothing
// there (vm.mmap_min_addr).
inline constexpr std::size_t first_address = page_bytes;

// `bytes` rounded up to whole pages.
constexpr std::size_t whole_pages(std::size_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

} // namespace warren
