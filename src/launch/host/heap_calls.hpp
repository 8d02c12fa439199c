// The heap of ranks whose pages follow them (runtime/process_ranks/page_moves.hpp): each has an
// arena of its own in the C library's heap, as far as the process's mappings go
// (launch/mpiexec/heap_arenas.hpp), and which pages it allocates in is noted. Thread rule: any
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are so many ranks: threads get arenas of their own.
void prepare_heaps(std::uint32_t ranks);

// Replacements for malloc and its relatives.
std::span<const warren_image_binding> heap_bindings();

} // namespace warren::launch
