// The checksum of a topology image: against accidents (a torn file, flipped bits, parts in each
// other's places), not against somebody who can compute it.
//
// Words of 8 bytes go to sixteen lanes by turns: vectors, so many that none waits for the one
// before. A lane has two sums: of its words, rotated by a bit before each, so that two flipped top
// bits don't cancel each other; and of that sum after each word, which tells words in other places
// from each other. After 64 words, when the first sum is turned as it was, the second one is mixed
// into it: words exchanged at that distance would else cancel each other in both, some 3 in 100 of
// small numbers. (Groups of 8 bytes to 4 KiB exchanged at distances of 128 bytes to 24 KiB are
// tested: each is seen.)
//
// Seen for certain is a change of one word of a lane, and so of up to 120 bytes in a row: its two
// sums differ from then on, whatever follows. (The sums of all lanes and the words behind the last
// whole step are mixed to 64 bits, which are the same by chance once in 2^64.) Of several changes
// of a lane nothing is certain: there are such as cancel each other, and whoever looks for them
// finds them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::topology {

// `count` is a multiple of 8. 30 kB in the caches take about 1 µs, a third as long with AVX2 (on an
// EPYC Milan). Thread rule, for both: functions of their arguments.
std::uint64_t checksum(const std::byte* bytes, std::size_t count);

// The same on processors without AVX2, and on all.
std::uint64_t portable_checksum(const std::byte* bytes, std::size_t count);

} // namespace warren::topology
