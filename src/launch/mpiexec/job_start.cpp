// Starts the job's processes: divides ranks among them, executes them or has them forked.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/job.hpp"

namespace warren::launch {

namespace {

// Most processes that are on their way to their program at once, on a machine with as many
// processors. With more, starting them is no faster.
constexpr std::uint32_t starts_at_once = 32;

// A program with more processes per processor than this is executed once and forked. With fewer,
// all processors execute at once, and forks would only wait for each other.
constexpr std::uint32_t most_executed_per_processor = 2;

} // namespace

// Which ranks are in which process, with which program and streams.
void Job::divide_ranks() {
    ranks_.resize(line_.ranks());
    std::uint32_t rank = 0;
    for (std::uint32_t program = 0; program < programs_.size(); ++program) {
        for (std::uint32_t turn = 0; turn < programs_[program].ranks(); ++turn, ++rank) {
            if (has_host() ? rank == 0 : turn % line_.ranks_per_process == 0) {
                processes_.push_back(
                    {.first_rank = rank,
                     .ranks = has_host() ? line_.ranks() : line_.ranks_per_process});
            }
            const auto process = static_cast<std::uint32_t>(processes_.size() - 1);
            ranks_[rank] = {.program = program,
                            .process = process,
                            .streams = has_host() ? rank / ranks_per_stream_ : process};
            segment_.slot(rank).application = program;
            segment_.slot(rank).process = process;
        }
    }
    output_.set_streams(ranks_.back().streams + 1);
}

// Decides whether this program's further processes are forked from its first, and makes the first
// one's environment for that. Without a socket or the library they are executed.
void Job::plan_forked_start(const RankEnvironment& environment, ResolvedProgram& program) {
    std::unique_ptr<ForkedProgram>& forked = forked_programs_.emplace_back();
    const std::string library = ForkedStart::library();
    const std::uint32_t processes = program.ranks() / line_.ranks_per_process;
    if (has_host() || processes <= most_executed_per_processor * processors_ || library.empty() ||
        !ForkedStart::fits(program)) {
        return;
    }
    auto made = std::make_unique<ForkedProgram>();
    if (!made->forked_start.open()) {
        return;
    }
    RankEnvironment own = environment;
    own.more.push_back(made->forked_start.setting());
    own.preload += (own.preload.empty() ? "" : ":") + library;
    made->of_first.build(line_.environment, program.settings(), own, environ);
    forked = std::move(made);
    explain(program.name() + ": further processes are forked from the first");
}

bool Job::start_processes() {
    divide_ranks();
    process_of_.reserve(processes_.size());
    Spawner spawner(std::min(processors_, starts_at_once));
    bool all_started = true;
    for (std::uint32_t number = 0; all_started && number < processes_.size(); ++number) {
        all_started = has_host() ? start_host(spawner) : start_program(number, spawner);
    }
    if (!finish_forked() || !all_started) {
        return false;
    }
    const SpawnFailure failure = spawner.finish();
    if (failure.error_number != 0) {
        not_started(failure);
        return false;
    }
    char text[64];
    std::snprintf(text, sizeof text, "all ranks started after %.1f ms",
                  static_cast<double>(monotonic_ns() - started_ns_) * 1e-6);
    explain(text);
    return true;
}

// Makes the pipes of these streams; the ends to write to are the caller's.
bool Job::open_streams(std::uint32_t number, int& output, int& errors) {
    std::string tag;
    if (line_.tag_output) {
        std::vector<std::uint32_t> writers;
        for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
            if (ranks_[rank].streams == number) {
                writers.push_back(rank);
            }
        }
        tag = "[" + describe_ranks(writers) + "] ";
    }
    return output_.add(number, tag, output, errors);
}

// Starts a process that is a program.
bool Job::start_program(std::uint32_t number, Spawner& spawner) {
    const std::uint32_t first = processes_[number].first_rank;
    ResolvedProgram& program = programs_[ranks_[first].program];
    int output = -1;
    int errors = -1;
    if (!open_streams(number, output, errors)) {
        end_job(1, "rank " + std::to_string(first) + ": pipes: " + std::strerror(errno));
        return false;
    }
    ForkedProgram* forked = forked_programs_[ranks_[first].program].get();
    const bool is_first = forked != nullptr && forked->forked_start.socket_of_first() >= 0;
    const bool started = start_process(
        number,
        {.path = program.path().c_str(),
         .arguments = program.arguments(),
         .shell_arguments = program.shell_arguments(),
         .environment = is_first ? forked->of_first.pointers() : program.environment(),
         .directory = program.directory().empty() ? nullptr : program.directory().c_str(),
         .standard_output = output,
         .standard_error = errors,
         .forked_start = is_first ? forked->forked_start.socket_of_first() : -1,
         .processors = bindings_.sets.empty() ? nullptr : &bindings_.sets[first]},
        spawner);
    if (is_first) {
        forked->forked_start.close_theirs();
    }
    close(output);
    close(errors);
    return started;
}

