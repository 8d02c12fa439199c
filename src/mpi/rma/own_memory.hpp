// Own memory: whether this process may still read or write memory that its program has given to a
// window. The program may have unmapped or protected it since; then a request of another rank is
// an error there, and no crash here.
//
// The kernel is asked to fault the pages in, as the access that follows would. Thread rule: any
// thread. An answer holds until the program changes its mappings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/rma/served_request.hpp"

namespace warren::rma {

enum class MemoryUse : std::uint8_t { reads, writes };

// Whether one question says that the process has this memory for such a use. False: it has not, or
// the kernel cannot say (before Linux 5.14; memory of devices).
bool has_memory_surely(const std::byte* place, std::size_t bytes, MemoryUse use);
// Whether it has, if need be by the list of its mappings, which takes some 50 us.
bool has_memory(const std::byte* place, std::size_t bytes, MemoryUse use);
// Whether it has all memory of a request.
bool has_memory(const ServedRequest& request);

} // namespace warren::rma
