#include "launch/mpiexec/job_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "launch/mpiexec/tuning.hpp"
#include "launch/mpiexec/vain_waits.hpp"
#include "mpi/job/world_identity.hpp"
#include "mpi/rank/doorbell.hpp"

namespace warren::launch {

namespace {

constexpr std::uint64_t ns_of_ms = 1'000'000;

// Exit codes are 8 bits; a report may hold anything.
constexpr int wait_status_of(const HostReport& report) {
    return (report.value & 0xff) << 8;
}

} // namespace

JobWatch::~JobWatch() {
    if (signals_ >= 0) {
        close(signals_);
    }
}

bool JobWatch::open() {
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
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0 || !job_.events.open() || !job_.output.open(job_.events)) {
        job_.report.fail(exit_failure,
                         std::string("descriptors of mpiexec itself: ") + std::strerror(errno));
        return false;
    }
    job_.events.watch(signals_, Source::signals);
    if (job_.agent != nullptr) {
        job_.events.watch(job_.agent->link.input(), Source::link);
    }
    if (job_.line.timeout_s > 0) {
        time_limit_ns_ = job_.started_ns + static_cast<std::uint64_t>(job_.line.timeout_s * 1e9);
    }
    return true;
}

void JobWatch::run() {
    if (job_.spawned_by.descriptor() >= 0) {
        job_.events.watch(job_.spawned_by.descriptor(), Source::spawner);
    }
    if (!job_.has_host() && job_.world_size() > 1 && job_.line.library.empty()) {
        other_libraries_.begin(monotonic_ns());
    }
    while (job_.alive > 0 || spawned_.running() > 0 || reason_until_ns_ != 0 ||
           (linger_until_ns_ > monotonic_ns() && job_.output.open_streams() > 0)) {
        update_input();
        update_link();
        bool signals = false;
        for (const Event& event : job_.events.wait(milliseconds_to_deadline())) {
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
        job_.output.update_sinks();
    }
}

void JobWatch::take(const Event& event) {
    switch (event.source) {
    case Source::all_output:
        job_.output.read_some();
        break;
    case Source::lifeline:
        read_lifeline(job_.processes[event.number]);
        break;
    case Source::reports:
        read_reports(job_.processes[event.number]);
        break;
    case Source::manager:
        serve_manager(event.number);
        break;
    case Source::topology:
        topology_.read_socket();
        break;
    case Source::input:
        job_.input.pass_on();
        break;
    case Source::link:
        read_link();
        break;
    case Source::spawn_listener:
        spawned_.take_connections();
        break;
    case Source::spawn_request:
        spawned_.read_request(event.number, former_signals_);
        break;
    case Source::spawner:
        if (job_.spawned_by.rank_has_ended()) {
            end_job(exit_failure, "the process that has spawned these ranks has ended");
        }
        break;
    default: // a sink, the link or rank 0 takes more: the loop's end
        break;
    }
}

void JobWatch::update_input() {
    const bool wanted = job_.input.readable_now();
    if (wanted != input_watched_) {
        input_watched_ = wanted;
        wanted ? job_.events.watch(STDIN_FILENO, Source::input) : job_.events.forget(STDIN_FILENO);
    }
}

// --- signals and ends --------------------------------------------

void JobWatch::take_signals() {
    signalfd_siginfo signal;
    while (read(signals_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
        take_signal(static_cast<int>(signal.ssi_signo));
    }
}

// mpiexec's own, or one that it has sent its agent.
void JobWatch::take_signal(int number) {
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
        spawned_.signal_all(number);
        break;
    }
}

void JobWatch::take_ended() {
    siginfo_t end{};
    while (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid > 0) {
        const pid_t pid = end.si_pid;
        int status = 0;
        waitpid(pid, &status, 0);
        const auto found = job_.process_of.find(pid);
        if (found != job_.process_of.end()) {
            if (end.si_uid != getuid() && job_.users == JobUsers::own) {
                job_.users = JobUsers::others_too;
                job_.guardian.tell_of_other_users();
            }
            process_ended(job_.processes[found->second], status);
        } else if (spawned_.ended(pid, status)) {
            look_for_recorded_end(); // which may have waited for this
        } else if (pid == job_.guardian.pid()) {
            job_.guardian.forget();
            if (ending_ != Ending::killed) {
                end_job(exit_failure,
                        "the guardian process (pid " + std::to_string(pid) + ") " +
                            (WIFSIGNALED(status) ? "was killed by " + signal_name(WTERMSIG(status))
                                                 : "ended") +
                            "; without it the job could leave processes behind");
            }
        }
    }
}

void JobWatch::process_ended(JobProcess& process, int wait_status) {
    read_reports(process);
    std::vector<std::uint32_t> ended; // with the process
    for (std::uint32_t rank = process.first_rank; rank < process.first_rank + process.ranks;
         ++rank) {
        job_.output.drain(
            job_.ranks[rank].streams); // last words come before the message about the end
        if (!std::exchange(job_.ranks[rank].ended, true)) {
            ended.push_back(rank);
        }
    }
    if (WIFSIGNALED(wait_status) && process.crashed_rank >= 0) {
        ended = {static_cast<std::uint32_t>(process.crashed_rank)};
    }
    process.ended = true;
    if (--job_.alive == 0) {
        linger_until_ns_ = job_.report.failed() ? 0 : monotonic_ns() + linger_ns;
    }
    look_for_recorded_end();
    if (ending_ == Ending::not_yet && !ended.empty()) {
        judge_end(ended, process.pid, wait_status);
        if (job_.line.keeps_going) {
            tell_of_end(ended);
        }
    }
}

// Ranks that wait for one that has ended look again.
void JobWatch::tell_of_end(const std::vector<std::uint32_t>& ended) {
    // Once they have heard of it they take its locks back, and read and write there.
    job_.finish_writes(ended);
    for (const std::uint32_t rank : ended) {
        job_.segment.slot(rank).ended.store(1, std::memory_order_relaxed);
    }
    node::SegmentHeader& header = job_.segment.header();
    header.ended_ranks.fetch_add(static_cast<std::uint32_t>(ended.size()));
    // Sleeping ranks don't fence for this process (mpi/rank/doorbell.hpp), so it fences itself.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (std::uint32_t rank = 0; rank < job_.segment.ranks(); ++rank) {
        Doorbell::ring(header, job_.segment.slot(rank).doorbell);
    }
}

