#include "launch/spawn.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace warren::launch {

namespace {

// For the few calls before exec; execve itself runs in the kernel.
constexpr std::size_t child_stack_bytes = 64 * 1024;

struct Start {
    const SpawnRequest* request;
    pid_t parent;
    SpawnFailure failure;
};

// Puts `from` at number `to`, inherited by the program.
bool place(int from, int to) {
    if (from == to) {
        return fcntl(to, F_SETFD, 0) == 0;
    }
    return dup2(from, to) == to;
}

// In the child. It runs in the parent's memory: it changes nothing but `start` and its own stack.
int run_child(void* argument) {
    Start& start = *static_cast<Start*>(argument);
    const SpawnRequest& request = *start.request;
    const auto failed = [&](const char* step) {
        start.failure = {.error_number = errno, .step = step};
        _exit(127);
        return 127;
    };
    // The kernel ends the rank with mpiexec, however mpiexec ends; if that has happened already,
    // there was nobody left to arm it against.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != start.parent) {
        return failed("tying the rank to mpiexec");
    }
    if (setpgid(0, request.group) != 0) {
        return failed("joining the job's process group");
    }
    if (!place(request.standard_input, STDIN_FILENO) ||
        !place(request.standard_output, STDOUT_FILENO) ||
        !place(request.standard_error, STDERR_FILENO) ||
        (request.lifeline >= 0 && !place(request.lifeline, request.lifeline_number))) {
        return failed("handing over descriptors");
    }
    if (request.directory != nullptr && chdir(request.directory) != 0) {
        return failed("changing to the working directory");
    }
    if (request.processors != nullptr &&
        syscall(SYS_sched_setaffinity, 0, CpuSet::bytes(), request.processors->data()) != 0) {
        return failed("binding to processors");
    }
    if (request.descriptors != nullptr && setrlimit(RLIMIT_NOFILE, request.descriptors) != 0) {
        return failed("restoring the limit of descriptors");
    }
    sigprocmask(SIG_SETMASK, request.signals, nullptr);
    execve(request.path, request.arguments, request.environment);
    if (errno == ENOEXEC) {
        execve(request.shell_arguments[0], request.shell_arguments, request.environment);
    }
    return failed("executing the program");
}

} // namespace

SpawnFailure spawn(const SpawnRequest& request, pid_t& pid) {
    // One child at a time uses it: clone returns when the child has executed the program or ended.
    alignas(16) static std::byte stack[child_stack_bytes];
    Start start = {.request = &request, .parent = getpid(), .failure = {}};
    pid = clone(run_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
    if (pid < 0) {
        return {.error_number = errno, .step = "starting a process"};
    }
    if (start.failure.error_number != 0) {
        while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        pid = -1;
    }
    return start.failure;
}

} // namespace warren::launch
