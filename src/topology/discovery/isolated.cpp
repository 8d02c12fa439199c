#include "topology/discovery/isolated.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/blocked_signals.hpp"
#include "topology/discovery/hwloc_library.hpp"
#include "topology/format.hpp"
#include "warren/topology.h"

namespace warren::discovery {

namespace {

constexpr unsigned limit_s = 60; // XML of the largest nodes takes a second
constexpr std::size_t max_text_bytes = std::size_t{1} << 16; // reasons and notes are sentences

// The start of a child's message. An error: its class and text follow. Class 0: the note and the
// image follow.
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

// A program's handlers are for its own mistakes; nothing is blocked.
void forget_signals() {
    for (int number = 1; number < NSIG; ++number) {
        std::signal(number, SIG_DFL); // (Refused for some.)
    }
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// The child's life. Signals are blocked.
[[noreturn]] void run_child(std::array<int, 2> ends, pid_t parent,
                            const std::function<Error(Made&)>& make) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const pid_t now = getppid(); // 0: one that a process of another PID namespace has
    if (now != parent && now != 0) {
        _exit(1); // the parent had ended before
    }
    forget_signals();
    const rlimit no_core{};
    setrlimit(RLIMIT_CORE, &no_core);
    // Where standard ones are closed in the program, the pipe may have their numbers.
    const int pipe = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (pipe < 0) {
        _exit(1);
    }
    close(ends[0]);
    close(ends[1]);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
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
    } catch (...) {
        _exit(1);
    }
    text.resize(std::min(text.size(), max_text_bytes));
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

// The sender may be damaged, so all lengths are checked.
bool receive_all(int pipe, Head& head, std::string& text, std::vector<std::byte>& image) {
    if (!receive(pipe, std::as_writable_bytes(std::span(&head, 1))) || head.error_class < 0 ||
        head.error_class > WARREN_TOPOLOGY_ERR_NONE || head.text_bytes > max_text_bytes ||
        head.image_bytes > topology::max_image_bytes) {
        return false;
    }
    text.resize(head.text_bytes);
    image.resize(head.image_bytes);
    return receive(pipe, std::as_writable_bytes(std::span(text))) && receive(pipe, image);
}

// The parent's end of the pipe, and the child, which is waited for in any case: an error's value
// may need memory that isn't there.
class Child {
  public:
    Child(int pipe, pid_t child) : pipe_(pipe), child_(child) {}
    ~Child() { end(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // How it has ended, as waitpid says; -1: the program has waited for it, or waits for none.
    int end() {
        if (pipe_ >= 0) {
            close(pipe_); // a child that still writes ends by that
            pipe_ = -1;
            int status = 0;
            pid_t ended = 0;
            do {
                ended = waitpid(child_, &status, 0);
            } while (ended < 0 && errno == EINTR);
            status_ = ended == child_ ? status : -1;
        }
        return status_;
    }

  private:
    int pipe_;
    pid_t child_;
    int status_ = -1;
};

// fork, while no thread of ours is in hwloc, whose locks the copy would find taken; signals wait in
// both until they have seen to them.
pid_t fork_outside_hwloc() {
    const std::lock_guard lock(HwlocLibrary::calls()); // in the child too: its thread is this one
    return fork();
}

} // namespace

Error make_isolated(const std::string& what, const std::function<Error(Made&)>& make, Made& made) {
    std::string problem;        // `make` finds it as well
    HwlocLibrary::get(problem); // before the copy, which could find the loader's lock taken
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return make(made);
    }
    const pid_t parent = getpid();
    pid_t pid = 0;
    {
        const BlockedSignals blocked;
        pid = fork_outside_hwloc();
        if (pid == 0) {
            run_child(ends, parent, make);
        }
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return make(made);
    }
    Child child(ends[0], pid);
    Head head;
    std::string text;
    std::vector<std::byte> image;
    const bool is_whole = receive_all(ends[0], head, text, image);
    const int status = child.end();
    if (!is_whole) {
        const bool is_killed = status != -1 && WIFSIGNALED(status);
        if (is_killed && WTERMSIG(status) == SIGALRM) {
            return fail(WARREN_TOPOLOGY_ERR_DISCOVERY, "%s: hwloc is not ready within a minute",
                        what.c_str());
        }
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "%s: hwloc does not survive it (%s)", what.c_str(),
                    is_killed ? strsignal(WTERMSIG(status)) : "it ends the process");
    }
    if (head.error_class != 0) {
        return fail(static_cast<int>(head.error_class), "%s", text.c_str());
    }
    made.image = std::move(image);
    made.note = std::move(text);
    return {};
}

} // namespace warren::discovery
