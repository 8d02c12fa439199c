// Memory limits of the process's control group, which containers and batch systems set. When a
// process exceeds them, the kernel's out-of-memory killer ends it, even if the nodes have free
// memory. Thread rule: any thread at any time; nothing is allocated from the heap.
#pragma once

#include <cstdint>

namespace warren::memory {

// Bytes that the group (of version 2 or 1) and all groups above it still allow, without their
// copies of files, used lately or not, which the kernel drops first; less a sixteenth of the limit,
// 32 MiB at most, for what the kernel needs beside (tables of pages, stacks). 0 when it is used up;
// INT64_MAX: there is no limit, or it can't be read. `root` is "" but in tests.
std::int64_t group_bytes(const char* root = "");

} // namespace warren::memory
