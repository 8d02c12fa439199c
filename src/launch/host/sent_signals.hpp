// Signals that a rank sends to its process, which is its own: they reach that rank alone.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads.
void prepare_sending(std::uint32_t ranks, bool fibres);
// The calling thread is the rank's first.
void note_first_thread(std::uint32_t rank);

// Replacements for the C library's functions.
std::span<const warren_image_binding> sending_bindings();

} // namespace warren::launch
