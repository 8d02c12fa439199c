#include "launch/mpiexec/output.hpp"

#include <algorithm>
#include <cerrno>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace warren::launch {

Sink::Sink(int descriptor) : descriptor_(descriptor) {
    struct stat status;
    // Everything else (files, /dev/null) never blocks for long, and epoll refuses it.
    pollable_ = fstat(descriptor, &status) == 0 &&
                (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || isatty(descriptor) != 0);
}

void Sink::append(std::string_view text, std::uint32_t writer) {
    if (text.empty() || broken_) {
        return;
    }
    if (line_open_ && writer != last_writer_) {
        pending_ += '\n';
    }
    pending_ += text;
    line_open_ = text.back() != '\n';
    last_writer_ = writer;
    if (pending_.size() - written_ >= PIPE_BUF) {
        flush();
    }
}

void Sink::flush() {
    while (!empty() && !broken_) {
        std::size_t bytes = pending_.size() - written_;
        if (pollable_) {
            // The descriptor's blocking mode is shared with whoever started mpiexec, so it is left
            // alone: a pipe that polls writable takes PIPE_BUF bytes without blocking.
            pollfd writable = {.fd = descriptor_, .events = POLLOUT, .revents = 0};
            if (poll(&writable, 1, 0) <= 0) {
                return;
            }
            bytes = std::min<std::size_t>(bytes, PIPE_BUF);
        }
        const ssize_t done = write(descriptor_, pending_.data() + written_, bytes);
        if (done >= 0) {
            written_ += static_cast<std::size_t>(done);
        } else if (errno == EAGAIN && pollable_) {
            return;
        } else if (errno != EINTR) {
            broken_ = true;
        }
    }
    pending_.clear();
    written_ = 0;
}

void LineAssembler::pass_on(std::string_view text, std::uint32_t rank, Sink& sink) {
    if (tag_.empty()) {
        sink.append(text, rank);
        return;
    }
    std::string tagged;
    while (!text.empty()) {
        const std::size_t newline = text.find('\n');
        const std::string_view line =
            text.substr(0, newline == std::string_view::npos ? text.size() : newline + 1);
        if (!in_line_) {
            tagged += tag_;
        }
        tagged += line;
        in_line_ = line.back() != '\n';
        text.remove_prefix(line.size());
    }
    sink.append(tagged, rank);
}

void LineAssembler::feed(std::string_view text, std::uint32_t rank, Sink& sink) {
    const std::size_t last = text.rfind('\n');
    if (last != std::string_view::npos) {
        if (!partial_.empty()) {
            partial_ += text.substr(0, last + 1);
            pass_on(partial_, rank, sink);
            partial_.clear();
        } else {
            pass_on(text.substr(0, last + 1), rank, sink);
        }
        text.remove_prefix(last + 1);
    }
    partial_ += text;
    if (partial_.size() >= line_limit_bytes) {
        finish(rank, sink);
    }
}

void LineAssembler::finish(std::uint32_t rank, Sink& sink) {
    pass_on(partial_, rank, sink);
    partial_.clear();
}

} // namespace warren::launch
