// Guardian: a tiny process that outlives mpiexec by a moment, to leave nothing behind.
//
// It leads the process group that all ranks and their children are in. When mpiexec ends in
// whatever way, the pipe between them closes, and the guardian kills the group; processes that left
// the group (job control, timeout(1)) it finds by the job's name in their environment. Then it
// finishes what they have left half written to files (unfinished_writes.hpp). Before the
// ranks start it commits the node segment's memory: where a memory limit is too small for it, the
// kernel ends the guardian and not mpiexec, which lives to tell. Thread rule: mpiexec's only
// thread.
#pragma once

#include <string>
#include <sys/types.h>

#include "base/error.hpp"
#include "launch/mpiexec/unfinished_writes.hpp"
#include "mpi/job/segment.hpp"

namespace warren::launch {

class Guardian {
  public:
    Guardian() = default;
    Guardian(const Guardian&) = delete;
    Guardian& operator=(const Guardian&) = delete;
    ~Guardian();

    // Starts it. `job` is the value of WARREN_JOB. The guardian begins with the segment's memory.
    Error start(const node::Segment& segment, const std::string& job);

    // Waits until the segment's memory is committed; the error says what is short.
    Error wait_for_memory(const node::Segment& segment);

    pid_t pid() const { return pid_; } // also the process group
    bool running() const { return pid_ > 0; }

    // A process of another user has ended: if mpiexec is killed, no file writes are finished.
    void tell_of_other_users() const;

    // Kills the group, the guardian with it, and takes its status.
    void end();

    // mpiexec has seen it end by itself.
    void forget() { pid_ = -1; }

  private:
    pid_t pid_ = -1;
    int lifeline_ = -1; // held by mpiexec alone
    int answer_ = -1;   // the commit's errno
};

// Kills every process of the caller's user that carries the job's name in its environment, but for
// the caller itself. Returns how many.
int kill_stragglers(const std::string& job);

// Looks at the processes in the group, and those with the job's name in their environment.
JobUsers users_of_job(pid_t group, const std::string& job);

} // namespace warren::launch
