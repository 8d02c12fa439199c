#include "launch/mpiexec/spawn.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "base/raw_call.hpp"

namespace warren::launch {

namespace {

// Without, the parent sleeps until the child has executed its program: errno is the child's
// meanwhile.
constexpr bool several_at_once = raw_calls_keep_errno;

} // namespace

Spawner::Spawner(std::uint32_t at_once) : slots_(several_at_once ? at_once : 1) {}

// Children run on the stacks in the slots until their programs do.
Spawner::~Spawner() {
    finish();
}

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
                                  {request.lifeline, request.lifeline_number},
                                  {request.forked_start, request.forked_start}};
    for (const auto& descriptor : descriptors) {
        if (descriptor[0] < 0) {
            continue;
        }
        result = raw_place(descriptor[0], descriptor[1]);
        if (result < 0) {
            return failed(result, "handing over descriptors");
        }
    }
    if (request.directory != nullptr) {
        result = raw_call(SYS_chdir, raw_address(request.directory));
        if (result != 0) {
            return failed(result, "changing to the working directory");
        }
    }
    if (request.processors != nullptr) {
        result = raw_call(SYS_sched_setaffinity, 0, CpuSet::bytes(),
                          raw_address(request.processors->data()));
        if (result != 0) {
            return failed(result, "binding to processors");
        }
    }
    if (request.descriptors != nullptr) {
        result = raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, raw_address(request.descriptors), 0);
        if (result != 0) {
            return failed(result, "restoring the limit of descriptors");
        }
    }
    constexpr long kernel_signal_set_bytes = 8;
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, raw_address(request.signals), 0,
             kernel_signal_set_bytes);
    result = raw_call(SYS_execve, raw_address(request.path), raw_address(request.arguments),
                      raw_address(slot.environment.data()));
    if (result == -ENOEXEC) {
        result =
            raw_call(SYS_execve, raw_address(request.shell_arguments[0]),
                     raw_address(request.shell_arguments), raw_address(slot.environment.data()));
    }
    return failed(result, "executing the program");
}

SpawnFailure Spawner::release(Slot& slot) {
    std::uint32_t shares = 0;
    while ((shares = slot.shares_memory.load(std::memory_order_acquire)) != 0) {
        futex_wait(slot.shares_memory, shares);
    }
    return std::exchange(slot.failure, {});
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
    // A first process writes the numbers of the processes forked from it there.
    const char* format = request.forked_start >= 0 ? "%s=%010u" : "%s=%u";
    const RankNumbers numbers = {.in_world = request.world_rank, .on_node = request.rank};
    slot.environment.clear();
    for (std::size_t index = 0; index < rank_variable_count; ++index) {
        std::array<char, 48>& setting = slot.rank_settings[index];
        const RankVariable& variable = rank_variables[index];
        std::snprintf(setting.data(), setting.size(), format, variable.name, numbers.of(variable));
        slot.environment.push_back(setting.data());
    }
    for (char* const* entry = request.environment + rank_variable_count; entry[-1] != nullptr;
         ++entry) {
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
