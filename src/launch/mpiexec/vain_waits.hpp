// Waits that a rank's failure has made vain: the rank has finalised, so what others wait for is not
// going to come. Thread rule: reads the segment, whose ranks go on meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::launch {

// The ranks that wait in vain when `failed` have finalised and ended: those that name one of them
// as the peer of a message in MPI_COMM_WORLD; if there are none, all others, if each of them waits.
// Empty: the job may go on. `ended` has an element per rank.
std::vector<std::uint32_t> vain_waits(const node::Segment& segment, const std::vector<bool>& ended,
                                      const std::vector<std::uint32_t>& failed,
                                      std::uint64_t now_ns);

} // namespace warren::launch
