// Processes that an image makes, with its environment and its own fork handlers. An image may fork,
// and exec in the child; exec in its own process would end all other images, and is refused.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <fcntl.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "image/host.hpp"
#include "image/host_interface.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/lent_environment.hpp"
#include "image/libc/own_path.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

char** environment() {
    return LibcState::current().value<char**>(Variable::environment);
}

bool may_exec(const char* path) {
    Image* image = current_image();
    if (image == nullptr || image->running().first_thread == nullptr ||
        image->running().process != getpid()) {
        return true;
    }
    std::fprintf(
        LibcState::current().error(),
        "%s: exec of %s is refused: it would end all programs of this process; fork first\n",
        LibcState::current().program_name(), path);
    errno = ENOTSUP;
    return false;
}

void (*before_exec)() = nullptr;

CommandFunctions commands{.set_mask = ::pthread_sigmask,
                          .spawn = ::posix_spawn,
                          .fork = ::fork,
                          .note = nullptr,
                          .wait = ::waitpid,
                          .begin = nullptr,
                          .end = nullptr};

// Signals of a shell; null: those of its parent.
struct ShellSignals {
    const sigset_t* blocked = nullptr;
    const sigset_t* defaults = nullptr; // not ignored, though the parent may do so
};

void prepare_exec() {
    if (before_exec != nullptr) {
        before_exec();
    }
}

// By number: the process's descriptor that becomes 0, 1 or 2 of a child; -1: its own.
using ChildStreams = std::array<int, 3>;

// The image's, where those are other descriptors of the process.
ChildStreams own_streams() {
    ChildStreams streams = {-1, -1, -1};
    const Image* image = current_image();
    if (image == nullptr || image->options().descriptors.own_table) {
        return streams;
    }
    const Descriptors& own = image->options().descriptors;
    const int given[3] = {own.input, own.output, own.error};
    for (std::size_t number = 0; number < streams.size(); ++number) {
        streams[number] = given[number] > 2 ? given[number] : -1;
    }
    return streams;
}

[[noreturn]] void become_shell(const char* const* arguments, char** environment,
                               const ChildStreams& streams, const ShellSignals& signals) {
    for (int number = 1; signals.defaults != nullptr && number < NSIG; ++number) {
        if (sigismember(signals.defaults, number) == 1) {
            struct sigaction action {};
            action.sa_handler = SIG_DFL;
            ::sigaction(number, &action, nullptr);
        }
    }
    if (signals.blocked != nullptr) {
        ::pthread_sigmask(SIG_SETMASK, signals.blocked, nullptr);
    }
    for (int number = 0; number < 3; ++number) {
        const int from = streams[static_cast<std::size_t>(number)];
        if (from == number) {
            ::fcntl(number, F_SETFD, 0);
        } else if (from >= 0) {
            ::dup2(from, number);
        }
    }
    libc::execute("/bin/sh", const_cast<char* const*>(arguments), environment);
    ::_exit(127);
}

pid_t start_shell(const char* command, const ChildStreams& streams,
                  const ShellSignals& signals = {}) {
    const char* const arguments[] = {"sh", "-c", command, nullptr};
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    short flags = 0;
    if (signals.blocked != nullptr) {
        posix_spawnattr_setsigmask(&attributes, signals.blocked);
        flags |= POSIX_SPAWN_SETSIGMASK;
    }
    if (signals.defaults != nullptr) {
        posix_spawnattr_setsigdefault(&attributes, signals.defaults);
        flags |= POSIX_SPAWN_SETSIGDEF;
    }
    posix_spawnattr_setflags(&attributes, flags);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int number = 0; number < 3; ++number) {
        if (streams[static_cast<std::size_t>(number)] >= 0) {
            posix_spawn_file_actions_adddup2(&actions, streams[static_cast<std::size_t>(number)],
                                             number);
        }
    }
    pid_t child = -1;
    const int error = commands.spawn(&child, "/bin/sh", &actions, &attributes,
                                     const_cast<char* const*>(arguments), environment());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error == ECANCELED) {
        child = commands.fork();
        if (child == 0) {
            become_shell(arguments, environment(), streams, signals);
        }
        return child;
    }
    if (error != 0) {
        errno = error;
        return -1;
    }
    return child;
}

