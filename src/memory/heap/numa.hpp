// NUMA nodes of pages: the system calls of memory policies and migration, without a library. Nodes
// have the kernel's numbers (OS index), 0 to node_limit - 1. Failures are results and errno, as all
// callers are allocators, which report errors that way. Nothing here allocates from the heap.
// Thread rule: any thread at any time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/page.hpp"

namespace warren::memory {

inline constexpr int node_limit = 1024; // the kernel's largest configuration

// A set of NUMA nodes in the kernel's form.
struct NodeSet {
    static constexpr std::size_t word_bits = 64;
    std::uint64_t words[node_limit / word_bits] = {};

    void add(int node) { words[node / 64] |= std::uint64_t{1} << (node % 64); }
    bool has(int node) const {
        return node >= 0 && node < node_limit && (words[node / 64] >> (node % 64) & 1) != 0;
    }
    bool empty() const;
};

// The nodes that the process may have memory of (its cpuset's): asked of the kernel, or, where a
// filter of the container forbids that, read. Node 0 where the kernel does not say.
NodeSet allowed_nodes();
// The nodes that the process's status names; `root` is "" but in tests.
NodeSet nodes_of_status(const char* root);

// Bytes of the node's memory that nobody uses, from sysfs; -1 when it is not known. Where one node
// has all memory, what /proc/meminfo says counts if it is more: the node's account may lack memory
// that was added later. `root` is "" but in tests.
std::int64_t free_bytes(int node, const char* root = "");

// Free bytes plus those of file copies, which the kernel can drop: the most that can be had.
std::int64_t droppable_bytes(int node, const char* root = "");

// Bytes of a node that the kernel keeps for itself and for zones of low addresses, counted as for
// "MemAvailable". Leaving this much free keeps the kernel from reclaiming. 0 where it is not known.
// Reads all of /proc/zoneinfo; `root` is "" but in tests.
std::int64_t kept_back_bytes(int node, const char* root = "");

// The kernel's estimate of the bytes that all nodes together can give without swapping; -1: not
// known.
std::int64_t available_bytes();

// Says where pages of [begin, begin + bytes) that are yet to come shall be. False and errno: EPERM
// when a filter of the container forbids it, EINVAL when the process may use none of the nodes.
bool prefer_node(void* begin, std::size_t bytes, int node);
bool interleave_nodes(void* begin, std::size_t bytes, const NodeSet& nodes);

// Says that these pages come from this node only: a page that the node lacks is an error of
// populate_known(), and the program's end when it is touched. Fails like prefer_node().
bool bind_node(void* begin, std::size_t bytes, int node);

// Brings all pages of the range into memory, as if they were written: pages that are shared since a
// fork become copies. Contents stay. False and errno: ENOMEM.
bool populate(void* begin, std::size_t bytes);
// Brings in the pages of a range where touching a missing page would end the program (bind_node).
// Fails unless the kernel has the call for it; knows_populate() tells.
bool populate_known(void* begin, std::size_t bytes);
bool knows_populate();

// Gives the pages of the range back; they are zero at their next use.
void discard(void* begin, std::size_t bytes);

// The node of each page from `begin` (a page's start), which are `stride` bytes apart: nodes[i], -1
// where there is no page, where the kernel has written it out, and where it is just moving it. It
// may be any memory, also none: nothing is read, written or brought in. False and errno when the
// kernel does not tell.
bool nodes_of_pages(const void* begin, std::size_t pages, int* nodes,
                    std::size_t stride = page_bytes);

// nodes_of_pages for the caller's own memory without a file. It waits for a page that the kernel is
// just moving, and gives -1 for one that the kernel moves again and again. (Pages of a file would
// be brought in, since the kernel may say that all are there.)
bool await_nodes_of_pages(const void* begin, std::size_t pages, int* nodes,
                          std::size_t stride = page_bytes);

// Moves each page i from `begin`, memory of one's own, to wanted[i] (-1: it may stay), as far as
// that node has room; the kernel makes room by dropping its caches, never by killing. nodes[i], at
// the call each page's node, is that afterwards. False and errno when moving is not possible at
// all.
bool move_pages(void* begin, std::size_t pages, const int* wanted, int* nodes);

// Moves pages given by their starts, in one call, which begins with an interrupt of all processors.
// nodes[i] is where each page is afterwards (-1: nowhere).
bool move_listed_pages(void* const* pages, std::size_t count, const int* wanted, int* nodes);

} // namespace warren::memory