// Decides what the end of these ranks, all of one process, means for the job.
void JobWatch::judge_end(const std::vector<std::uint32_t>& ranks, pid_t pid, int wait_status) {
    if (reason_until_ns_ != 0 && !WIFSIGNALED(wait_status)) {
        return; // it has lost another world
    }
    EndedRanks ended = gravest(ranks, job_.segment, WIFSIGNALED(wait_status));
    ended.pid = pid;
    ended.wait_status = wait_status;
    const JobRank& first = job_.ranks[ended.ranks.front()];
    const std::vector<std::uint32_t> here =
        std::exchange(ended.ranks, job_.world_ranks(ended.ranks));
    ended.program = plan_.programs[first.program].name();
    ended.forwarded_signal = forwarded_;
    ended.overflowed = job_.processes[first.process].overflowed;
    if (ended.state == node::RankStage::not_started) {
        ended.others_initialised = any_initialised();
        if (!ended_without_init_) {
            ended_without_init_ = true;
            first_without_init_ = ended;
            look_again_ns_ = monotonic_ns() + look_again_ns;
            tell_without_init();
        }
    }
    Outcome outcome = judge(ended);
    const int write_error = job_.output.write_error();
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGPIPE && write_error != 0) {
        outcome.message = (write_error == EPIPE ? "nobody reads the standard output any more"
                                                : describe_write_error(write_error)) +
                          "; the job is ended";
    }
    if (forwarded_ != 0 && outcome.verdict != Verdict::fine) {
        // They end because they were told to, each in its own time.
        job_.report.fail(outcome.exit_code, signal_name(forwarded_) +
                                                " was passed on to the ranks: " + outcome.message);
    } else if (outcome.verdict == Verdict::failed ||
               (outcome.verdict == Verdict::ends_job && job_.line.keeps_going)) {
        job_.report.fail(outcome.exit_code, outcome.message);
        if (ended.state == node::RankStage::finalised && !job_.line.keeps_going) {
            failed_after_finalize_.insert(failed_after_finalize_.end(), here.begin(), here.end());
            look_for_waits_ns_ = monotonic_ns() + look_for_waits_ns;
        }
    } else if (outcome.verdict == Verdict::ends_job) {
        end_job(outcome.exit_code, outcome.message);
    }
}

