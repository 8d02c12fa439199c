// SpawnedJobs: worlds that ranks of a job have had spawned, each run by an mpiexec of its own, a
// child of this one.
//
// A rank asks at a local socket (mpi/job/spawn_request.hpp). They end with this job when it fails,
// or this mpiexec ends in whatever way; when it succeeds, it waits for them. Their ends are theirs:
// each says what has failed, and ranks that are connected to them find that out by themselves.
// Thread rule: mpiexec's only thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "launch/mpiexec/job_state.hpp"

namespace warren::launch {

class SpawnedJobs {
  public:
    explicit SpawnedJobs(JobState& job) : job_(job) {}
    SpawnedJobs(const SpawnedJobs&) = delete;
    SpawnedJobs& operator=(const SpawnedJobs&) = delete;
    ~SpawnedJobs();

    // Listens for ranks of this job. Jobs of several nodes have no spawned worlds.
    void open();
    void take_connections();
    // Without a descriptor left, not even to refuse, it doesn't listen until this time, ns; 0: it
    // does.
    std::uint64_t listens_again_ns() const { return listens_again_ns_; }
    void listen_again();
    // A rank's request. `signals`: those that were blocked in this mpiexec at its start.
    void read_request(std::uint32_t number, const sigset_t& signals);

    // Whether the child was one of these mpiexecs.
    bool ended(pid_t pid, int wait_status);
    std::uint32_t running() const { return static_cast<std::uint32_t>(worlds_.size()); }
    // The code of the first world that failed; 0: none has.
    int exit_code() const { return exit_code_; }

    void signal_all(int number);
    void kill_all();

  private:
    bool refuse_for_lack();
    bool start(int connection, const std::string& packet, const sigset_t& signals);
    [[noreturn]] void become_mpiexec(int connection, const std::string& packet,
                                     const sigset_t& signals, pid_t parent) const;

    JobState& job_;
    int listener_ = -1;
    int spare_ = -1; // closed when a request comes and no descriptor is left, to refuse it
    std::uint64_t listens_again_ns_ = 0;
    std::uint32_t last_number_ = 0;
    std::unordered_map<std::uint32_t, int> connections_; // that have not asked yet
    std::unordered_map<pid_t, std::uint32_t> worlds_;    // their ranks, by their mpiexec
    bool killed_ = false;
    int exit_code_ = 0;
};

} // namespace warren::launch
