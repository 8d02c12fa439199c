#include "discovery/isolated.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <new>
#include <span>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "warren/topology.h"

namespace warren::discovery {

namespace {

constexpr unsigned limit_s = 60; // XML of the largest nodes takes a second

// What comes first: of an error its class and text, else 0, the note and the image.
struct Head {
    std::ptrdiff_t error_class = 0;
    std::size_t text_bytes = 0;
    std::size_t image_bytes = 0;
};

void send(int pipe, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = write(pipe, bytes.data(), bytes.size());
        if (sent < 0 && errno != EINTR) {
            _exit(1);
        }
        bytes = bytes.subspan(static_cast<std::size_t>(sent < 0 ? 0 : sent));
    }
}

// The child's life.
[[noreturn]] void run_child(int pipe, const std::function<Error(Made&)>& make) {
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM, SIGPIPE}) {
        std::signal(number, SIG_DFL); // a program's handlers are for its own mistakes
    }
    sigset_t alarm_set;
    sigemptyset(&alarm_set);
    sigaddset(&alarm_set, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm_set, nullptr);
    const rlimit no_core{};
    setrlimit(RLIMIT_CORE, &no_core);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) {
        dup2(nowhere, STDERR_FILENO);
    }
    alarm(limit_s);
    Head head;
    Made made;
    std::string text;
    try {
        if (Error error = make(made)) {
            const std::unique_ptr<ErrorRecord> record(error.take());
            head.error_class = record->error_class;
            text = record->text;
            made.image.clear();
        } else {
            text = made.note;
        }
    } catch (const std::bad_alloc&) {
        head.error_class = WARREN_TOPOLOGY_ERR_MEMORY;
        text = "no memory for a topology";
        made.image.clear();
    }
    head.text_bytes = text.size();
    head.image_bytes = made.image.size();
    send(pipe, std::as_bytes(std::span(&head, 1)));
    send(pipe, std::as_bytes(std::span(text)));
    send(pipe, made.image);
    _exit(0);
}

// Whether all of it has come.
bool receive(int pipe, std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = read(pipe, bytes.data(), bytes.size());
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(got < 0 ? 0 : got));
    }
    return true;
}

bool receive_all(int pipe, Head& head, std::string& text, std::vector<std::byte>& image) {
    if (!receive(pipe, std::as_writable_bytes(std::span(&head, 1)))) {
        return false;
    }
    text.resize(head.text_bytes);
    image.resize(head.image_bytes);
    return receive(pipe, std::as_writable_bytes(std::span(text))) && receive(pipe, image);
}

} // namespace

Error make_isolated(const std::string& what, const std::function<Error(Made&)>& make, Made& made) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return make(made);
    }
    const pid_t child = fork();
    if (child == 0) {
        run_child(ends[1], make);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return make(made);
    }
    Head head;
    std::string text;
    const bool is_whole = receive_all(ends[0], head, text, made.image);
    close(ends[0]);
    int status = 0;
    pid_t ended = 0;
    do {
        ended = waitpid(child, &status, 0); // or the program has waited for it, or for none
    } while (ended < 0 && errno == EINTR);
    if (!is_whole) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "%s: hwloc does not survive it (%s)", what.c_str(),
                    ended == child && WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                                          : "it ends the process");
    }
    if (head.error_class != 0) {
        return fail(static_cast<int>(head.error_class), "%s", text.c_str());
    }
    made.note = text;
    return {};
}

} // namespace warren::discovery
