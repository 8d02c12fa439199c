// The checksum of a topology image: against accidents (a torn file, flipped bits, parts in each
// other's places), not against somebody who can compute it.
//
// Words of 8 bytes go to sixteen lanes by turns: vectors, so many that none waits for the one
// before; zeros fill the last step. A lane has two sums: of its words, rotated by a bit before
// each, so that two flipped top bits don't cancel each other; and of that sum after each word,
// which tells words in other places from each other. After 64 words, when the first sum is turned
// as it was, and at the end the second one is mixed into it: words exchanged at that distance would
// else often cancel each other in both.
//
// A change of one word of a lane, and so of up to 120 bytes in a row, changes the lane's pair of
// sums for certain: each step takes different pairs to different ones. The pairs of all lanes are
// then mixed to 64 bits, where different ones may meet by chance. Several changes of one lane may
// cancel each other: of small numbers and sets of few exchanged at 8 KiB and its multiples some in
// 10,000 do, and whoever looks for such changes finds them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::topology {

// `count` is a multiple of 8. 30 kB in the caches take about 1 µs, a third as long with AVX2 (on an
// EPYC Milan). Thread rule, for both: functions of their arguments.
std::uint64_t checksum(const std::byte* bytes, std::size_t count);

// The checksum as computed on processors without AVX2. It runs on all processors.
std::uint64_t portable_checksum(const std::byte* bytes, std::size_t count);

} // namespace warren::topology
