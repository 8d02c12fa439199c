// Ordering: memories sorted by several attributes, where near-equal values count as equal.
//
// "Equal within a tolerance" is not transitive: 100 ≈ 115 and 115 ≈ 130, but not 100 ≈ 130.
// Compared pair by pair such values have no order. So equality is decided for a whole set: sorted
// by the attribute, the best value leads a group, which has all that are as good within the
// tolerance *of the leader*; the best of the rest leads the next group. Groups are disjoint and in
// order, the members of each are then sorted by the next attribute in the same way. This is a
// strict weak order of the set, and depends neither on the order nor on the numbers of its members.
// It does depend on which members there are: taking a leader away may join or part others.
//
// Where a memory is (its relation to the initiator) counts before all attributes.
// Source: Rubio Proaño 2020, §3 and §4; the tolerance answers its §7.
// Thread rule: a function of its arguments.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace warren::memory {

// In their order of preference.
enum class Relation : std::uint8_t { local, remote, cpuless, device };

struct Candidate {
    std::uint32_t node = 0;
    Relation relation = Relation::local;
    std::uint64_t distance = 0; // among equals the nearer is named first
};

// A memory without a value comes behind all that have one; such memories are equal.
inline constexpr std::uint64_t no_value = std::numeric_limits<std::uint64_t>::max();

struct Column {
    bool more_is_better = true;
    double tolerance = 0;
    std::span<const std::uint64_t> values; // one for each candidate
};

struct Placed {
    std::size_t candidate = 0; // index
    std::uint32_t tier = 0;    // equal under the columns when equal; from 0, without gaps
};

std::vector<Placed> order(std::span<const Candidate> candidates, std::span<const Column> columns);

// Whether `value` belongs to the group that `leader`, which is as good or better, leads.
bool equals_leader(const Column& column, std::uint64_t leader, std::uint64_t value);

} // namespace warren::memory
