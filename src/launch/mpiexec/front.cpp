#include "launch/mpiexec/front.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/outcome.hpp"
#include "launch/mpiexec/report.hpp"
#include "launch/mpiexec/tuning.hpp"
#include "mpi/job/book.hpp"

namespace warren::launch {

namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

std::string describe_end(int wait_status) {
    if (WIFSIGNALED(wait_status)) {
        return "was killed by " + signal_name(WTERMSIG(wait_status));
    }
    const int code = WEXITSTATUS(wait_status);
    return "ended with code " + std::to_string(code) +
           (code == exit_not_found ? " (is Warren at the same place there?)" : "");
}

bool is_foreground() {
    return isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

} // namespace

Front::Front(const CommandLine& line, std::vector<std::string> words, std::vector<Host> hosts)
    : line_(line), words_(std::move(words)), hosts_(std::move(hosts)), started_ns_(monotonic_ns()) {
    first_ranks_.push_back(0);
    for (const Host& host : hosts_) {
        first_ranks_.push_back(first_ranks_.back() + host.ranks);
    }
    nodes_.resize(hosts_.size());
}

Front::~Front() {
    for (Node& node : nodes_) {
        node.link.reset(); // the agent sees its end
        if (node.errors >= 0) {
            close(node.errors);
        }
        if (node.launcher > 0 && !node.launcher_ended) {
            kill(-node.launcher, SIGKILL);
            waitpid(node.launcher, nullptr, 0);
        }
    }
    if (signals_ >= 0) {
        close(signals_);
    }
}

int Front::run() {
    sigset_t handled;
    sigemptyset(&handled);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2,
                             SIGQUIT, SIGPIPE, SIGTTIN, SIGTTOU}) {
        sigaddset(&handled, number);
    }
    sigset_t former;
    sigprocmask(SIG_BLOCK, &handled, &former);
    for (const int number : {SIGPIPE, SIGTTIN, SIGTTOU}) {
        sigdelset(&handled, number);
    }
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    while (secret_ == 0 && getrandom(&secret_, sizeof secret_, 0) < 0 && errno == EINTR) {
    }
    if (line_.timeout_s > 0) {
        time_limit_ns_ = started_ns_ + static_cast<std::uint64_t>(line_.timeout_s * 1e9);
    }
    if (signals_ < 0 || secret_ == 0) {
        fail(exit_failure, std::string("descriptors of mpiexec itself: ") + std::strerror(errno));
        return exit_code_;
    }
    if (!start_agents()) {
        end_job();
    }
    while (running()) {
        wait();
        pass_deadlines();
    }
    // All output is written, however slow its reader is; a signal ends the wait.
    kill_at_ns_ = time_limit_ns_ = 0;
    forwarded_ = 0;
    const auto has_unwritten = [](Sink& sink) {
        sink.flush();
        return !sink.empty() && !sink.broken();
    };
    while (has_unwritten(output_) || has_unwritten(errors_)) {
        wait();
        if (forwarded_ != 0 || (ending_ && kill_at_ns_ != 0)) {
            return exit_code_ != 0 ? exit_code_ : 128 + forwarded_;
        }
    }
    if (output_.broken() && output_.error() != EPIPE && output_.error() != EBADF) {
        fail(exit_failure, describe_write_error(output_.error()));
        errors_.flush();
    }
    return exit_code_;
}

bool Front::running() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const Node& node) { return node.link != nullptr || node.lost_ns != 0; });
}

// --- the loop ----------------------------------------------------

// One wait, and what came.
void Front::wait() {
    output_.flush();
    errors_.flush();
    if (output_.broken() && !std::exchange(told_output_broken_, true)) {
        send_to_all(FrameKind::output_broken, static_cast<std::uint32_t>(output_.error()));
    }
    const bool takes = !output_.full() && !errors_.full();
    std::vector<pollfd> waits;
    const auto add = [&](int descriptor, short events) {
        waits.push_back({.fd = descriptor, .events = events, .revents = 0});
    };
    for (const Node& node : nodes_) {
        const bool linked = node.link != nullptr;
        add(linked && takes ? node.link->input() : -1, POLLIN);
        add(linked && node.link->backlog() > 0 ? node.link->output() : -1, POLLOUT);
        add(takes ? node.errors : -1, POLLIN);
    }
    const std::size_t own = waits.size();
    add(signals_, POLLIN);
    const bool wants_input = input_open_ && nodes_[input_node_].link != nullptr && planned_ &&
                             input_under_way_ < input_window_bytes;
    add(wants_input && is_foreground() ? STDIN_FILENO : -1, POLLIN);
    add(!output_.empty() && output_.pollable() ? output_.descriptor() : -1, POLLOUT);
    add(!errors_.empty() && errors_.pollable() ? errors_.descriptor() : -1, POLLOUT);
    int timeout_ms = milliseconds_to_deadline();
    if (wants_input && !is_foreground()) {
        timeout_ms =
            timeout_ms < 0 ? look_at_terminal_ms : std::min(timeout_ms, look_at_terminal_ms);
    }
    if (poll(waits.data(), waits.size(), timeout_ms) <= 0) {
        return;
    }
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
        Node& node = nodes_[number];
        if (waits[3 * number + 2].revents != 0) {
            read_errors(node, number);
        }
        if (node.link != nullptr && waits[3 * number + 1].revents != 0) {
            node.link->flush(); // its end is seen by reading
        }
        if (node.link != nullptr && waits[3 * number].revents != 0) {
            read_link(node, number);
        }
    }
    if (waits[own + 1].revents != 0 && nodes_[input_node_].link != nullptr) {
        read_input();
    }
    if (waits[own].revents != 0) {
        take_signals();
    }
}