bool JobWatch::any_initialised() const {
    for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
        if (!job_.ranks[rank].ended &&
            job_.segment.slot(rank).state.load(std::memory_order_relaxed) ==
                node::RankStage::initialised) {
            return true;
        }
    }
    return false;
}

void JobWatch::look_for_recorded_end() {
    const node::SegmentHeader& header = job_.segment.header();
    const node::JobEnd end = header.job_end.load(std::memory_order_acquire);
    if (ending_ != Ending::not_yet ||
        (end != node::JobEnd::aborted && end != node::JobEnd::fatal_error) || awaits_reason()) {
        return;
    }
    const std::uint32_t rank = std::min(header.end_rank, job_.segment.ranks() - 1);
    Outcome outcome = recorded_end(header, job_.world_rank(rank),
                                   plan_.programs[job_.ranks[rank].program].name());
    if (spawned_.exit_code() != 0 && node::is_lost_world(header.end_text)) {
        outcome = {.exit_code = spawned_.exit_code(), .message = ""}; // which has been told
    }
    job_.output.drain(job_.ranks[rank].streams);
    // A rank that failed alone before explains less than this.
    job_.report.take_back();
    end_job(outcome.exit_code, outcome.message);
}

// Whether ranks have lost another world, and the mpiexec that knows why may not have come to say
// so: one that is a child of this one, and ends then, or the one that has spawned this job, and
// kills it.
bool JobWatch::awaits_reason() {
    if (!node::is_lost_world(job_.segment.header().end_text) || spawned_.exit_code() != 0 ||
        (spawned_.running() == 0 && !job_.spawned_by.is_spawned())) {
        return false;
    }
    const std::uint64_t now = monotonic_ns();
    reason_until_ns_ = reason_until_ns_ == 0 ? now + reason_patience_ns : reason_until_ns_;
    return now < reason_until_ns_;
}

void JobWatch::look_for_missing_ranks() {
    look_again_ns_ = monotonic_ns() + look_again_ns;
    if (ending_ != Ending::not_yet || !any_initialised()) {
        return;
    }
    first_without_init_.others_initialised = true;
    const Outcome outcome = judge(first_without_init_);
    end_job(outcome.exit_code, outcome.message);
}

// Others may wait for a rank that has finalised and failed.
void JobWatch::look_for_vain_waits() {
    const std::uint64_t now = monotonic_ns();
    look_for_waits_ns_ = now + look_for_waits_ns;
    if (ending_ != Ending::not_yet || forwarded_ != 0) {
        return;
    }
    std::vector<bool> ended;
    for (const JobRank& rank : job_.ranks) {
        ended.push_back(rank.ended);
    }
    const std::vector<std::uint32_t> waiting =
        vain_waits(job_.segment, ended, failed_after_finalize_, now);
    if (!waiting.empty()) {
        job_.report.say((waiting.size() == 1 ? "rank " : "ranks ") +
                        describe_ranks(job_.world_ranks(waiting)) +
                        (waiting.size() == 1 ? " waits" : " wait") + " for what rank " +
                        describe_ranks(job_.world_ranks(failed_after_finalize_)) +
                        ", which has finalised and failed, will not do; the job is ended");
        end_job(job_.report.exit_code(), "");
    }
}

