#include "launch/mpiexec/job.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/limits.hpp"
#include "launch/mpiexec/load_report.hpp"
#include "launch/mpiexec/state_report.hpp"

namespace warren::launch {

namespace {

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
      name_(std::to_string(getpid()) + "." + std::to_string(started_ns_)) {
    sigemptyset(&former_signals_);
}

Job::~Job() {
    for (Rank& rank : ranks_) {
        close_descriptor(rank.manager);
    }
    for (Process& process : processes_) {
        close_descriptor(process.lifeline);
        close_descriptor(process.reports);
    }
    for (int* descriptor : {&signals_, &null_input_, &lifeline_number_}) {
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
    if (access("/proc/self/fd", X_OK) != 0) {
        fail_with(1, std::string("/proc is not mounted here (/proc/self/fd: ") +
                         std::strerror(errno) + "), and mpiexec needs it");
        return false;
    }
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
    const bool waits = events_.open() && output_.open(events_);
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    null_input_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    lifeline_number_ = fcntl(events_.descriptor(), F_DUPFD_CLOEXEC, 3);
    if (!waits || signals_ < 0 || null_input_ < 0 || lifeline_number_ < 0) {
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
    events_.watch(signals_, Source::signals);
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

void Job::clean_up() {
    // After a failure to start, those that run already are asked to end and waited for.
    while (alive_ > 0) {
        watch();
    }
    report_topologies();
    if (!line_.balance_record.empty() && !failed_ &&
        segment_.loads().job->balancings.load(std::memory_order_relaxed) == 0) {
        say("--balance-record " + line_.balance_record +
            ": nothing is written, because the job ended before the balancer looked "
            "(--balance-at)");
    }
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
    if (const int number = output_.finish(signals_)) {
        exit_code_ = 128 + number;
    }
}

// --- messages ----------------------------------------------------

void Job::say(const std::string& text) {
    output_.say("mpiexec: " + text + "\n");
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
    output_.say(report_states(segment_, observed, now));
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
