#include "launch/spawn.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/futex.hpp"

namespace warren::launch {

namespace {

// A system call that touches no errno: the result, or minus the error's number.
#if defined(__x86_64__)
constexpr bool several_at_once = true;
long raw_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0) {
    long result;
    register long r10 asm("r10") = fourth;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
                 : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
constexpr bool several_at_once = true;
long raw_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0) {
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = first;
    register long x1 asm("x1") = second;
    register long x2 asm("x2") = third;
    register long x3 asm("x3") = fourth;
    asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#else
// The parent sleeps until the child has executed its program, so errno is the child's meanwhile.
constexpr bool several_at_once = false;
long raw_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0) {
    const long result = syscall(number, first, second, third, fourth);
    return result < 0 ? -errno : result;
}
#endif

long address(const void* pointer) {
    return reinterpret_cast<long>(pointer);
}

// Puts `from` at number `to`, inherited by the program.
long place(int from, int to) {
    return from == to ? raw_call(SYS_fcntl, to, F_SETFD, 0) : raw_call(SYS_dup3, from, to, 0);
}

} // namespace

Spawner::Spawner(std::uint32_t at_once) : slots_(several_at_once ? at_once : 1) {}

// In the child, in mpiexec's memory: it changes nothing but its slot.
int Spawner::run_child(void* argument) {
    Slot& slot = *static_cast<Slot*>(argument);
    const SpawnRequest& request = slot.request;
    const auto failed = [&slot](long result, const char* step) {
        slot.failure = {
            .error_number = static_cast<int>(-result), .step = step, .rank = slot.request.rank};
        raw_call(SYS_exit_group, 127);
        return 127;
    };
    long result = raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    // The kernel ends the rank with mpiexec, however mpiexec ends; if that has happened already,
    // there was nobody left to arm it against.
    if (result == 0 && raw_call(SYS_getppid) != slot.parent) {
        result = -ESRCH;
    }
    if (result != 0) {
        return failed(result, "tying the rank to mpiexec");
    }
    result = raw_call(SYS_setpgid, 0, request.group);
    if (result != 0) {
        return failed(result, "joining the job's process group");
    }
    const int descriptors[][2] = {{request.standard_input, STDIN_FILENO},
                                  {request.standard_output, STDOUT_FILENO},
                                  {request.standard_error, STDERR_FILENO},
                                  {request.lifeline, request.lifeline_number}};
    for (const auto& descriptor : descriptors) {
        result = place(descriptor[0], descriptor[1]);
        if (result < 0) {
            return failed(result, "handing over descriptors");
        }
    }
    if (request.directory != nullptr) {
        result = raw_call(SYS_chdir, address(request.directory));
        if (result != 0) {
            return failed(result, "changing to the working directory");
        }
    }
    if (request.processors != nullptr) {
        result = raw_call(SYS_sched_setaffinity, 0, CpuSet::bytes(),
                          address(request.processors->data()));
        if (result != 0) {
            return failed(result, "binding to processors");
        }
    }
    if (request.descriptors != nullptr) {
        result = raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, address(request.descriptors), 0);
        if (result != 0) {
            return failed(result, "restoring the limit of descriptors");
        }
    }
    constexpr long kernel_signal_set_bytes = 8;
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, address(request.signals), 0, kernel_signal_set_bytes);
    result = raw_call(SYS_execve, address(request.path), address(request.arguments),
                      address(slot.environment.data()));
    if (result == -ENOEXEC) {
        result = raw_call(SYS_execve, address(request.shell_arguments[0]),
                          address(request.shell_arguments), address(slot.environment.data()));
    }
    return failed(result, "executing the program");
}

SpawnFailure Spawner::release(Slot& slot) {
    std::uint32_t shares = 0;
    while ((shares = slot.shares_memory.load(std::memory_order_acquire)) != 0) {
        futex_wait(slot.shares_memory, shares);
    }
    const SpawnFailure failure = slot.failure;
    if (failure.error_number != 0 && slot.pid > 0) {
        while (waitpid(slot.pid, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    slot.failure = {};
    slot.pid = -1;
    return failure;
}

SpawnFailure Spawner::start(const SpawnRequest& request, pid_t& pid) {
    pid = -1;
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    const SpawnFailure earlier = release(slot);
    if (earlier.error_number != 0) {
        return earlier;
    }
    slot.request = request;
    slot.parent = getpid();
    std::snprintf(slot.rank_setting.data(), slot.rank_setting.size(), "WARREN_RANK=%u",
                  request.rank);
    slot.environment.assign(1, slot.rank_setting.data());
    for (char* const* entry = request.environment + 1; entry[-1] != nullptr; ++entry) {
        slot.environment.push_back(*entry);
    }
    slot.shares_memory.store(1, std::memory_order_relaxed);
    const int flags =
        CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD | (several_at_once ? 0 : CLONE_VFORK);
    pid = clone(run_child, slot.stack.data() + stack_bytes, flags, &slot, nullptr, nullptr,
                &slot.shares_memory);
    if (pid < 0) {
        slot.shares_memory.store(0, std::memory_order_relaxed);
        return {.error_number = errno, .step = "starting a process", .rank = request.rank};
    }
    slot.pid = pid;
    return {};
}

SpawnFailure Spawner::finish() {
    SpawnFailure first;
    for (std::size_t turn = 0; turn < slots_.size(); ++turn) {
        const SpawnFailure failure = release(slots_[(next_ + turn) % slots_.size()]);
        if (first.error_number == 0) {
            first = failure;
        }
    }
    return first;
}

} // namespace warren::launch
