#include "launch/mpiexec/job.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/limits.hpp"
#include "launch/mpiexec/load_report.hpp"
#include "launch/mpiexec/state_report.hpp"

namespace warren::launch {

namespace {

// Ranks on their way to their program at once, on a machine with as many processors: starting them
// is then no longer what takes the time.
constexpr std::uint32_t starts_at_once = 32;

// A program with more processes per processor than this is executed once and copied. With as many
// as the processors can execute at once, copying would only make them wait for each other.
constexpr std::uint32_t most_executed_per_processor = 2;

constexpr std::size_t read_bytes = 64 * 1024;

std::string in_seconds(std::uint64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) * 1e-9);
    return text;
}

void close_descriptor(int& descriptor) {
    if (descriptor >= 0) {
        close(std::exchange(descriptor, -1));
    }
}

} // namespace

Job::Job(const CommandLine& line)
    : line_(line),
      started_ns_(monotonic_ns()),
      name_(std::to_string(getpid()) + "." + std::to_string(started_ns_)),
      buffer_(read_bytes) {
    sigemptyset(&former_signals_);
}

Job::~Job() {
    for (Streams& streams : streams_) {
        close_descriptor(streams.output);
        close_descriptor(streams.errors);
    }
    for (Rank& rank : ranks_) {
        close_descriptor(rank.manager);
    }
    for (Process& process : processes_) {
        close_descriptor(process.lifeline);
        close_descriptor(process.reports);
    }
    for (int* descriptor : {&events_, &rank_output_, &signals_, &null_input_, &lifeline_number_}) {
        close_descriptor(*descriptor);
    }
}

int Job::run() {
    if (prepare() && start_processes()) {
        watch();
    }
    clean_up();
    return exit_code_;
}

// --- prepare -----------------------------------------------------

bool Job::prepare() {
    // Signals come through a descriptor. Blocked ones stay what they were for the ranks, which get
    // the former mask back. SIGTTIN and SIGPIPE become errors of read and write.
    sigset_t handled;
    sigemptyset(&handled);
    for (const int number :
         {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2, SIGQUIT}) {
        sigaddset(&handled, number);
    }
    sigset_t blocked = handled;
    for (const int number : {SIGPIPE, SIGTTIN, SIGTTOU}) {
        sigaddset(&blocked, number);
    }
    sigprocmask(SIG_BLOCK, &blocked, &former_signals_);

    for (const Program& program : line_.programs) {
        int code = 0;
        if (Error error = ResolvedProgram::resolve(program, programs_.emplace_back(), code)) {
            fail_with(code, error);
            return false;
        }
    }
    if (has_host() && (!check_programs() || !make_host())) {
        return false;
    }
    // Another library's ranks have a socket pair each, each program may have one for its forked
    // ranks.
    constexpr std::uint64_t for_topology = 6;
    if (has_fibres() && line_.library.empty()) {
        ranks_per_stream_ = fibres_per_stream(line_.ranks());
    }
    if (ranks_per_stream_ > 1) {
        explain(std::to_string(ranks_per_stream_) +
                " ranks each share pipes for their output: the hard limit of descriptors (ulimit "
                "-Hn) is too low for " +
                std::to_string(line_.ranks()) + " ranks");
    }
    const std::uint64_t streams = (line_.ranks() + ranks_per_stream_ - 1) / ranks_per_stream_;
    const std::uint64_t needed = descriptors_for(streams, has_host()) + for_topology +
                                 (line_.library.empty() ? 0 : 2 * std::uint64_t{line_.ranks()}) +
                                 2 * line_.programs.size();
    if (Error error = raise_descriptor_limit(needed, former_descriptors_, descriptors_raised_)) {
        fail_with(1, error);
        return false;
    }
    if (!plan_processors() || !make_segment()) {
        return false;
    }
    events_ = epoll_create1(EPOLL_CLOEXEC);
    rank_output_ = epoll_create1(EPOLL_CLOEXEC);
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    null_input_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    lifeline_number_ = fcntl(events_, F_DUPFD_CLOEXEC, 3);
    if (events_ < 0 || rank_output_ < 0 || signals_ < 0 || null_input_ < 0 ||
        lifeline_number_ < 0) {
        fail_with(1, std::string("descriptors of mpiexec itself: ") + std::strerror(errno));
        return false;
    }
    RankEnvironment environment = {.size = line_.ranks(),
                                   .segment = segment_.descriptor(),
                                   .lifeline = lifeline_number_,
                                   .ranks_here = has_host() ? line_.ranks()
                                                 : line_.ranks_per_process > 1
                                                     ? line_.ranks_per_process
                                                     : 0,
                                   .job = name_};
    if (!publish_topology(environment)) {
        return false;
    }
    if (has_host()) {
        host_environment_.build(line_.environment, programs_[0].settings(), environment, environ);
        environment = {.size = line_.ranks(), .job = name_, .more = environment.more};
    }
    for (ResolvedProgram& program : programs_) {
        RankEnvironment own = environment;
        if (!own.preload.empty()) {
            own.preload = preloaded_before(program) + own.preload;
        }
        program.build_environment(line_.environment, own, environ);
        plan_forked_start(own, program);
    }
    watch_descriptor(events_, signals_, Source::signals, 0);
    watch_descriptor(events_, rank_output_, Source::all_output, 0);
    if (line_.timeout_s > 0) {
        time_limit_ns_ = started_ns_ + static_cast<std::uint64_t>(line_.timeout_s * 1e9);
    }
    return true;
}

