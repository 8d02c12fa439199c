#include "launch/mpiexec/rank_output.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/tuning.hpp"

namespace warren::launch {

namespace {

// C libraries buffer the output to a pipe in blocks of so many bytes, or a multiple.
constexpr ssize_t buffer_bytes = 4096;

} // namespace

RankOutput::RankOutput() : buffer_(read_bytes) {}

RankOutput::~RankOutput() {
    for (const Streams& streams : streams_) {
        for (const int descriptor : {streams.output.descriptor, streams.errors.descriptor}) {
            if (descriptor >= 0) {
                close(descriptor);
            }
        }
    }
}

bool RankOutput::open(Events& job) {
    job_ = &job;
    if (!events_.open()) {
        return false;
    }
    job.watch(events_.descriptor(), Source::all_output);
    return true;
}

bool RankOutput::add(std::uint32_t number, const std::string& tag, int& output, int& errors) {
    int output_ends[2];
    int error_ends[2];
    if (pipe2(output_ends, O_CLOEXEC) != 0) {
        return false;
    }
    Streams& streams = streams_[number];
    streams.output.descriptor = output_ends[0];
    if (pipe2(error_ends, O_CLOEXEC) != 0) {
        const int reason = errno;
        close(output_ends[1]);
        errno = reason;
        return false;
    }
    streams.errors.descriptor = error_ends[0];
    output = output_ends[1];
    errors = error_ends[1];
    streams.output.lines.set_tag(tag);
    streams.errors.lines.set_tag(tag);
    open_streams_ += 2;
    events_.watch(output_ends[0], Source::output, number);
    events_.watch(error_ends[0], Source::errors, number);
    return true;
}

RankOutput::Stream& RankOutput::stream(Event which) {
    Streams& streams = streams_[which.number];
    return which.source == Source::output ? streams.output : streams.errors;
}

void RankOutput::say(std::string_view text) {
    errors_.append(text, Sink::own_writer);
    errors_.flush();
}

void RankOutput::read_some() {
    for (const Event& event : events_.wait(0)) {
        read_stream(event);
    }
}

// Whether what these lines hold is passed on by time.
bool RankOutput::passes_on(Event which, const Stream& from) const {
    const bool may_ask = asks_ && which.number == 0 && which.source == Source::output;
    return from.lines.unfinished() && !from.buffer_full &&
           (!from.lines.tagged() || from.lines.ends_in_return() || may_ask);
}

void RankOutput::read_stream(Event which) {
    Stream& from = stream(which);
    Sink& to = sink(which.source);
    const ssize_t got = read(from.descriptor, buffer_.data(), buffer_.size());
    if (got < 0 && errno == EINTR) {
        return;
    }
    // When nobody reads mpiexec's output, the ranks get to know as in a plain pipeline.
    if (got <= 0 || to.broken()) {
        close_stream(which);
        return;
    }
    const bool begins =
        from.lines.feed({buffer_.data(), static_cast<std::size_t>(got)}, which.number, to);
    from.buffer_full = got % buffer_bytes == 0;
    if (streams_.size() == 1 && !from.lines.tagged()) {
        from.lines.finish(which.number, to); // no other's text can come between
    } else if (passes_on(which, from)) {
        if (begins || !from.held) {
            from.until_ns = monotonic_ns() + line_hold_ns;
        }
        if (!std::exchange(from.held, true)) {
            held_.push({from.until_ns, which});
        }
    }
}

void RankOutput::pass_on_held(std::uint64_t now_ns) {
    while (!held_.empty() && held_.top().until_ns <= now_ns) {
        const Event which = held_.top().stream;
        held_.pop();
        Stream& from = stream(which);
        from.held = passes_on(which, from) && from.until_ns > now_ns;
        if (from.held) {
            held_.push({from.until_ns, which});
        } else if (passes_on(which, from)) {
            from.lines.finish(which.number, sink(which.source));
        }
    }
}

void RankOutput::close_stream(Event which) {
    Stream& closed = stream(which);
    if (closed.descriptor < 0) {
        return;
    }
    closed.lines.finish(which.number, sink(which.source));
    close(std::exchange(closed.descriptor, -1));
    --open_streams_;
}

void RankOutput::drain(std::uint32_t number) {
    while (true) {
        const Streams& streams = streams_[number];
        pollfd waits[2] = {{.fd = streams.output.descriptor, .events = POLLIN, .revents = 0},
                           {.fd = streams.errors.descriptor, .events = POLLIN, .revents = 0}};
        if (poll(waits, 2, 0) <= 0) {
            return;
        }
        for (int index = 0; index < 2; ++index) {
            const Event which = {index == 0 ? Source::output : Source::errors, number};
            if ((waits[index].revents & POLLIN) != 0) {
                read_stream(which);
            } else if (waits[index].revents != 0) {
                close_stream(which);
            }
        }
    }
}

void RankOutput::update_sinks() {
    for (int index = 0; index < 2; ++index) {
        Sink& one = index == 0 ? output_ : errors_;
        one.flush();
        const bool wanted = !one.empty() && one.pollable();
        if (wanted != sink_watched_[index]) {
            sink_watched_[index] = wanted;
            wanted ? job_->watch(one.descriptor(), Source::sink) : job_->forget(one.descriptor());
        }
    }
    const bool reads = !output_.full() && !errors_.full();
    if (reads != std::exchange(reads_, reads)) {
        reads ? job_->watch(events_.descriptor(), Source::all_output)
              : job_->forget(events_.descriptor());
    }
}

// One wait for readers; false when they have taken all, or a signal ends the wait.
bool RankOutput::flush(int signals, int& signal) {
    output_.flush();
    errors_.flush();
    if (output_.empty() && errors_.empty()) {
        return false;
    }
    pollfd waits[3] = {{.fd = output_.empty() ? -1 : 1, .events = POLLOUT, .revents = 0},
                       {.fd = errors_.empty() ? -1 : 2, .events = POLLOUT, .revents = 0},
                       {.fd = signals, .events = POLLIN, .revents = 0}};
    poll(waits, 3, -1);
    signalfd_siginfo taken;
    if (signals >= 0 && (waits[2].revents & POLLIN) != 0 &&
        read(signals, &taken, sizeof taken) == static_cast<ssize_t>(sizeof taken) &&
        (taken.ssi_signo == SIGINT || taken.ssi_signo == SIGTERM || taken.ssi_signo == SIGHUP)) {
        signal = static_cast<int>(taken.ssi_signo);
        return false;
    }
    return true;
}

int RankOutput::finish(int signals) {
    for (std::uint32_t number = 0; number < streams_.size(); ++number) {
        drain(number);
        streams_[number].output.lines.finish(number, output_);
        streams_[number].errors.lines.finish(number, errors_);
    }
    int signal = 0;
    while (flush(signals, signal)) {
    }
    return signal;
}

} // namespace warren::launch