void Front::read_link(Node& node, std::uint32_t number) {
    const bool goes_on = node.link->receive();
    Frame frame;
    while (node.link != nullptr && node.link->next(frame)) {
        take(node, number, frame);
    }
    if (node.link == nullptr || (goes_on && !node.link->is_foreign())) {
        return;
    }
    errors_.append(node.link->take_before(), number);
    if (!node.ended) {
        node.lost_ns = monotonic_ns();
    }
    close_link(node);
}

void Front::close_link(Node& node) {
    node.link.reset();
}

void Front::take(Node& node, std::uint32_t number, const Frame& frame) {
    const auto code = static_cast<int>(frame.number);
    switch (frame.kind) {
    case FrameKind::machine:
        node.machine = frame.payload;
        look_for_plans();
        break;
    case FrameKind::output:
        output_.append(frame.payload, number);
        break;
    case FrameKind::errors:
        errors_.append(frame.payload, number);
        break;
    case FrameKind::input_taken:
        input_under_way_ -= std::min<std::uint64_t>(input_under_way_, frame.number);
        break;
    case FrameKind::failed:
        fail(code, "node " + node.name + ": " + frame.payload, number);
        break;
    case FrameKind::explains_more:
        explains_more_ = failed_ && failed_node_ == number;
        break;
    case FrameKind::ends_job:
        end_job();
        break;
    case FrameKind::without_init:
        node.without_init = frame.payload;
        node.without_init_code = code;
        look_for_fence();
        break;
    case FrameKind::fence:
        node.in_fence = true;
        node.cards = node::are_records(frame.payload) ? frame.payload : "";
        look_for_fence();
        break;
    case FrameKind::ended:
        node.ended = true;
        if (code != 0 && !failed_) {
            failed_ = true;
            exit_code_ = code;
        }
        look_for_fence();
        break;
    default: // mpiexec's own
        break;
    }
}

// Ends a fence that all nodes have come to, and a job in which some will not.
void Front::look_for_fence() {
    const auto waits = [](const Node& node) { return node.in_fence; };
    if (ending_ || std::none_of(nodes_.begin(), nodes_.end(), waits)) {
        return;
    }
    for (const Node& node : nodes_) {
        if (!node.without_init.empty()) {
            fail(node.without_init_code, "node " + node.name + ": " + node.without_init);
            end_job();
            return;
        }
        if (node.ended && !node.in_fence) {
            fail(exit_failure, "node " + node.name +
                                   ": its ranks ended without calling MPI_Init, "
                                   "and those of other nodes would wait for them");
            end_job();
            return;
        }
    }
    if (!std::all_of(nodes_.begin(), nodes_.end(), waits)) {
        return;
    }
    Packer packer;
    std::vector<std::string> cards;
    for (Node& node : nodes_) {
        node.in_fence = false;
        cards.push_back(node.cards);
    }
    packer.add(cards);
    send_to_all(FrameKind::fence_over, 0, packer.bytes());
}

// The launcher's own words, and what an agent prints by mistake.
void Front::read_errors(Node& node, std::uint32_t number) {
    std::array<char, 4096> text;
    const ssize_t got = read(node.errors, text.data(), text.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        close(std::exchange(node.errors, -1));
        return;
    }
    errors_.append({text.data(), static_cast<std::size_t>(got)}, number);
}

// --- signals and input -------------------------------------------