void JobWatch::forward(int number) {
    if (forwarded_ != 0 || ending_ != Ending::not_yet) {
        job_.report.fail(128 + number, "ended by " + signal_name(number));
        kill_ranks();
        return;
    }
    forwarded_ = number;
    signal_ranks(number);
    signal_ranks(SIGCONT); // a stopped rank would not hear it
    spawned_.signal_all(number);
    spawned_.signal_all(SIGCONT);
    kill_at_ns_ = monotonic_ns() + signal_grace_ns;
}

void JobWatch::stop() {
    signal_ranks(SIGTSTP);
    spawned_.signal_all(SIGTSTP);
    if (job_.agent != nullptr) {
        return; // it has to hear of SIGCONT
    }
    kill(getpid(), SIGSTOP);
    // Here again after SIGCONT, which take_signals() passes on.
}

void JobWatch::end_job(int exit_code, const std::string& message) {
    job_.report.fail(exit_code, message);
    if (ending_ != Ending::not_yet) {
        return;
    }
    ending_ = Ending::asked;
    reason_until_ns_ = 0;
    if (job_.agent != nullptr) {
        job_.agent->link.send(FrameKind::ends_job);
    }
    spawned_.kill_all();
    signal_ranks(SIGTERM);
    signal_ranks(SIGCONT);
    kill_at_ns_ = monotonic_ns() + failure_grace_ns;
}

void JobWatch::kill_ranks() {
    ending_ = Ending::killed;
    kill_at_ns_ = 0;
    reason_until_ns_ = 0;
    spawned_.kill_all();
    signal_ranks(SIGKILL);
}

void JobWatch::signal_ranks(int number) {
    if (job_.group <= 0) {
        return;
    }
    // The group, when it has a member for certain: it may be somebody else's by now otherwise.
    if (job_.guardian.running() || job_.alive > 0) {
        kill(-job_.group, number);
    }
    for (const JobProcess& process : job_.processes) {
        // timeout(1) and interactive shells leave the group.
        if (process.pid > 0 && !process.ended && getpgid(process.pid) != job_.group) {
            kill(process.pid, number);
        }
    }
}

// --- deadlines ---------------------------------------------------

int JobWatch::milliseconds_to_deadline() const {
    std::uint64_t next = UINT64_MAX;
    for (const std::uint64_t deadline :
         {kill_at_ns_, time_limit_ns_, look_again_ns_, look_for_waits_ns_, linger_until_ns_,
          reason_until_ns_, other_libraries_.look_ns(), job_.output.deadline_ns(),
          spawned_.listens_again_ns()}) {
        if (deadline != 0) {
            next = std::min(next, deadline);
        }
    }
    if (next == UINT64_MAX) {
        return -1;
    }
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t left_ms = next <= now ? 0 : (next - now + ns_of_ms - 1) / ns_of_ms;
    return static_cast<int>(std::min<std::uint64_t>(left_ms, 1'000'000));
}

void JobWatch::pass_deadlines() {
    spawned_.listen_again();
    if ((kill_at_ns_ | time_limit_ns_ | look_again_ns_ | look_for_waits_ns_ | reason_until_ns_ |
         other_libraries_.look_ns() | job_.output.deadline_ns()) == 0) {
        return;
    }
    const std::uint64_t now = monotonic_ns();
    job_.output.pass_on_held(now);
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
        std::snprintf(text, sizeof text, "%g s", job_.line.timeout_s);
        end_job(exit_timeout,
                "the time limit of " + std::string(text) + " is over; the job is ended");
    }
    if (passed(kill_at_ns_)) {
        if (forwarded_ != 0) {
            job_.report.fail(128 + forwarded_,
                             "ranks did not end within " +
                                 std::to_string(signal_grace_ns / ns_of_ms / 1000) + " s of " +
                                 signal_name(forwarded_) + "; they are killed");
        }
        kill_ranks();
    }
    if (reason_until_ns_ != 0 && now >= reason_until_ns_) {
        look_for_recorded_end();
    }
    if (passed(look_again_ns_)) {
        look_for_missing_ranks();
    }
    if (passed(look_for_waits_ns_)) {
        look_for_vain_waits();
    }
    if (other_libraries_.look_ns() != 0 && now >= other_libraries_.look_ns()) {
        other_libraries_.look(job_, plan_, now);
    }
}

