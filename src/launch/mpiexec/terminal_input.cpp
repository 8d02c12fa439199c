#include "launch/mpiexec/terminal_input.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace warren::launch {

int TerminalInput::open() {
    int ends[2];
    if (isatty(STDIN_FILENO) == 0 || pipe2(ends, O_CLOEXEC) != 0) {
        return STDIN_FILENO;
    }
    reader_ = ends[0];
    writer_ = ends[1];
    // A rank that does not read must not stop mpiexec; what does not fit the pipe is then lost, but
    // a terminal holds less than a pipe.
    fcntl(writer_, F_SETFL, O_NONBLOCK);
    return reader_;
}

int TerminalInput::open_relay(int none) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return none;
    }
    reader_ = ends[0];
    writer_ = ends[1];
    relays_ = true;
    fcntl(writer_, F_SETFL, O_NONBLOCK);
    return reader_;
}

void TerminalInput::give(std::string_view text) {
    waiting_ += text;
    ends_ = ends_ || text.empty();
}

std::size_t TerminalInput::flush() {
    std::size_t done = 0;
    while (done < waiting_.size()) {
        const ssize_t wrote =
            writer_ < 0 ? -1 : write(writer_, waiting_.data() + done, waiting_.size() - done);
        if (wrote >= 0) {
            done += static_cast<std::size_t>(wrote);
        } else if (writer_ >= 0 && errno == EAGAIN) {
            break;
        } else if (writer_ < 0 || errno != EINTR) { // nobody reads it
            done = waiting_.size();
        }
    }
    waiting_.erase(0, done);
    if (ends_ && waiting_.empty()) {
        close_pipe();
    }
    return done;
}

void TerminalInput::close_reader() {
    if (reader_ >= 0) {
        close(std::exchange(reader_, -1));
    }
}

bool TerminalInput::readable_now() const {
    return active() && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void TerminalInput::pass_on() {
    char buffer[4096];
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0 || (write(writer_, buffer, static_cast<std::size_t>(got)) < 0 && errno == EPIPE)) {
        close_pipe();
    }
}

void TerminalInput::close_pipe() {
    close_reader();
    if (writer_ >= 0) {
        close(std::exchange(writer_, -1));
    }
}

} // namespace warren::launch
