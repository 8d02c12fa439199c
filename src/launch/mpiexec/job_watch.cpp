// The part of a job's life between the start of its ranks and their end.
#include "launch/mpiexec/job.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/state_report.hpp"

namespace warren::launch {

namespace {

constexpr std::uint64_t ms = 1'000'000;

// After a failure ranks get SIGTERM, so that handlers can put things in order, and this long.
constexpr std::uint64_t failure_grace_ns = 1000 * ms;

// After a signal of the user's that was passed on: time to write a checkpoint.
constexpr std::uint64_t signal_grace_ns = 10'000 * ms;

// Children in the background may still write when all ranks have succeeded ("prog | tee log &").
constexpr std::uint64_t linger_ns = 500 * ms;

// How often initialised ranks are looked for while a rank that ended without MPI_Init is missing.
constexpr std::uint64_t look_again_ns = 250 * ms;

// An unfinished line of rank 0 is a question when a user sits at the terminal.
constexpr std::uint64_t prompt_ns = 150 * ms;

constexpr int events_at_once = 64;

} // namespace

void Job::watch() {
    std::array<epoll_event, events_at_once> events;
    while (alive_ > 0 || (linger_until_ns_ > monotonic_ns() && open_streams_ > 0)) {
        update_input();
        const int count =
            epoll_wait(events_, events.data(), events_at_once, milliseconds_to_deadline());
        bool signals = false;
        for (int index = 0; index < count; ++index) {
            const std::uint64_t data = events[static_cast<std::size_t>(index)].data.u64;
            const auto number = static_cast<std::uint32_t>(data);
            switch (static_cast<Source>(data >> 32)) {
            case Source::all_output:
                read_some();
                break;
            case Source::lifeline:
                // A byte: a rank aborts. The end of it: the process ends, which SIGCHLD tells.
                epoll_ctl(events_, EPOLL_CTL_DEL, processes_[number].lifeline, nullptr);
                look_for_recorded_end();
                break;
            case Source::reports:
                read_reports(processes_[number]);
                break;
            case Source::manager:
                serve_manager(number);
                break;
            case Source::topology:
                read_topology_socket();
                break;
            case Source::signals:
                signals = true; // after the output that was there before
                break;
            case Source::input:
                input_.pass_on();
                break;
            default: // a sink takes more: below
                break;
            }
        }
        if (signals) {
            take_signals();
        }
        pass_deadlines();
        update_sinks();
    }
}

// --- streams -----------------------------------------------------

void Job::watch_descriptor(int group, int descriptor, Source source, std::uint32_t number) {
    epoll_event event = {};
    event.events = source == Source::sink ? EPOLLOUT : EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(source) << 32 | number;
    epoll_ctl(group, EPOLL_CTL_ADD, descriptor, &event);
}

void Job::read_some() {
    std::array<epoll_event, events_at_once> events;
    const int count = epoll_wait(rank_output_, events.data(), events_at_once, 0);
    for (int index = 0; index < count; ++index) {
        const std::uint64_t data = events[static_cast<std::size_t>(index)].data.u64;
        read_stream(static_cast<std::uint32_t>(data), static_cast<Source>(data >> 32));
    }
}

void Job::read_stream(std::uint32_t number, Source source) {
    Streams& streams = streams_[number];
    const bool is_output = source == Source::output;
    Sink& sink = is_output ? output_ : errors_;
    const int descriptor = is_output ? streams.output : streams.errors;
    const ssize_t got = read(descriptor, buffer_.data(), buffer_.size());
    if (got < 0 && errno == EINTR) {
        return;
    }
    // When nobody reads mpiexec's output, the ranks get to know as in a plain pipeline.
    if (got <= 0 || sink.broken()) {
        close_stream(number, source);
        return;
    }
    LineAssembler& lines = is_output ? streams.output_lines : streams.error_lines;
    lines.feed({buffer_.data(), static_cast<std::size_t>(got)}, number, sink);
    if (is_output && number == 0 && input_.active() && lines.unfinished()) {
        show_prompt_ns_ = monotonic_ns() + prompt_ns;
    }
}

void Job::close_stream(std::uint32_t number, Source source) {
    Streams& streams = streams_[number];
    const bool is_output = source == Source::output;
    int& descriptor = is_output ? streams.output : streams.errors;
    if (descriptor < 0) {
        return;
    }
    (is_output ? streams.output_lines : streams.error_lines)
        .finish(number, is_output ? output_ : errors_);
    close(std::exchange(descriptor, -1));
    --open_streams_;
}

void Job::drain(std::uint32_t number) {
    Streams& streams = streams_[number];
    while (true) {
        pollfd waits[2] = {{.fd = streams.output, .events = POLLIN, .revents = 0},
                           {.fd = streams.errors, .events = POLLIN, .revents = 0}};
        if (poll(waits, 2, 0) <= 0) {
            return;
        }
        for (int index = 0; index < 2; ++index) {
            const Source source = index == 0 ? Source::output : Source::errors;
            if ((waits[index].revents & POLLIN) != 0) {
                read_stream(number, source);
            } else if (waits[index].revents != 0) {
                close_stream(number, source);
            }
        }
    }
}

void Job::update_input() {
    const bool wanted = input_.readable_now();
    if (wanted != input_watched_) {
        input_watched_ = wanted;
        if (wanted) {
            watch_descriptor(events_, STDIN_FILENO, Source::input, 0);
        } else {
            epoll_ctl(events_, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
        }
    }
}

void Job::update_sinks() {
    for (int index = 0; index < 2; ++index) {
        Sink& sink = index == 0 ? output_ : errors_;
        sink.flush();
        const bool wanted = !sink.empty() && sink.pollable();
        if (wanted != sink_watched_[index]) {
            sink_watched_[index] = wanted;
            if (wanted) {
                watch_descriptor(events_, sink.descriptor(), Source::sink, 0);
            } else {
                epoll_ctl(events_, EPOLL_CTL_DEL, sink.descriptor(), nullptr);
            }
        }
    }
    const bool reads = !output_.full() && !errors_.full();
    if (reads != reads_output_) {
        reads_output_ = reads;
        if (reads) {
            watch_descriptor(events_, rank_output_, Source::all_output, 0);
        } else {
            epoll_ctl(events_, EPOLL_CTL_DEL, rank_output_, nullptr);
        }
    }
}

// --- signals and ends --------------------------------------------

void Job::take_signals() {
    signalfd_siginfo signal;
    while (read(signals_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
        const int number = static_cast<int>(signal.ssi_signo);
        switch (number) {
        case SIGCHLD:
            take_ended();
            break;
        case SIGINT:
        case SIGTERM:
        case SIGHUP:
            forward(number);
            break;
        case SIGTSTP:
            stop();
            break;
        case SIGUSR1:
        case SIGQUIT:
            print_states();
            break;
        default: // SIGCONT, SIGUSR2
            signal_ranks(number);
            break;
        }
    }
}

void Job::take_ended() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        const auto found = process_of_.find(pid);
        if (found != process_of_.end()) {
            process_ended(processes_[found->second], status);
        } else if (pid == guardian_.pid()) {
            guardian_.forget();
            if (ending_ != Ending::killed) {
                end_job(1,
                        "the guardian process (pid " + std::to_string(pid) + ") " +
                            (WIFSIGNALED(status) ? "was killed by " + signal_name(WTERMSIG(status))
                                                 : "ended") +
                            "; without it the job could leave processes behind");
            }
        }
    }
}

void Job::process_ended(Process& process, int wait_status) {
    read_reports(process);
    std::vector<std::uint32_t> ended; // with the process
    for (std::uint32_t rank = process.first_rank; rank < process.first_rank + process.ranks;
         ++rank) {
        drain(ranks_[rank].streams); // last words come before the message about the end
        if (!std::exchange(ranks_[rank].ended, true)) {
            ended.push_back(rank);
        }
    }
    if (WIFSIGNALED(wait_status) && process.crashed_rank >= 0) {
        ended = {static_cast<std::uint32_t>(process.crashed_rank)};
    }
    process.ended = true;
    if (--alive_ == 0) {
        linger_until_ns_ = failed_ ? 0 : monotonic_ns() + linger_ns;
    }
    look_for_recorded_end();
    if (ending_ == Ending::not_yet && !ended.empty()) {
        judge_end(ended, process.pid, wait_status);
    }
}

// Decides what the end of these ranks, all of one process, means for the job.
void Job::judge_end(const std::vector<std::uint32_t>& ranks, pid_t pid, int wait_status) {
    EndedRanks ended = gravest(ranks, segment_, WIFSIGNALED(wait_status));
    ended.pid = pid;
    ended.wait_status = wait_status;
    ended.program = programs_[ranks_[ended.ranks.front()].program].name();
    ended.forwarded_signal = forwarded_;
    ended.overflowed = processes_[ranks_[ended.ranks.front()].process].overflowed;
    if (ended.state == node::RankStage::not_started) {
        ended.others_initialised = any_initialised();
        if (!ended_without_init_) {
            ended_without_init_ = true;
            first_without_init_ = ended;
            look_again_ns_ = monotonic_ns() + look_again_ns;
        }
    }
    Outcome outcome = judge(ended);
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGPIPE && output_.broken()) {
        outcome.message = "nobody reads the standard output any more; the job is ended";
    }
    if (forwarded_ != 0 && outcome.verdict != Verdict::fine) {
        // They end because they were told to, each in its own time.
        fail_with(outcome.exit_code,
                  signal_name(forwarded_) + " was passed on to the ranks: " + outcome.message);
    } else if (outcome.verdict == Verdict::failed ||
               (outcome.verdict == Verdict::ends_job && line_.keeps_going)) {
        fail_with(outcome.exit_code, outcome.message);
    } else if (outcome.verdict == Verdict::ends_job) {
        end_job(outcome.exit_code, outcome.message);
    }
}

