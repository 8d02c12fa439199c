// The part of a job's life between the start of its ranks and their end.
#include "launch/mpiexec/job.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/state_report.hpp"
#include "launch/mpiexec/vain_waits.hpp"

namespace warren::launch {

namespace {

constexpr std::uint64_t ms = 1'000'000;

// After a failure ranks get SIGTERM, so that handlers can put things in order, and this long.
constexpr std::uint64_t failure_grace_ns = 1000 * ms;

// After a signal of the user's that was passed on: time to write a checkpoint.
constexpr std::uint64_t signal_grace_ns = 10'000 * ms;

// Children in the background may still write when all ranks have succeeded ("prog | tee log &").
constexpr std::uint64_t linger_ns = 500 * ms;

// How often ranks are looked at that may wait for one that has finalised and failed.
constexpr std::uint64_t look_for_waits_ns = 250 * ms;

// How often initialised ranks are looked for while a rank that ended without MPI_Init is missing.
constexpr std::uint64_t look_again_ns = 250 * ms;

} // namespace

void Job::watch() {
    while (alive_ > 0 || (linger_until_ns_ > monotonic_ns() && output_.open_streams() > 0)) {
        update_input();
        bool signals = false;
        for (const Event& event : events_.wait(milliseconds_to_deadline())) {
            if (event.source == Source::signals) {
                signals = true; // after the output that was there before
            } else {
                take(event);
            }
        }
        if (signals) {
            take_signals();
        }
        pass_deadlines();
        output_.update_sinks();
    }
}

void Job::take(const Event& event) {
    switch (event.source) {
    case Source::all_output:
        output_.read_some();
        break;
    case Source::lifeline:
        // A byte: a rank aborts. The end of it: the process ends, which SIGCHLD tells.
        events_.forget(processes_[event.number].lifeline);
        look_for_recorded_end();
        break;
    case Source::reports:
        read_reports(processes_[event.number]);
        break;
    case Source::manager:
        serve_manager(event.number);
        break;
    case Source::topology:
        read_topology_socket();
        break;
    case Source::input:
        input_.pass_on();
        break;
    default: // a sink takes more: the loop's end
        break;
    }
}

void Job::update_input() {
    const bool wanted = input_.readable_now();
    if (wanted != input_watched_) {
        input_watched_ = wanted;
        wanted ? events_.watch(STDIN_FILENO, Source::input) : events_.forget(STDIN_FILENO);
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
        output_.drain(ranks_[rank].streams); // last words come before the message about the end
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
    if (ended.state == node::RankStage::not_started && wait_status == exit_not_found << 8) {
        outcome.message += programs_[ranks_[ended.ranks.front()].program].library_hint();
    }
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGPIPE && output_.reader_left()) {
        outcome.message = "nobody reads the standard output any more; the job is ended";
    }
    if (forwarded_ != 0 && outcome.verdict != Verdict::fine) {
        // They end because they were told to, each in its own time.
        fail_with(outcome.exit_code,
                  signal_name(forwarded_) + " was passed on to the ranks: " + outcome.message);
    } else if (outcome.verdict == Verdict::failed ||
               (outcome.verdict == Verdict::ends_job && line_.keeps_going)) {
        fail_with(outcome.exit_code, outcome.message);
        if (ended.state == node::RankStage::finalised && !line_.keeps_going) {
            failed_after_finalize_.insert(failed_after_finalize_.end(), ended.ranks.begin(),
                                          ended.ranks.end());
            look_for_waits_ns_ = monotonic_ns() + look_for_waits_ns;
        }
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
    output_.drain(ranks_[rank].streams);
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

// Others may wait for a rank that has finalised and failed.
void Job::look_for_vain_waits() {
    const std::uint64_t now = monotonic_ns();
    look_for_waits_ns_ = now + look_for_waits_ns;
    if (ending_ != Ending::not_yet || forwarded_ != 0) {
        return;
    }
    std::vector<bool> ended;
    for (const Rank& rank : ranks_) {
        ended.push_back(rank.ended);
    }
    const std::vector<std::uint32_t> waiting =
        vain_waits(segment_, ended, failed_after_finalize_, now);
    if (!waiting.empty()) {
        say((waiting.size() == 1 ? "rank " : "ranks ") + describe_ranks(waiting) +
            (waiting.size() == 1 ? " waits" : " wait") + " for what rank " +
            describe_ranks(failed_after_finalize_) +
            ", which has finalised and failed, will not do; the job is ended");
        end_job(exit_code_, "");
    }
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
         {kill_at_ns_, time_limit_ns_, look_again_ns_, look_for_waits_ns_, linger_until_ns_,
          output_.deadline_ns()}) {
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
    if ((kill_at_ns_ | time_limit_ns_ | look_again_ns_ | look_for_waits_ns_ |
         output_.deadline_ns()) == 0) {
        return;
    }
    const std::uint64_t now = monotonic_ns();
    output_.pass_on_held(now);
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
    if (passed(look_for_waits_ns_)) {
        look_for_vain_waits();
    }
}

} // namespace warren::launch