int wait_for(pid_t child) {
    int status = -1;
    while (commands.wait(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return status;
}

// As the C library: a handler of SIGCHLD that waits for any child comes later, and doesn't take the
// command's end from system().
class NoEndsOfChildren {
  public:
    NoEndsOfChildren() {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        commands.set_mask(SIG_BLOCK, &set, &before_);
    }
    ~NoEndsOfChildren() {
        const int error = errno;
        commands.set_mask(SIG_SETMASK, &before_, nullptr);
        errno = error;
    }
    NoEndsOfChildren(const NoEndsOfChildren&) = delete;
    NoEndsOfChildren& operator=(const NoEndsOfChildren&) = delete;

    const sigset_t* before() const { return &before_; }

  private:
    sigset_t before_{};
};

} // namespace

namespace {

// No signal comes while the locks are held: a handler that forks or closes files would wait for
// them. The child blocks what the program believes to have blocked.
pid_t fork_with_locks(Image& image) {
    LibcState& state = image.libc_state();
    sigset_t of_program;
    sigset_t before;
    sigset_t all;
    sigfillset(&all);
    commands.set_mask(SIG_BLOCK, nullptr, &of_program);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    state.lock_for_fork();
    image.lock_for_fork();
    libc::lock_time_zone();
    libc::lock_notices();
    const pid_t child = ::fork();
    const int error = errno;
    libc::unlock_notices();
    libc::unlock_time_zone();
    if (child == 0) {
        state.renew_locks();
        image.renew_locks();
        libc::renew_environment_lock();
    } else {
        image.unlock_after_fork();
        state.unlock_after_fork();
    }
    ::pthread_sigmask(SIG_SETMASK, child == 0 ? &of_program : &before, nullptr);
    errno = error;
    return child;
}

} // namespace

// The C library calls the process's handlers, which are none of a program's.
pid_t fork() {
    Image* image = current_image();
    if (image == nullptr) {
        return ::fork();
    }
    const std::vector<ForkHandler> handlers = image->fork_handlers().all();
    for (auto handler = handlers.rbegin(); handler != handlers.rend(); ++handler) {
        if (handler->prepare != nullptr) {
            handler->prepare();
        }
    }
    const pid_t child = fork_with_locks(*image);
    const int error = errno;
    for (const ForkHandler& handler : handlers) {
        const auto function = child == 0 ? handler.child : handler.parent;
        if (function != nullptr) {
            function();
        }
    }
    errno = error;
    return child;
}

int forkpty(int* master, char* name, const termios* attributes, const winsize* size) {
    int ends[2] = {-1, -1};
    if (openpty(&ends[0], &ends[1], name, attributes, size) != 0) {
        return -1;
    }
    const pid_t child = libc::fork();
    if (child == 0) {
        close(ends[0]);
        if (login_tty(ends[1]) != 0) {
            ::_exit(1);
        }
        if (Image* image = current_image()) {
            image->take_streams();
        }
        return 0;
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return -1;
    }
    if (commands.note != nullptr) {
        commands.note(child);
    }
    *master = ends[0];
    return child;
}

// The parent, which would end, is the process of all images.
int daemon(int, int) {
    libc::warnx("daemon is refused: the process belongs to other programs too");
    errno = ENOTSUP;
    return -1;
}

// The kernel's descriptor would tell of signals of the kernel thread that reads it, not of what a
// rank has pending, and so wait for ever.
int signalfd(int, const sigset_t*, int) {
    libc::warnx("signalfd is refused: signals of the process belong to other programs too; use "
                "sigwaitinfo");
    errno = ENOTSUP;
    return -1;
}

int register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* module) {
    if (Image* image = current_image()) {
        image->fork_handlers().add({prepare, parent, child, module});
    }
    return 0;
}

int pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)()) {
    return libc::register_atfork(prepare, parent, child, nullptr);
}

// As the C library's. Without a host it ignores no SIGINT and SIGQUIT meanwhile, which are the
// process's.
int system(const char* command) {
    if (command == nullptr) {
        return 1; // there is a shell
    }
    const NoEndsOfChildren blocked;
    sigset_t defaults;
    sigemptyset(&defaults);
    if (commands.begin != nullptr) {
        defaults = commands.begin();
    }
    const pid_t child =
        start_shell(command, own_streams(), {.blocked = blocked.before(), .defaults = &defaults});
    const int status = child < 0 ? -1 : wait_for(child);
    if (commands.end != nullptr) {
        const int error = errno;
        commands.end();
        errno = error;
    }
    return status;
}

