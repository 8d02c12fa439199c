// Finishes what ranks that have ended left half written: the valid entries of their write logs
// (mpi/job/write_log.hpp), each once.
//
// Entries are bytes from outside: their rank may have been killed anywhere, and a program may have
// written over them. So they are copied from the segment's file, and bounds are checked before
// anything is done. A file is written only if its path leads to the same regular file as before,
// if the write had begun, and nobody has written to its first byte since.
// Thread rule: mpiexec's only thread, or the guardian's; the ranks have ended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::launch {

struct UnfinishedWrite {
    std::uint32_t rank; // on the node
    std::string path;
    std::string problem; // why it stays as it is
};

// Returns those that could not be finished, but not those of files that have been deleted.
std::vector<UnfinishedWrite> finish_writes(const node::Segment& segment,
                                           std::span<const std::uint32_t> ranks);

} // namespace warren::launch
