#include "launch/mpiexec/agent.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "launch/mpiexec/cpu_set.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/job.hpp"
#include "launch/mpiexec/request.hpp"
#include "launch/mpiexec/tuning.hpp"

namespace warren::launch {

namespace {

// Variables that describe a node or the way to it: ranks have those of their own node.
bool is_of_node(std::string_view entry) {
    constexpr std::string_view starts[] = {
        "HOSTNAME=",           "SSH_",         "SLURM_NODEID=",   "SLURM_PROCID=",
        "SLURM_LOCALID=",      "SLURM_STEP",   "SLURM_TASK_PID=", "SLURMD_NODENAME=",
        "SLURM_TOPOLOGY_ADDR", "SLURM_GTIDS=", "XDG_RUNTIME_DIR="};
    return std::any_of(std::begin(starts), std::end(starts),
                       [&](std::string_view start) { return entry.starts_with(start); });
}

void take_environment(const std::vector<std::string>& entries) {
    std::vector<std::string> own;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (is_of_node(*entry)) {
            own.emplace_back(*entry);
        }
    }
    clearenv();
    const auto set = [](const std::string& entry) {
        const std::size_t equals = entry.find('=');
        if (equals != std::string::npos && equals > 0) {
            setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
        }
    };
    for (const std::string& entry : entries) {
        if (!is_of_node(entry)) {
            set(entry);
        }
    }
    for (const std::string& entry : own) {
        set(entry);
    }
}

// Agents of nodes that are containers or namespaces of one machine say the same, unless they have
// processors of their own.
std::string machine() {
    std::array<char, 64> kernel = {};
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, kernel.data(), kernel.size());
    if (file >= 0) {
        close(file);
    }
    std::string name(kernel.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    if (name.empty()) {
        std::array<char, 256> host = {};
        gethostname(host.data(), host.size() - 1);
        name = host.data();
    }
    return name + " " + CpuSet::allowed().text();
}

// Waits for the plan. False: there is none, and the exit code.
bool await_plan(Agent& agent, int& exit_code) {
    Frame frame;
    while (agent.link.await(frame, plan_timeout_ms)) {
        if (frame.kind == FrameKind::plan) {
            exit_code = exit_failure;
            return NodePlan::unpack(frame.payload, agent.plan);
        }
        if (frame.kind == FrameKind::signal || frame.kind == FrameKind::end_job) {
            exit_code = frame.kind == FrameKind::signal ? 128 + static_cast<int>(frame.number)
                                                        : exit_failure;
            agent.link.send(FrameKind::ended, static_cast<std::uint32_t>(exit_code));
            agent.link.drain(last_words_timeout_ms);
            return false;
        }
    }
    exit_code = exit_failure;
    return false;
}

// Turns this process into what mpiexec would be on this node.
Error become_mpiexec(const NodePlan& plan, CommandLine& line) {
    take_environment(plan.environment);
    if (chdir(plan.directory.c_str()) != 0) {
        return fail(exit_failure, "the working directory %s: %s", plan.directory.c_str(),
                    std::strerror(errno));
    }
    if (Error error = read_request(plan.words, line)) {
        return error;
    }
    if (line.programs.size() != plan.ranks.size()) {
        return fail(exit_failure, "mpiexec and its agent are of different builds of Warren");
    }
    for (std::uint32_t program = 0; program < line.programs.size(); ++program) {
        line.programs[program].ranks = plan.ranks_here(program);
    }
    line.timeout_s = 0; // mpiexec's own
    return check_combinations(line);
}

} // namespace

int run_agent() {
    // Text that a library prints by mistake must not get between frames.
    const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (input < 0 || output < 0 || null < 0) {
        return exit_failure;
    }
    dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close(null);

    Agent agent(input, output);
    agent.link.greet();
    agent.link.send(FrameKind::machine, 0, machine());
    int exit_code = 0;
    if (!await_plan(agent, exit_code)) {
        return exit_code;
    }
    CommandLine line;
    if (Error error = become_mpiexec(agent.plan, line)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        exit_code = record->error_class;
        agent.link.send(FrameKind::failed, static_cast<std::uint32_t>(exit_code), record->text);
        agent.link.send(FrameKind::ends_job);
    } else {
        SpawnedBy nobody;
        Job job(line, nobody, &agent);
        exit_code = job.run();
    }
    agent.link.send(FrameKind::ended, static_cast<std::uint32_t>(exit_code));
    agent.link.drain(last_words_timeout_ms);
    return exit_code;
}

} // namespace warren::launch