// Starts a process of the job; the request says what it runs and where its output goes.
bool Job::start_process(std::uint32_t number, SpawnRequest request, Spawner& spawner) {
    Process& process = processes_[number];
    const std::uint32_t first = process.first_rank;
    int lifeline[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lifeline) != 0) {
        end_job(1, "rank " + std::to_string(first) + ": a socket pair: " + std::strerror(errno));
        return false;
    }
    process.lifeline = lifeline[0];
    request.rank = first;
    request.standard_input = first == 0 ? input_.open() : null_input_;
    if (input_.active()) {
        output_.expect_questions();
    }
    request.lifeline = lifeline[1];
    request.lifeline_number = lifeline_number_;
    request.group = group_;
    request.signals = &former_signals_;
    request.descriptors = descriptors_raised_ ? &former_descriptors_ : nullptr;
    const bool is_forked = start_forked(number, request);
    pid_t pid = -1;
    const SpawnFailure failure = is_forked ? SpawnFailure() : spawner.start(request, pid);
    input_.close_reader();
    close(lifeline[1]);
    if (!is_forked && pid < 0) {
        process.ended = true;
        not_started(failure);
        return false;
    }
    ++alive_;
    events_.watch(process.lifeline, Source::lifeline, number);
    if (!is_forked) {
        process_runs(number, pid);
        return true;
    }
    return take_forked(forked_programs_[ranks_[first].program]->forked_start, ForkedStart::window);
}

void Job::process_runs(std::uint32_t number, pid_t pid) {
    Process& process = processes_[number];
    process.pid = pid;
    for (std::uint32_t rank = process.first_rank; rank < process.first_rank + process.ranks;
         ++rank) {
        // MPI_Init may have stored the number of a process further down already.
        std::int32_t none = 0;
        segment_.slot(rank).pid.compare_exchange_strong(none, pid, std::memory_order_relaxed);
    }
    process_of_.emplace(pid, number);
}

// --- processes forked from first processes

// Requests a fork; false when this process has to be executed.
bool Job::start_forked(std::uint32_t number, const SpawnRequest& request) {
    const std::uint32_t program = ranks_[processes_[number].first_rank].program;
    ForkedProgram* forked =
        program < forked_programs_.size() ? forked_programs_[program].get() : nullptr;
    return forked != nullptr && request.forked_start < 0 && forked->forked_start.ready() &&
           forked->forked_start.start(request);
}

// Records the forked processes that run, until at most `limit` requests are under way.
bool Job::take_forked(ForkedStart& forked_start, std::size_t limit) {
    std::vector<ForkedStart::Started> answers;
    if (!forked_start.collect(limit, answers)) {
        forked_start.give_up(answers);
    }
    const SpawnFailure* first = nullptr;
    for (const ForkedStart::Started& answer : answers) {
        if (answer.failure.error_number == 0) {
            process_runs(ranks_[answer.rank].process, answer.pid);
            continue;
        }
        Process& process = processes_[ranks_[answer.rank].process];
        process.ended = true;
        --alive_;
        first = first == nullptr ? &answer.failure : first;
    }
    if (first != nullptr) {
        not_started(*first);
    }
    return first == nullptr;
}

// Lets the first processes go on, too.
bool Job::finish_forked() {
    bool all_run = true;
    for (const std::unique_ptr<ForkedProgram>& forked : forked_programs_) {
        if (forked != nullptr) {
            all_run = take_forked(forked->forked_start, 0) && all_run;
            forked->forked_start.close();
        }
    }
    return all_run;
}

void Job::not_started(const SpawnFailure& failure) {
    const Rank& rank = ranks_[failure.rank];
    const int code = failure.error_number == EACCES   ? exit_not_executable
                     : failure.error_number == ENOENT ? exit_not_found
                                                      : 1;
    std::string message = "rank " + std::to_string(failure.rank) + " (" +
                          programs_[rank.program].name() + "): " + failure.step + ": " +
                          std::strerror(failure.error_number);
    if (failure.error_number == EAGAIN) {
        message += "; the limit of processes (ulimit -u, or pids.max of a control group) is too "
                   "low for " +
                   std::to_string(line_.ranks()) + " ranks";
    } else if (failure.error_number == ENOENT) {
        message += " (is the interpreter in its first line there?)";
    }
    end_job(code, message);
}

} // namespace warren::launch