bool Job::any_initialised() const {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        if (!ranks_[rank].ended && segment_.slot(rank).state.load(std::memory_order_relaxed) ==
                                       node::RankStage::initialised) {
            return true;
        }
    }
    return false;
}

void Job::look_for_recorded_end() {
    const node::SegmentHeader& header = segment_.header();
    const node::JobEnd end = header.job_end.load(std::memory_order_acquire);
    if (ending_ != Ending::not_yet ||
        (end != node::JobEnd::aborted && end != node::JobEnd::fatal_error)) {
        return;
    }
    const std::uint32_t rank = std::min(header.end_rank, segment_.ranks() - 1);
    const Outcome outcome = recorded_end(header, programs_[ranks_[rank].program].name());
    drain(ranks_[rank].streams);
    // A rank that failed alone before explains less than this.
    failed_ = false;
    end_job(outcome.exit_code, outcome.message);
}

void Job::look_for_missing_ranks() {
    look_again_ns_ = monotonic_ns() + look_again_ns;
    if (ending_ != Ending::not_yet || !any_initialised()) {
        return;
    }
    first_without_init_.others_initialised = true;
    const Outcome outcome = judge(first_without_init_);
    end_job(outcome.exit_code, outcome.message);
}

void Job::forward(int number) {
    if (forwarded_ != 0 || ending_ != Ending::not_yet) {
        fail_with(128 + number, "ended by " + signal_name(number));
        kill_ranks();
        return;
    }
    forwarded_ = number;
    signal_ranks(number);
    signal_ranks(SIGCONT); // a stopped rank would not hear it
    kill_at_ns_ = monotonic_ns() + signal_grace_ns;
}