bool Job::plan_processors() {
    const CpuSet allowed = CpuSet::allowed();
    const std::uint32_t quota = processor_quota();
    processors_ = std::max(1U, allowed.count());
    if (quota != 0 && quota < processors_) {
        processors_ = quota;
        explain("a control group grants the time of " + std::to_string(quota) + " of the " +
                std::to_string(allowed.count()) + " processors");
    }
    if (has_fibres()) {
        plan_workers(allowed);
        return plan_page_moves();
    }
    explain(std::to_string(line_.ranks()) + " ranks on " + std::to_string(processors_) +
            " processors (CPUs " + allowed.text() + ")" +
            (line_.ranks() > processors_ ? ": oversubscribed, waiting ranks yield and sleep early"
                                         : ""));
    if (Error error = plan_bindings(line_.bind_to, line_.ranks(), allowed, quota, bindings_)) {
        fail_with(1, error);
        return false;
    }
    join_places(line_.ranks_per_process, bindings_);
    if (!bindings_.reason.empty()) {
        explain(bindings_.reason);
    }
    if (line_.report_bindings) {
        for (std::uint32_t rank = 0; rank < line_.ranks(); ++rank) {
            say("rank " + std::to_string(rank) +
                (bindings_.sets.empty() ? " is not bound (CPUs " + allowed.text() + ")"
                                        : " is bound to " + bindings_.names[rank] + " (CPUs " +
                                              bindings_.sets[rank].text() + ")"));
        }
    }
    return true;
}

// A worker per processor, or as many as the user wants; more than processors are not bound.
void Job::plan_workers(const CpuSet& allowed) {
    const std::uint32_t count = line_.workers != 0 ? line_.workers : processors_;
    const bool bound = count <= allowed.count() && count <= processors_ &&
                       line_.bind_to != BindTo::none && processors_ == allowed.count();
    std::size_t processor = 0;
    for (std::uint32_t worker = 0; worker < count; ++worker) {
        while (bound && !allowed.has(processor)) {
            ++processor;
        }
        workers_.push_back(bound ? static_cast<int>(processor++) : -1);
    }
    const std::string text = std::to_string(line_.ranks()) + " fibres on " + std::to_string(count) +
                             " workers, " + (bound ? "bound to a processor each" : "not bound") +
                             " (CPUs " + allowed.text() + ")";
    explain(text);
    if (line_.report_bindings) {
        say(text);
    }
    processors_ = std::min(processors_, count);
}

bool Job::make_segment() {
    const node::SegmentOptions options = {.ranks = line_.ranks(),
                                          .cores = processors_,
                                          .verbose = line_.verbose,
                                          .keeps_going = line_.keeps_going,
                                          .crowded = has_fibres(),
                                          .commit = false};
    if (Error error = node::Segment::create(options, segment_)) {
        fail_with(1, error);
        return false;
    }
    const std::uint64_t committed = segment_.header().committed_bytes;
    if (Error error = check_memory_room(committed)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        fail_with(1, "the node segment of " + std::to_string(line_.ranks()) + " ranks needs " +
                         std::to_string(committed >> 10) + " kB, which do not fit " + record->text);
        return false;
    }
    if (Error error = guardian_.start(segment_, name_)) {
        fail_with(1, error);
        return false;
    }
    if (Error error = guardian_.wait_for_memory(segment_)) {
        fail_with(1, error);
        return false;
    }
    group_ = guardian_.pid();
    if (has_fibres() && !segment_.commit_loads()) {
        fail_with(1, std::string("memory for the loads of ranks: ") + std::strerror(errno));
        return false;
    }
    explain("the node segment takes " + std::to_string(committed >> 10) + " kB");
    // Ranks inherit it under this number.
    fcntl(segment_.descriptor(), F_SETFD, 0);
    return true;
}

