// Starts the agents of a job's nodes: the launcher's command, and what each agent is to do.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "launch/mpiexec/agent.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/front.hpp"
#include "launch/mpiexec/node_plan.hpp"

namespace warren::launch {

namespace {

std::string own_path() {
    std::array<char, 4096> path;
    const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
    return {path.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> words;
    for (std::size_t at = text.find_first_not_of(' '); at != std::string::npos;
         at = text.find_first_not_of(' ', at)) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

} // namespace

std::vector<std::string> Front::launcher_words(const Host& host) const {
    const std::string path = own_path();
    std::string launcher = line_.launcher;
    if (launcher.empty()) {
        launcher = line_.by_slurm ? "srun" : "ssh";
    }
    std::vector<std::string> words;
    if (launcher == "srun") {
        words = {"srun",         "--nodes=1",   "--ntasks=1", "--nodelist=" + host.name,
                 "--overlap",    "--mem=0",     "--mpi=none", "--cpu-bind=none",
                 "--unbuffered", "--export=ALL"};
    } else if (launcher == "ssh") {
        words = {"ssh", "-T", "-o", "BatchMode=yes", host.name};
    } else if (launcher != "fork") {
        words = split(launcher);
        for (std::string& word : words) {
            for (std::size_t at = 0; (at = word.find("{host}", at)) != std::string::npos;) {
                word.replace(at, 6, host.name);
                at += host.name.size();
            }
        }
    }
    words.insert(words.end(), {path, agent_word});
    return words;
}

bool Front::start_agents() {
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
        nodes_[number].name = hosts_[number].name;
        if (!start_agent(number)) {
            return false;
        }
    }
    return true;
}

bool Front::start_agent(std::uint32_t number) {
    Node& node = nodes_[number];
    std::vector<std::string> words = launcher_words(hosts_[number]);
    std::vector<char*> arguments;
    std::string shown;
    for (std::string& word : words) {
        shown += (shown.empty() ? "" : " ") + word;
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    if (line_.verbose) {
        say("node " + std::to_string(number) + " is " + node.name + ", with " +
            std::to_string(hosts_[number].ranks) + " ranks: " + shown);
    }
    int input[2];
    int output[2];
    int errors[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0 ||
        pipe2(errors, O_CLOEXEC) != 0) {
        fail(exit_failure, "node " + node.name + ": pipes: " + std::strerror(errno));
        return false;
    }
    node.launcher = fork();
    if (node.launcher == 0) {
        // The terminal's signals are mpiexec's to pass on.
        setpgid(0, 0);
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        dup2(errors[1], STDERR_FILENO);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        execvp(arguments[0], arguments.data());
        dprintf(STDERR_FILENO, "%s: %s\n", arguments[0], std::strerror(errno));
        _exit(exit_not_found);
    }
    const int reason = errno;
    close(input[0]);
    close(output[1]);
    close(errors[1]);
    node.link = std::make_unique<Link>(output[0], input[1]);
    node.link->expect_greeting();
    node.errors = errors[0];
    fcntl(node.errors, F_SETFL, O_NONBLOCK);
    if (node.launcher < 0) {
        fail(exit_failure,
             "node " + node.name + ": starting its launcher: " + std::strerror(reason));
        close_link(node);
        return false;
    }
    setpgid(node.launcher, node.launcher);
    return true;
}

void Front::look_for_plans() {
    if (planned_ || std::any_of(nodes_.begin(), nodes_.end(),
                                [](const Node& node) { return node.machine.empty(); })) {
        return;
    }
    planned_ = true;
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
        if (nodes_[number].link != nullptr) {
            send_plan(number);
        }
    }
}

void Front::send_plan(std::uint32_t number) {
    NodePlan plan;
    plan.node = number;
    plan.world_size = line_.ranks();
    plan.dealt = line_.dealt;
    plan.sharers = static_cast<std::uint32_t>(
        std::count_if(nodes_.begin(), nodes_.end(),
                      [&](const Node& node) { return node.machine == nodes_[number].machine; }));
    plan.secret = secret_;
    plan.first_ranks = first_ranks_;
    for (const Host& host : hosts_) {
        plan.names.push_back(host.name);
    }
    for (const Program& program : line_.programs) {
        plan.ranks.push_back(program.ranks);
    }
    plan.words = words_;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        plan.environment.emplace_back(*entry);
    }
    std::array<char, 4096> directory;
    plan.directory = getcwd(directory.data(), directory.size()) != nullptr ? directory.data() : "/";
    nodes_[number].link->send(FrameKind::plan, 0, plan.pack());
}

} // namespace warren::launch
