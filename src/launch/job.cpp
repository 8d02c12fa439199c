#include "launch/job.hpp"

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
#include "launch/limits.hpp"
#include "launch/state_report.hpp"

namespace warren::launch {

namespace {

// Ranks on their way to their program at once, on a machine with as many processors: starting them
// is then no longer what takes the time.
constexpr std::uint32_t starts_at_once = 32;

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

Job::Job(const CommandLine& line, char** environment)
    : line_(line),
      environment_(environment),
      started_ns_(monotonic_ns()),
      name_(std::to_string(getpid()) + "." + std::to_string(started_ns_)),
      buffer_(read_bytes) {
    sigemptyset(&former_signals_);
}

Job::~Job() {
    for (RankProcess& process : ranks_) {
        close_descriptor(process.output);
        close_descriptor(process.errors);
        close_descriptor(process.lifeline);
    }
    for (int* descriptor : {&events_, &rank_output_, &signals_, &null_input_, &lifeline_number_}) {
        close_descriptor(*descriptor);
    }
}

int Job::run() {
    if (prepare() && start_ranks()) {
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
    const std::uint64_t needed = descriptors_for(line_.ranks());
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
    const RankEnvironment environment = {.size = line_.ranks(),
                                         .segment = segment_.descriptor(),
                                         .lifeline = lifeline_number_,
                                         .job = name_};
    for (ResolvedProgram& program : programs_) {
        program.build_environment(line_.environment, environment, environment_);
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
    explain(std::to_string(line_.ranks()) + " ranks on " + std::to_string(processors_) +
            " processors (CPUs " + allowed.text() + ")" +
            (line_.ranks() > processors_ ? ": oversubscribed, waiting ranks yield and sleep early"
                                         : ""));
    if (Error error = plan_bindings(line_.bind_to, line_.ranks(), allowed, quota, bindings_)) {
        fail_with(1, error);
        return false;
    }
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

bool Job::make_segment() {
    const node::SegmentOptions options = {.ranks = line_.ranks(),
                                          .cores = processors_,
                                          .verbose = line_.verbose,
                                          .keeps_going = line_.keeps_going,
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
    explain("the node segment takes " + std::to_string(committed >> 10) + " kB");
    // Ranks inherit it under this number.
    fcntl(segment_.descriptor(), F_SETFD, 0);
    return true;
}

// --- start -------------------------------------------------------

bool Job::start_ranks() {
    ranks_.resize(line_.ranks());
    rank_of_.reserve(line_.ranks());
    Spawner spawner(std::min(processors_, starts_at_once));
    std::uint32_t rank = 0;
    for (std::uint32_t program = 0; program < programs_.size(); ++program) {
        for (std::uint32_t turn = 0; turn < programs_[program].ranks(); ++turn, ++rank) {
            if (!start_rank(rank, program, spawner)) {
                return false;
            }
        }
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

bool Job::start_rank(std::uint32_t rank, std::uint32_t program, Spawner& spawner) {
    RankProcess& process = ranks_[rank];
    ResolvedProgram& resolved = programs_[program];
    process.program = program;
    int output[2];
    int errors[2];
    int lifeline[2];
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lifeline) != 0) {
        end_job(1, "rank " + std::to_string(rank) + ": pipes: " + std::strerror(errno));
        return false;
    }
    process.output = output[0];
    process.errors = errors[0];
    process.lifeline = lifeline[0];
    if (line_.tag_output) {
        const std::string tag = "[" + std::to_string(rank) + "] ";
        process.output_lines.set_tag(tag);
        process.error_lines.set_tag(tag);
    }
    segment_.slot(rank).application = program;
    const SpawnRequest request = {
        .rank = rank,
        .path = resolved.path().c_str(),
        .arguments = resolved.arguments(),
        .shell_arguments = resolved.shell_arguments(),
        .environment = resolved.environment(),
        .directory = resolved.directory().empty() ? nullptr : resolved.directory().c_str(),
        .standard_input = rank == 0 ? input_.open() : null_input_,
        .standard_output = output[1],
        .standard_error = errors[1],
        .lifeline = lifeline[1],
        .lifeline_number = lifeline_number_,
        .group = group_,
        .processors = bindings_.sets.empty() ? nullptr : &bindings_.sets[rank],
        .signals = &former_signals_,
        .descriptors = descriptors_raised_ ? &former_descriptors_ : nullptr,
    };
    const SpawnFailure failure = spawner.start(request, process.pid);
    input_.close_reader();
    close(output[1]);
    close(errors[1]);
    close(lifeline[1]);
    if (process.pid < 0) {
        process.ended = true;
        not_started(failure);
        return false;
    }
    // MPI_Init may have stored the number of a process further down already.
    std::int32_t none = 0;
    segment_.slot(rank).pid.compare_exchange_strong(none, process.pid, std::memory_order_relaxed);
    rank_of_.emplace(process.pid, rank);
    ++alive_;
    open_streams_ += 2;
    watch_descriptor(rank_output_, process.output, Source::output, rank);
    watch_descriptor(rank_output_, process.errors, Source::errors, rank);
    watch_descriptor(events_, process.lifeline, Source::lifeline, rank);
    return true;
}

void Job::not_started(const SpawnFailure& failure) {
    RankProcess& process = ranks_[failure.rank];
    if (!process.ended) { // counted before its program failed to execute
        process.ended = true;
        --alive_;
    }
    const int code = failure.error_number == EACCES   ? exit_not_executable
                     : failure.error_number == ENOENT ? exit_not_found
                                                      : 1;
    std::string message = "rank " + std::to_string(failure.rank) + " (" +
                          programs_[process.program].name() + "): " + failure.step + ": " +
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
    if (guardian_.running()) {
        guardian_.end();
    }
    if (failed_ && !ranks_.empty()) {
        kill_stragglers(name_);
    }
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        drain(rank);
        ranks_[rank].output_lines.finish(rank, output_);
        ranks_[rank].error_lines.finish(rank, errors_);
    }
    // What a slow reader has not taken yet; a signal ends the wait.
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
    for (const RankProcess& process : ranks_) {
        observed.push_back({.pid = process.pid, .ended = process.ended});
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