// --- start -------------------------------------------------------

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
    streams_.resize(ranks_.back().streams + 1);
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
    int output_ends[2];
    int error_ends[2];
    if (pipe2(output_ends, O_CLOEXEC) != 0 || pipe2(error_ends, O_CLOEXEC) != 0) {
        return false;
    }
    Streams& streams = streams_[number];
    streams.output = output_ends[0];
    streams.errors = error_ends[0];
    output = output_ends[1];
    errors = error_ends[1];
    if (line_.tag_output) {
        std::vector<std::uint32_t> writers;
        for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
            if (ranks_[rank].streams == number) {
                writers.push_back(rank);
            }
        }
        const std::string tag = "[" + describe_ranks(writers) + "] ";
        streams.output_lines.set_tag(tag);
        streams.error_lines.set_tag(tag);
    }
    open_streams_ += 2;
    watch_descriptor(rank_output_, streams.output, Source::output, number);
    watch_descriptor(rank_output_, streams.errors, Source::errors, number);
    return true;
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
    watch_descriptor(events_, process.lifeline, Source::lifeline, number);
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

// --- clean up ----------------------------------------------------

void Job::clean_up() {
    // After a failure to start, those that run already are asked to end and waited for.
    while (alive_ > 0) {
        watch();
    }
    report_topologies();
    if (line_.load_summary && segment_) {
        const std::string text = load_summary(sample_loads(segment_, {}));
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = text.find('\n', begin);
            say(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    if (guardian_.running()) {
        guardian_.end();
    }
    if (failed_ && !ranks_.empty()) {
        kill_stragglers(name_);
    }
    for (std::uint32_t number = 0; number < streams_.size(); ++number) {
        drain(number);
        streams_[number].output_lines.finish(number, output_);
        streams_[number].error_lines.finish(number, errors_);
    }
    // Waits until slow readers have taken all output; a signal ends the wait.
    while (true) {
        output_.flush();
        errors_.flush();
        if (output_.empty() && errors_.empty()) {
            break;
        }
        pollfd waits[3] = {{.fd = output_.empty() ? -1 : 1, .events = POLLOUT, .revents = 0},
                           {.fd = errors_.empty() ? -1 : 2, .events = POLLOUT, .revents = 0},
                           {.fd = signals_, .events = POLLIN, .revents = 0}};
        poll(waits, 3, -1);
        signalfd_siginfo signal;
        if (signals_ >= 0 && (waits[2].revents & POLLIN) != 0 &&
            read(signals_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal) &&
            (signal.ssi_signo == SIGINT || signal.ssi_signo == SIGTERM ||
             signal.ssi_signo == SIGHUP)) {
            exit_code_ = 128 + static_cast<int>(signal.ssi_signo);
            break;
        }
    }
}

// --- messages ----------------------------------------------------

void Job::say(const std::string& text) {
    errors_.append("mpiexec: " + text + "\n", Sink::own_writer);
    errors_.flush();
}

void Job::explain(const std::string& text) {
    if (line_.verbose) {
        say(text);
    }
}

void Job::print_states() {
    std::vector<ObservedRank> observed;
    for (const Rank& rank : ranks_) {
        observed.push_back(
            {.pid = processes_[rank.process].pid, .thread = rank.thread, .ended = rank.ended});
    }
    const std::uint64_t now = monotonic_ns();
    say("state of the " + std::to_string(ranks_.size()) + " ranks after " +
        in_seconds(now - started_ns_));
    errors_.append(report_states(segment_, observed, now), Sink::own_writer);
    errors_.flush();
}

void Job::fail_with(int exit_code, const std::string& message) {
    if (!failed_) {
        failed_ = true;
        exit_code_ = exit_code;
        say(message);
    }
}

void Job::fail_with(int exit_code, Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    fail_with(exit_code, record->text);
}

} // namespace warren::launch
