// What the process's control group lets it have: limits of memory that containers and batch systems
// set. The kernel answers memory beyond them with its out-of-memory killer, whatever the nodes
// still have. Thread rule: any thread at any time; nothing is taken from the heap.
#pragma once

#include <cstdint>

namespace warren::memory {

// Bytes that the group (of version 2 or 1) and all groups above it still allow, without their
// copies of files, used lately or not, which the kernel drops first; less a sixteenth of the limit,
// 32 MiB at most, for what the kernel needs beside (tables of pages, stacks). 0 when it is used up;
// INT64_MAX: there is no limit, or it can't be read. `root` is "" but in tests.
std::int64_t group_bytes(const char* root = "");

} // namespace warren::memory
