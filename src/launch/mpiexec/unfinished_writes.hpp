// Finishes what ranks that have ended left half written: the valid entries of their write logs
// (mpi/job/write_log.hpp), each once.
//
// Entries are bytes from outside: their rank may have been killed anywhere, and a program may have
// written over them. So they are copied from the segment's file, and bounds are checked before
// anything is done. A file is written only if its path leads to the same regular file as before,
// if the write had begun, and nobody has written to its first byte since. If a process of the job
// belonged to another user nothing is written: it could have made an entry of any rank, and mpiexec
// may be allowed more than it.
// Thread rule: mpiexec's only thread, or the guardian's; the ranks have ended.
#pragma once

#include <cstdint>
#include <functional>
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

// Whether all processes of a job, since its start, are this process's user's.
enum class JobUsers : std::uint8_t { own, others_too };

// Returns those that could not be finished. `users` is asked if there is any unfinished write.
std::vector<UnfinishedWrite> finish_writes(const node::Segment& segment,
                                           std::span<const std::uint32_t> ranks,
                                           const std::function<JobUsers()>& users);
// The same, for all ranks of the node.
std::vector<UnfinishedWrite> finish_writes(const node::Segment& segment,
                                           const std::function<JobUsers()>& users);

// For people. `who`: the rank.
std::string describe(const UnfinishedWrite& write, const std::string& who);

} // namespace warren::launch
