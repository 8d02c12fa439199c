// JobWatch: a job between the start of its ranks and the end of the last process: one loop over
// output, ends of ranks, signals and time limits.
//
// A rank's end is judged (outcome.hpp); a failure that others may wait for ends the job: its ranks
// get SIGTERM, and after a while SIGKILL. Thread rule: mpiexec's only thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "launch/mpiexec/job_plan.hpp"
#include "launch/mpiexec/job_state.hpp"
#include "launch/mpiexec/job_topology.hpp"
#include "launch/mpiexec/other_libraries.hpp"
#include "launch/mpiexec/outcome.hpp"
#include "launch/mpiexec/spawned_jobs.hpp"

namespace warren::launch {

class JobWatch {
  public:
    JobWatch(JobState& job, const JobPlan& plan, JobTopology& topology)
        : job_(job), plan_(plan), topology_(topology), spawned_(job) {
        sigemptyset(&former_signals_);
    }
    ~JobWatch();
    JobWatch(const JobWatch&) = delete;
    JobWatch& operator=(const JobWatch&) = delete;

    // Takes the signals of mpiexec. False when it can't; the report has the reason.
    bool open();
    const sigset_t& former_signals() const { return former_signals_; } // that were blocked
    int signals() const { return signals_; }
    const SpawnedJobs& spawned() const { return spawned_; }
    // Ranks may ask for processes from now on.
    void open_spawning() { spawned_.open(); }

    // Watches until the last process has ended, and its output a little later.
    void run();
    // Ends the ranks because of a failure; the first one's message is told.
    void end_job(int exit_code, const std::string& message);

  private:
    // How far the end of the job has come.
    enum class Ending : std::uint8_t { not_yet, asked, killed };

    void take(const Event& event);
    void update_input();
    void update_link();
    void read_link();
    void take_frame(const Frame& frame);
    void end_fence(const Frame& frame);
    void read_lifeline(JobProcess& process);
    void take_signal(int number);

    void take_signals();
    void take_ended();
    void process_ended(JobProcess& process, int wait_status);
    void read_reports(JobProcess& process);
    void serve_manager(std::uint32_t rank);
    void all_ranks_wait();
    void rank_ended(std::uint32_t rank, pid_t pid, int wait_status);
    void tell_without_init();
    void judge_end(const std::vector<std::uint32_t>& ranks, pid_t pid, int wait_status);
    void tell_of_end(const std::vector<std::uint32_t>& ended);
    void look_for_recorded_end();
    bool awaits_reason();
    void look_for_missing_ranks();
    void look_for_vain_waits();
    bool any_initialised() const;

    void forward(int number);
    void stop();
    void kill_ranks();
    void signal_ranks(int number);
    int milliseconds_to_deadline() const;
    void pass_deadlines();
    void print_states();
    void print_states_of_spawned();

    JobState& job_;
    const JobPlan& plan_;
    JobTopology& topology_;
    SpawnedJobs spawned_;
    OtherLibraries other_libraries_;
    int signals_ = -1;
    sigset_t former_signals_;
    bool input_watched_ = false;
    bool relay_watched_ = false;
    bool link_watched_ = false;
    Ending ending_ = Ending::not_yet;
    int forwarded_ = 0; // the signal
    bool ended_without_init_ = false;
    EndedRanks first_without_init_;
    std::vector<std::uint32_t> failed_after_finalize_;
    std::uint64_t look_for_waits_ns_ = 0; // 0: none; and so the next
    std::uint64_t kill_at_ns_ = 0;
    std::uint64_t time_limit_ns_ = 0;
    std::uint64_t look_again_ns_ = 0;
    std::uint64_t linger_until_ns_ = 0;
    // How long the mpiexec of a world that ranks have lost may take to say why.
    std::uint64_t reason_until_ns_ = 0;
};

} // namespace warren::launch