std::FILE* popen(const char* command, const char* mode) {
    const bool reads = mode[0] == 'r';
    int ends[2];
    if ((!reads && mode[0] != 'w') || pipe2(ends, O_CLOEXEC) != 0) {
        errno = reads || mode[0] == 'w' ? errno : EINVAL;
        return nullptr;
    }
    const int own = reads ? ends[0] : ends[1];
    const int other = reads ? ends[1] : ends[0];
    ChildStreams streams = own_streams();
    streams[reads ? STDOUT_FILENO : STDIN_FILENO] = other;
    const pid_t child = start_shell(command, streams);
    close(other);
    std::FILE* stream = child < 0 ? nullptr : libc::fdopen(own, reads ? "r" : "w");
    if (stream == nullptr) {
        close(own);
        return nullptr;
    }
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.streams_lock);
    state.commands[stream] = child;
    return stream;
}

int pclose(std::FILE* stream) {
    pid_t child = -1;
    {
        LibcState& state = LibcState::current();
        const std::lock_guard guard(state.streams_lock);
        const auto found = state.commands.find(stream);
        if (found == state.commands.end()) {
            errno = ECHILD;
            return -1;
        }
        child = found->second;
        state.commands.erase(found);
    }
    libc::fclose(stream);
    return wait_for(child);
}

void watch_exec(void (*prepare)()) {
    before_exec = prepare;
}

void run_commands_by(const CommandFunctions& functions) {
    commands = functions;
}

int execute(const char* path, char* const* arguments, char* const* environment) {
    prepare_exec();
    return ::execve(OwnPath(path).get(), arguments, environment);
}

int execv(const char* path, char* const* arguments) {
    return libc::execve(path, arguments, environment());
}

int execve(const char* path, char* const* arguments, char* const* its_environment) {
    return may_exec(path) ? libc::execute(path, arguments, its_environment) : -1;
}

int execveat(int folder, const char* path, char* const* arguments, char* const* its_environment,
             int flags) {
    if (!may_exec(path)) {
        return -1;
    }
    prepare_exec();
    return ::execveat(folder, path, arguments, its_environment, flags);
}

int fexecve(int file, char* const* arguments, char* const* its_environment) {
    if (!may_exec("an open file")) {
        return -1;
    }
    prepare_exec();
    return ::fexecve(file, arguments, its_environment);
}

int execvp(const char* name, char* const* arguments) {
    return libc::execvpe(name, arguments, environment());
}

int execvpe(const char* name, char* const* arguments, char* const* its_environment) {
    if (may_exec(name)) {
        libc::exec_by_path(name, arguments, its_environment);
    }
    return -1;
}

namespace {

// The list of arguments as an array on the stack: the child of a vfork may call these.
struct ArgumentList {
    static constexpr std::size_t limit = 1024;

    // False, and errno, when there are more.
    bool take(const char* first, va_list rest) {
        items[0] = const_cast<char*>(first);
        for (std::size_t i = 1; i < limit; ++i) {
            items[i] = va_arg(rest, char*);
            if (items[i] == nullptr) {
                return true;
            }
        }
        errno = E2BIG;
        return false;
    }

    char* items[limit];
};

} // namespace

int execl(const char* path, const char* first, ...) {
    ArgumentList list;
    va_list rest;
    va_start(rest, first);
    const bool taken = list.take(first, rest);
    va_end(rest);
    return taken ? libc::execv(path, list.items) : -1;
}

int execlp(const char* name, const char* first, ...) {
    ArgumentList list;
    va_list rest;
    va_start(rest, first);
    const bool taken = list.take(first, rest);
    va_end(rest);
    return taken ? libc::execvp(name, list.items) : -1;
}

int execle(const char* path, const char* first, ...) {
    ArgumentList list;
    va_list rest;
    va_start(rest, first);
    char** its_environment = nullptr;
    const bool taken = list.take(first, rest);
    if (taken) { // behind the null
        its_environment = va_arg(rest, char**);
    }
    va_end(rest);
    return taken ? libc::execve(path, list.items, its_environment) : -1;
}

} // namespace warren::image::libc
