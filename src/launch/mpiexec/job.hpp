// Job: all ranks of one mpiexec, from their start to the end of the last process.
//
// A process of the job has one or several ranks; a host process has all of them.
//
//     prepare    look up programs, choose bindings, make the node segment, start the guardian
//     start      the processes, each with its streams and a lifeline
//     watch      one epoll loop: output, ends of ranks, signals, time limits
//     clean up   kill what is left of the process group, hand on the last output
//
// The first failure decides the exit code and the message; what happens to the other ranks because
// of it is not reported. Invariants
//  1. Every process of the job is in the guardian's process group or carries WARREN_JOB.
//  2. The near ends of all pipes and lifelines are open in mpiexec only.
//  3. Nothing is named in a file system.
// Thread rule: mpiexec's only thread.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <deque>
#include <string>
#include <sys/resource.h>
#include <unordered_map>
#include <vector>

#include "launch/mpiexec/binding.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/events.hpp"
#include "launch/mpiexec/forked_start.hpp"
#include "launch/mpiexec/guardian.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "launch/mpiexec/hwloc_publication.hpp"
#include "launch/mpiexec/outcome.hpp"
#include "launch/mpiexec/process_manager.hpp"
#include "launch/mpiexec/program.hpp"
#include "launch/mpiexec/rank_output.hpp"
#include "launch/mpiexec/spawn.hpp"
#include "launch/mpiexec/terminal_input.hpp"
#include "launch/mpiexec/topology_publication.hpp"
#include "mpi/job/segment.hpp"

namespace warren::launch {

class Job {
  public:
    explicit Job(const CommandLine& line);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // Runs the job; the exit code of mpiexec.
    int run();

  private:
    struct Rank {
        std::uint32_t program = 0;
        std::uint32_t process = 0;
        std::uint32_t streams = 0;
        pid_t thread = 0; // of a host process; 0: not known
        int manager = -1; // socket to another MPI library's process management
        bool ended = false;
    };
    // Its ranks follow each other.
    struct Process {
        pid_t pid = -1;
        int lifeline = -1;
        std::uint32_t first_rank = 0;
        std::uint32_t ranks = 0;
        bool ended = false;
        int reports = -1;               // of a host process (host_plan.hpp)
        std::int64_t crashed_rank = -1; // who is about to end it by a signal, if known
        bool overflowed = false;        // …because its stack is full
    };

    // How far the end of the job has come.
    enum class Ending : std::uint8_t { not_yet, asked, killed };

    // Each returns false when the job cannot go on; message and exit code are then set.
    bool prepare();
    bool plan_processors();
    void plan_workers(const CpuSet& allowed);
    bool plan_page_moves();
    bool make_segment();
    bool publish_topology(RankEnvironment& environment);
    bool offer_hwloc(HwlocOffer offer, RankEnvironment& environment);
    static std::string preloaded_before(const ResolvedProgram& program);
    bool publish_image(RankEnvironment& environment);
    bool publish_hwloc(RankEnvironment& environment);
    bool make_image();
    void read_topology_socket();
    void report_topologies();
    void divide_ranks();
    bool start_processes();
    void plan_forked_start(const RankEnvironment& environment, ResolvedProgram& program);
    bool start_program(std::uint32_t number, Spawner& spawner);
    bool start_process(std::uint32_t number, SpawnRequest request, Spawner& spawner);
    bool start_forked(std::uint32_t number, const SpawnRequest& request);
    bool take_forked(ForkedStart& forked_start, std::size_t limit);
    bool finish_forked();
    void process_runs(std::uint32_t number, pid_t pid);
    bool check_programs();
    bool make_host();
    std::vector<std::uint32_t> distances_of_workers();
    void plan_balancing(HostPlan& plan);
    bool start_host(Spawner& spawner);
    bool open_streams(std::uint32_t number, int& output, int& errors);
    void not_started(const SpawnFailure& failure);
    void watch();
    void clean_up();

    void take(const Event& event);
    void update_input();

    void take_signals();
    void take_ended();
    void process_ended(Process& process, int wait_status);
    void read_reports(Process& process);
    void serve_manager(std::uint32_t rank);
    void all_ranks_wait();
    void rank_ended(std::uint32_t rank, pid_t pid, int wait_status);
    void judge_end(const std::vector<std::uint32_t>& ranks, pid_t pid, int wait_status);
    void forward(int number);
    void stop();
    void look_for_recorded_end();
    void look_for_missing_ranks();
    void look_for_vain_waits();
    bool any_initialised() const;

    void fail_with(int exit_code, const std::string& message);
    void fail_with(int exit_code, Error error);
    void end_job(int exit_code, const std::string& message);
    void kill_ranks();
    void signal_ranks(int number);
    int milliseconds_to_deadline() const;
    void pass_deadlines();

    void say(const std::string& text);
    void explain(const std::string& text); // with -v
    void print_states();

    bool has_host() const { return line_.rank_kind != RankKind::process; }
    bool has_fibres() const { return line_.rank_kind == RankKind::fibre; }

    // A program whose further processes are forked from its first.
    struct ForkedProgram {
        ForkedStart forked_start;
        Environment of_first;
    };

    const CommandLine& line_;
    std::uint64_t started_ns_;
    std::string name_; // WARREN_JOB
    std::deque<ResolvedProgram> programs_;
    std::vector<bool> own_allocators_; // of programs of threads or fibres: whether they have them
    std::vector<std::unique_ptr<ForkedProgram>>
        forked_programs_;   // by program; null: all are executed
    std::string host_path_; // of ranks that are threads
    Environment host_environment_;
    ProcessManager manager_; // of another MPI library's ranks
    BindingPlan bindings_;
    std::uint32_t processors_ = 1;
    std::vector<int> workers_;      // of fibres: the processor of each
    std::vector<int> worker_nodes_; // and its NUMA node; empty: pages don't follow fibres
    TopologyPublication topology_;
    HwlocPublication hwloc_;
    std::array<std::uint32_t, 4> topologies_loaded_{}; // by HwlocWay
    node::Segment segment_;
    Guardian guardian_;
    pid_t group_ = 0; // the guardian's number, also after its end
    std::vector<Rank> ranks_;
    std::vector<Process> processes_;
    std::uint32_t ranks_per_stream_ = 1; // of a host process
    std::unordered_map<pid_t, std::uint32_t> process_of_;
    std::uint32_t alive_ = 0; // processes

    Events events_;
    RankOutput output_;
    TerminalInput input_;
    int signals_ = -1;
    int null_input_ = -1;
    int lifeline_number_ = -1; // a number that is free in mpiexec, for the ranks' end
    bool input_watched_ = false;
    sigset_t former_signals_;
    rlimit former_descriptors_ = {};
    bool descriptors_raised_ = false;

    Ending ending_ = Ending::not_yet;
    bool failed_ = false;
    int exit_code_ = 0;
    int forwarded_ = 0; // the signal
    bool ended_without_init_ = false;
    EndedRanks first_without_init_;
    std::vector<std::uint32_t> failed_after_finalize_;
    std::uint64_t look_for_waits_ns_ = 0; // 0: none
    std::uint64_t kill_at_ns_ = 0;        // 0: none
    std::uint64_t time_limit_ns_ = 0;     // 0: none
    std::uint64_t look_again_ns_ = 0;     // 0: none
    std::uint64_t linger_until_ns_ = 0;   // 0: none
};

} // namespace warren::launch