void Front::take_signals() {
    signalfd_siginfo signal;
    while (read(signals_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
        const int number = static_cast<int>(signal.ssi_signo);
        switch (number) {
        case SIGCHLD:
            reap();
            break;
        case SIGINT:
        case SIGTERM:
        case SIGHUP:
            forward(number);
            break;
        case SIGTSTP:
            send_to_all(FrameKind::signal, SIGTSTP);
            kill(getpid(), SIGSTOP);
            break;
        case SIGUSR1:
        case SIGQUIT:
            send_to_all(FrameKind::states);
            break;
        default: // SIGCONT, SIGUSR2
            send_to_all(FrameKind::signal, static_cast<std::uint32_t>(number));
            break;
        }
    }
}

void Front::forward(int number) {
    if (forwarded_ != 0 || ending_) {
        fail(128 + number, "ended by " + signal_name(number));
        ending_ = true;
        kill_at_ns_ = monotonic_ns();
        return;
    }
    forwarded_ = number;
    send_to_all(FrameKind::signal, static_cast<std::uint32_t>(number));
    kill_at_ns_ = monotonic_ns() + agents_signal_grace_ns;
}

void Front::reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (Node& node : nodes_) {
            if (node.launcher == pid) {
                node.launcher_ended = true;
                node.wait_status = status;
            }
        }
    }
}

void Front::read_input() {
    std::array<char, 65536> text;
    const ssize_t got = read(STDIN_FILENO, text.data(), text.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EIO)) {
        return;
    }
    const std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
    input_open_ = bytes > 0;
    input_under_way_ += bytes;
    nodes_[input_node_].link->send(FrameKind::input, 0, {text.data(), bytes});
}

// --- ends --------------------------------------------------------

void Front::say(const std::string& text) {
    errors_.append("mpiexec: " + text + "\n", Sink::own_writer);
    errors_.flush();
}

void Front::fail(int exit_code, const std::string& message, std::int64_t node) {
    if (failed_ && !(explains_more_ && node == failed_node_)) {
        return;
    }
    failed_ = true;
    explains_more_ = false;
    failed_node_ = node;
    exit_code_ = exit_code;
    if (!message.empty()) {
        say(message);
    }
}

void Front::send_to_all(FrameKind kind, std::uint32_t number, const std::string& payload) {
    for (const Node& node : nodes_) {
        if (node.link != nullptr) {
            node.link->send(kind, number, payload);
        }
    }
}

void Front::end_job() {
    if (!std::exchange(ending_, true)) {
        send_to_all(FrameKind::end_job);
        kill_at_ns_ = monotonic_ns() + agents_grace_ns;
    }
}

// Nodes whose agents have gone without a word.
void Front::look_for_lost() {
    const std::uint64_t now = monotonic_ns();
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
        Node& node = nodes_[number];
        if (node.lost_ns == 0 ||
            (!node.launcher_ended && now < node.lost_ns + launcher_patience_ns)) {
            continue;
        }
        node.lost_ns = 0;
        if (node.errors >= 0) {
            read_errors(node, number);
        }
        const std::uint32_t ranks = hosts_[number].ranks;
        std::string which = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
        if (!line_.dealt) {
            const std::uint32_t first = first_ranks_[number];
            which = ranks == 1 ? "rank " + std::to_string(first)
                               : "ranks " + std::to_string(first) + "-" +
                                     std::to_string(first + ranks - 1);
        }
        fail(exit_failure,
             "node " + node.name + " (" + which + "): its agent is lost; the " +
                 (node.launcher_ended ? "process that started it " + describe_end(node.wait_status)
                                      : "connection to it has ended"));
        end_job();
    }
}

int Front::milliseconds_to_deadline() const {
    std::uint64_t next = UINT64_MAX;
    for (const std::uint64_t deadline : {kill_at_ns_, time_limit_ns_}) {
        next = deadline != 0 ? std::min(next, deadline) : next;
    }
    for (const Node& node : nodes_) {
        next = node.lost_ns != 0 ? std::min(next, node.lost_ns + launcher_patience_ns) : next;
    }
    if (next == UINT64_MAX) {
        return -1;
    }
    const std::uint64_t now = monotonic_ns();
    return next <= now
               ? 0
               : static_cast<int>(std::min<std::uint64_t>((next - now) / ns_per_ms + 1, 1'000'000));
}

void Front::pass_deadlines() {
    look_for_lost();
    const std::uint64_t now = monotonic_ns();
    if (time_limit_ns_ != 0 && now >= time_limit_ns_) {
        time_limit_ns_ = 0;
        if (!ending_) {
            send_to_all(FrameKind::states);
            char text[64];
            std::snprintf(text, sizeof text, "%g s", line_.timeout_s);
            fail(exit_timeout,
                 "the time limit of " + std::string(text) + " is over; the job is ended");
            end_job();
        }
    }
    if (kill_at_ns_ == 0 || now < kill_at_ns_) {
        return;
    }
    kill_at_ns_ = 0;
    if (forwarded_ != 0) {
        fail(128 + forwarded_,
             "ranks did not end in time after " + signal_name(forwarded_) + "; they are killed");
    }
    ending_ = true;
    for (Node& node : nodes_) {
        close_link(node); // agents kill their ranks
        node.lost_ns = 0;
    }
}

} // namespace warren::launch
