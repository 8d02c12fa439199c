// Shares: how much of each memory a process of a job may take, so that the ranks of a node do not
// all choose the same scarce memory and the last ones find it full.
//
// Fair: a rank's share of a NUMA node is what could be had there when the job first used it (what
// is free and what the kernel can drop, less what it keeps back), divided by the ranks near it: all
// of the job's, or as many as the node has of the machine's processors. A process has the shares of
// its ranks, once for all copies of the allocator in it (the preloaded malloc and `libwarren.so`
// each have one). The node segment holds what could be had, so that all count with the same.
// First come: nobody counts; what is full is full. That is so outside jobs, in jobs of one process,
// and with WARREN_MEMORY_SHARE=first in the environment. Shares bound what allocations take; they
// reserve nothing against other jobs. What migrates is counted, but not refused.
//
// Thread rule: any thread at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warren::memory {

// Whether shares are counted in this process.
bool shares_count();

// Takes up to `bytes` of the process's share of a NUMA node; returns how much it got, a multiple of
// page_bytes. All of it where shares are not counted.
std::size_t take_share(int node, std::size_t bytes);
void return_share(int node, std::size_t bytes);

// Bytes taken of each node, by its number, in this copy of the allocator. The preloaded malloc
// shows its sums to another copy in the process.
std::atomic<std::int64_t>* shares_taken_here();

// Counts pages that are on the node (more: positive) without asking.
void change_share(int node, std::int64_t bytes);

// The fair share, by the rule above, of a process with `ranks_here` of the job's `ranks`. The node
// has `free` bytes and is near to `near` of all `processors`; near 0: it is near to all.
std::size_t fair_bytes(std::size_t free, unsigned ranks_here, unsigned ranks, unsigned near,
                       unsigned processors);

} // namespace warren::memory