void JobWatch::read_reports(JobProcess& process) {
    std::array<HostReport, 256> reports;
    while (process.reports >= 0) {
        const ssize_t got = read(process.reports, reports.data(), sizeof reports);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got == 0) {
            close(std::exchange(process.reports, -1));
        }
        if (got <= 0) {
            return;
        }
        for (std::size_t index = 0; index < static_cast<std::size_t>(got) / sizeof(HostReport);
             ++index) {
            const HostReport& report = reports[index];
            if (report.rank >= process.ranks) {
                continue;
            }
            const std::uint32_t rank = process.first_rank + report.rank;
            switch (report.kind) {
            case HostReport::Kind::started:
                job_.ranks[rank].thread = report.value;
                break;
            case HostReport::Kind::ended:
                rank_ended(rank, process.pid, wait_status_of(report));
                break;
            case HostReport::Kind::overflowed:
                process.overflowed = true;
                [[fallthrough]];
            case HostReport::Kind::crashed:
                process.crashed_rank = rank; // the process ends next
                break;
            case HostReport::Kind::stuck:
                all_ranks_wait();
                break;
            }
        }
    }
}

// A host of fibres knows: nothing will happen any more.
void JobWatch::all_ranks_wait() {
    // Messages of other nodes or worlds may come.
    if (ending_ == Ending::not_yet && job_.agent == nullptr &&
        job_.segment.at(node::world_identity)->connected.load(std::memory_order_relaxed) == 0) {
        print_states();
        end_job(exit_deadlock, "deadlock: all ranks that have not ended wait, for what none of "
                               "them will do; the job is ended");
    }
}

// Another MPI library asks for what its own launcher would tell it.
void JobWatch::serve_manager(std::uint32_t rank) {
    int& socket = job_.ranks[rank].manager;
    std::array<char, 4096> text;
    const ssize_t got = read(socket, text.data(), text.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        close(std::exchange(socket, -1));
        return;
    }
    for (const ProcessManager::Reply& reply : job_.manager.take(
             rank, job_.ranks[rank].program, {text.data(), static_cast<std::size_t>(got)})) {
        // Each waits for a line or two: they fit the socket. Who has gone needs none.
        send(job_.ranks[reply.rank].manager, reply.line.data(), reply.line.size(), MSG_NOSIGNAL);
    }
    const ProcessManager::Abort& abort = job_.manager.abort();
    if (abort.asked && ending_ == Ending::not_yet) {
        job_.output.drain(job_.ranks[rank].streams);
        const int code = abort.code & 0xff;
        end_job(code != 0 ? code : 1, "rank " + std::to_string(job_.world_rank(rank)) + " (" +
                                          plan_.programs[job_.ranks[rank].program].name() +
                                          ") aborted with code " + std::to_string(abort.code) +
                                          (abort.message.empty() ? "" : ": " + abort.message));
    }
}

// One of several ranks of a process that goes on.
void JobWatch::rank_ended(std::uint32_t rank, pid_t pid, int wait_status) {
    job_.output.drain(job_.ranks[rank].streams);
    job_.ranks[rank].ended = true;
    look_for_recorded_end();
    if (ending_ == Ending::not_yet) {
        judge_end({rank}, pid, wait_status);
    }
}

} // namespace warren::launch
