// Sizes, times and limits of the allocator, with their reasons. Changing one changes speed and the
// memory that is kept, never correctness. bench/allocation measures them, with one thread and with
// several. Machine: 2 cores of a virtual EPYC.
//
// Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

#include "base/page.hpp"

namespace warren::memory {

// --- What a thread keeps to itself

// Bytes of each size class that a thread keeps at most.
inline constexpr std::size_t kept_bytes = 128 * 1024;
// Blocks that go from or to the heap at once.
inline constexpr std::uint32_t batch_limit = 32;
// A thread that frees and makes large blocks again, several at once, may keep this much of them, as
// long as all threads' together stay within the heap's loan (Heap::lend, most_lent_bytes). A block
// of large_block_bytes or more is large here.
inline constexpr std::size_t large_kept_bytes = 8 * 1024 * 1024;
inline constexpr std::size_t large_block_bytes = 4 * 1024;
// Spans of other threads that are passed over in search of an own one.
inline constexpr unsigned most_spans_seen = 8;

// --- Free pages that a heap keeps placed

// A heap keeps this much free memory and a part of what is in use: to place a page costs as much as
// a hundred allocations, and programs often free memory to allocate it again at once.
inline constexpr std::size_t idle_pages_kept = 16 * 1024 * 1024 / page_bytes;
inline constexpr std::size_t idle_part_kept = 16;
// Pages that are given back and needed again within again_within_ns should have been kept. The heap
// then keeps more idle pages, at most most_more_idle_pages more (eight threads that each make and
// free 8 MiB). If the heap has not needed them for more_idle_for_ns, the next thread that frees
// pages gives half of them back. A heap that nobody uses keeps them until it is trimmed.
inline constexpr std::uint64_t again_within_ns = 100'000'000;
inline constexpr std::size_t most_more_idle_pages = 112 * 1024 * 1024 / page_bytes;
inline constexpr std::uint64_t more_idle_for_ns = 1'000'000'000;
// All threads together may keep most_lent_bytes of the idle pages as large blocks; the heap keeps
// least_idle_pages_kept.
inline constexpr std::size_t most_lent_bytes = 16 * 1024 * 1024;
inline constexpr std::size_t least_idle_pages_kept = 4 * 1024 * 1024 / page_bytes;

// --- Placement on nodes

// Memory that is placed at once.
inline constexpr std::size_t batch_bytes = 2 * 1024 * 1024;
// A node that was found full is not tried again for full_for_ns, because each try costs the pages
// that went elsewhere. It is tried earlier if this process gives some of its memory back, or if the
// node has more free memory than when it was full; that is read every full_looked_at_ns.
inline constexpr std::uint64_t full_for_ns = 1'000'000'000;
inline constexpr std::uint64_t full_looked_at_ns = 50'000'000;
// Pages that a policy prefers on a full node come from others; where all are full the kernel kills
// somebody. So nothing is placed that would leave less than this of all memory.
inline constexpr std::int64_t left_to_others = 32 * 1024 * 1024;
// A reading of the machine's free memory is valid for this long, less the bytes placed since. A
// request for more than one large_part-th of it reads again, as others take memory at the same
// time.
inline constexpr std::uint64_t reading_for_ns = 20'000'000;
inline constexpr std::int64_t large_part = 64;
// A control group's limit counts as lower by a sixteenth, at most this much, which is left to the
// rest of the group.
inline constexpr std::uint64_t most_group_reserve_bytes = 32 * 1024 * 1024;
// A reserve of huge pages that was found used up is not asked again for so long, or until this
// process gives some of it back: each try costs several calls of the system, and all free memory of
// the process.
inline constexpr std::uint64_t refused_for_ns = 50'000'000;

// --- Questions to the kernel

// Pages whose nodes are asked for at once: the answers are on the stack, 2 KiB.
inline constexpr std::size_t pages_per_call = 512;
// Reserved pages that are asked for at once: they are larger, and so fewer.
inline constexpr std::size_t reserved_pages_per_call = 64;
// A page that is on its way to another node is asked for again so often; once nearly always does.
// Where the kernel can't be asked to bring the page, the question waits this long.
inline constexpr int moving_page_tries = 4;
inline constexpr timespec moving_page_pause = {0, 100'000};

// --- Locks

// Tries to get a mutex that others hold for a tenth of a microsecond, before a sleep.
inline constexpr int short_hold_tries = 100;

} // namespace warren::memory