void Job::stop() {
    signal_ranks(SIGTSTP);
    kill(getpid(), SIGSTOP);
    // Here again after SIGCONT, which take_signals() passes on.
}

void Job::end_job(int exit_code, const std::string& message) {
    fail_with(exit_code, message);
    if (ending_ != Ending::not_yet) {
        return;
    }
    ending_ = Ending::asked;
    signal_ranks(SIGTERM);
    signal_ranks(SIGCONT);
    kill_at_ns_ = monotonic_ns() + failure_grace_ns;
}

void Job::kill_ranks() {
    ending_ = Ending::killed;
    kill_at_ns_ = 0;
    signal_ranks(SIGKILL);
}

void Job::signal_ranks(int number) {
    if (group_ <= 0) {
        return;
    }
    // The group, when it has a member for certain: it may be somebody else's by now otherwise.
    if (guardian_.running() || alive_ > 0) {
        kill(-group_, number);
    }
    for (const Process& process : processes_) {
        // timeout(1) and interactive shells leave the group.
        if (process.pid > 0 && !process.ended && getpgid(process.pid) != group_) {
            kill(process.pid, number);
        }
    }
}

// --- deadlines ---------------------------------------------------

int Job::milliseconds_to_deadline() const {
    std::uint64_t next = UINT64_MAX;
    for (const std::uint64_t deadline :
         {kill_at_ns_, time_limit_ns_, look_again_ns_, show_prompt_ns_, linger_until_ns_}) {
        if (deadline != 0) {
            next = std::min(next, deadline);
        }
    }
    if (next == UINT64_MAX) {
        return -1;
    }
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t left_ms = next <= now ? 0 : (next - now + ms - 1) / ms;
    return static_cast<int>(std::min<std::uint64_t>(left_ms, 1'000'000));
}

void Job::pass_deadlines() {
    if ((kill_at_ns_ | time_limit_ns_ | look_again_ns_ | show_prompt_ns_) == 0) {
        return;
    }
    const std::uint64_t now = monotonic_ns();
    const auto passed = [now](std::uint64_t& deadline) {
        if (deadline == 0 || now < deadline) {
            return false;
        }
        deadline = 0;
        return true;
    };
    if (passed(time_limit_ns_) && ending_ == Ending::not_yet) {
        print_states();
        char text[64];
        std::snprintf(text, sizeof text, "%g s", line_.timeout_s);
        end_job(exit_timeout,
                "the time limit of " + std::string(text) + " is over; the job is ended");
    }
    if (passed(kill_at_ns_)) {
        if (forwarded_ != 0) {
            fail_with(128 + forwarded_, "ranks did not end within " +
                                            std::to_string(signal_grace_ns / ms / 1000) + " s of " +
                                            signal_name(forwarded_) + "; they are killed");
        }
        kill_ranks();
    }
    if (passed(look_again_ns_)) {
        look_for_missing_ranks();
    }
    if (passed(show_prompt_ns_)) {
        streams_[0].output_lines.finish(0, output_);
    }
}

} // namespace warren::launch
