#include "launch/mpiexec/output.hpp"

#include <algorithm>
#include <cerrno>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/mpiexec/tuning.hpp"

namespace warren::launch {

Sink::Sink(int descriptor) : descriptor_(descriptor) {
    struct stat status;
    // Everything else (files, /dev/null) never blocks for long, and epoll refuses it.
    pollable_ = fstat(descriptor, &status) == 0 &&
                (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || isatty(descriptor) != 0);
}

void Sink::append(std::string_view text, std::uint32_t writer) {
    if (text.empty() || broken()) {
        return;
    }
    const bool line_open = last_ == '\r' ? writer == own_writer : last_ != '\n';
    if (line_open && writer != last_writer_) {
        pending_ += '\n';
    }
    pending_ += text;
    last_ = text.back();
    last_writer_ = writer;
    if (pending_.size() - written_ >= PIPE_BUF) {
        flush();
    }
}

void Sink::flush() {
    if (link_ != nullptr && !empty() && !broken()) {
        link_->send(kind_, 0, pending_);
        written_ = pending_.size();
    }
    while (!empty() && !broken()) {
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
            error_ = errno;
        }
    }
    pending_.clear();
    written_ = 0;
}

namespace {

// Bytes of the first line of `text` with its end; npos: it has none. A carriage return at the end
// of `text` is none yet.
std::size_t line_bytes(std::string_view text) {
    const std::size_t end = text.find_first_of("\r\n");
    if (end == std::string_view::npos || text[end] == '\n') {
        return end == std::string_view::npos ? end : end + 1;
    }
    if (end + 1 == text.size()) {
        return std::string_view::npos;
    }
    return text[end + 1] == '\n' ? end + 2 : end + 1;
}

// Bytes of the whole lines at the start of `text`.
std::size_t whole_lines_bytes(std::string_view text) {
    const std::size_t newline = text.rfind('\n');
    std::size_t bytes = newline == std::string_view::npos ? 0 : newline + 1;
    const std::size_t last_return = text.substr(0, text.size() - 1).rfind('\r');
    if (last_return != std::string_view::npos) {
        bytes = std::max(bytes, last_return + 1);
    }
    return bytes;
}

} // namespace

void LineAssembler::pass_on(std::string_view text, std::uint32_t rank, Sink& sink) {
    if (text.empty()) {
        return;
    }
    if (tag_.empty()) {
        sink.append(text, rank);
        return;
    }
    std::string tagged;
    if (after_return_ && text.front() == '\n') { // the rest of an end that came in two pieces
        tagged += '\n';
        text.remove_prefix(1);
    }
    while (!text.empty()) {
        const std::string_view line = text.substr(0, line_bytes(text));
        if (!in_line_) {
            tagged += tag_;
        }
        tagged += line;
        in_line_ = line.back() != '\n' && line.back() != '\r';
        text.remove_prefix(line.size());
    }
    after_return_ = tagged.back() == '\r';
    sink.append(tagged, rank);
}

bool LineAssembler::feed(std::string_view text, std::uint32_t rank, Sink& sink) {
    if (text.empty()) {
        return false;
    }
    bool begins = true;
    if (!partial_.empty()) {
        partial_ += text;
        const std::size_t whole = whole_lines_bytes(partial_);
        begins = whole > 0;
        pass_on(std::string_view(partial_).substr(0, whole), rank, sink);
        partial_.erase(0, whole);
    } else {
        const std::size_t whole = whole_lines_bytes(text);
        pass_on(text.substr(0, whole), rank, sink);
        partial_ = text.substr(whole);
    }
    if (partial_.size() >= line_limit_bytes) {
        finish(rank, sink);
    }
    return begins;
}

void LineAssembler::finish(std::uint32_t rank, Sink& sink) {
    pass_on(partial_, rank, sink);
    partial_.clear();
}

} // namespace warren::launch
