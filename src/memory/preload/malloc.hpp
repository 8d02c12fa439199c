// Block functions that malloc's family and the operators share; they follow the plan, see
// malloc.cpp. Thread rule: any thread at any time.
#pragma once

#include <atomic>
#include <cstddef>

#define WARREN_TAKEN extern "C" [[gnu::visibility("default")]]

namespace warren::memory {

// A block that is asked for at a place of the program. Null and ENOMEM.
void* allocate_at(std::size_t bytes, const void* site);
// Like allocate_at(); `alignment` is a power of two.
void* allocate_aligned_at(std::size_t alignment, std::size_t bytes, const void* site);

// Frees it, whosever it is. errno stays.
void give_back(void* block);

// Whether operators new and delete are left to the program, which has its own, or a malloc of its
// own. The first call finds out, the rest is the same without the call.
bool operators_are_left();
extern constinit std::atomic<bool> leaves_operators;

// A line on the standard error output. Allocates nothing.
void say(const char* what);

} // namespace warren::memory
