// Front: mpiexec of a job of several nodes. It has no ranks itself: an agent per node has
// (agent.hpp), which the launcher starts. The front stands between the agents and the user: it
// passes on output, input and signals, gathers the cards of a fence, keeps the time limit, and ends
// the whole job when a node's part fails or its agent is gone.
//
// Invariants
//  1. An agent that has not sent `ended` and whose link ends is lost, which ends the job.
//  2. The first failure is the job's exit code, unless its node says that the next explains more.
//  3. When the front returns, no launcher of it runs.
// Thread rule: mpiexec's only thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/hosts.hpp"
#include "launch/mpiexec/link.hpp"
#include "launch/mpiexec/output.hpp"

namespace warren::launch {

class Front {
  public:
    // `words`: of the command line, without a configuration file.
    Front(const CommandLine& line, std::vector<std::string> words, std::vector<Host> hosts);
    ~Front();
    Front(const Front&) = delete;
    Front& operator=(const Front&) = delete;

    // Runs the job; the exit code of mpiexec.
    int run();

  private:
    struct Node {
        std::string name;
        pid_t launcher = -1;
        int wait_status = 0;
        bool launcher_ended = false;
        std::unique_ptr<Link> link; // null: it has ended, or never was
        int errors = -1;            // the launcher's standard error
        std::string last_error;     // its last line
        std::uint64_t lost_ns = 0;  // when the link ended without an end of the node; 0: it didn't
        bool ended = false;
        std::string machine; // its kernel and processors; empty: it has not said yet
        bool in_fence = false;
        std::string cards;
        std::string without_init; // ranks that ended without MPI_Init: what to say
        int without_init_code = 0;
    };

    bool start_agents();
    bool start_agent(std::uint32_t number);
    // Sends all plans when all agents have said what they run on.
    void look_for_plans();
    void send_plan(std::uint32_t number);
    std::vector<std::string> launcher_words(const Host& host) const;

    void wait();
    bool running() const;
    int milliseconds_to_deadline() const;
    void read_link(Node& node, std::uint32_t number);
    void take(Node& node, std::uint32_t number, const Frame& frame);
    void read_errors(Node& node, std::uint32_t number);
    void take_signals();
    void reap();
    void read_input();
    void pass_deadlines();
    void look_for_fence();
    void look_for_lost();
    void close_link(Node& node);

    void say(const std::string& text);
    void fail(int exit_code, const std::string& message, std::int64_t node = -1);
    void end_job();
    void send_to_all(FrameKind kind, std::uint32_t number = 0, const std::string& payload = {});
    void forward(int number);

    const CommandLine& line_;
    std::vector<std::string> words_;
    std::vector<Host> hosts_;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> first_ranks_;
    std::uint64_t secret_ = 0;
    Sink output_{1};
    Sink errors_{2};
    int signals_ = -1;
    std::uint64_t started_ns_ = 0;
    bool told_output_broken_ = false;
    bool planned_ = false;

    bool failed_ = false;
    int exit_code_ = 0;
    std::int64_t failed_node_ = -1; // who failed first; -1: mpiexec itself
    bool explains_more_ = false;
    bool ending_ = false;
    int forwarded_ = 0; // the signal
    std::uint64_t kill_at_ns_ = 0;
    std::uint64_t time_limit_ns_ = 0;

    std::uint32_t input_node_ = 0; // who has rank 0
    bool input_open_ = true;
    std::uint64_t input_under_way_ = 0; // bytes that rank 0 has not taken
};

} // namespace warren::launch
