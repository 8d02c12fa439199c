#include "launch/host/children.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <mutex>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/futex.hpp"
#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/standard_streams.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

// Whether the calling rank's children leave nothing behind when they end. The kernel sees to that
// when all ranks want it so (signals.cpp).
bool has_passing_children() {
    const std::uint32_t rank = rank_of_thread();
    if (rank == no_rank) {
        return false;
    }
    const struct sigaction& action = actions().of(rank, SIGCHLD);
    return is_ignored(action) || (action.sa_flags & SA_NOCLDWAIT) != 0;
}

// Asks wait(&status) again when it tells of an end that nobody wants to hear of.
template <typename Wait>
pid_t pass_over(int* status, Wait wait) {
    while (true) {
        int its_status = 0;
        const pid_t said = wait(&its_status);
        if (said > 0 && (WIFEXITED(its_status) || WIFSIGNALED(its_status)) &&
            has_passing_children()) {
            continue;
        }
        if (said > 0 && status != nullptr) {
            *status = its_status;
        }
        return said;
    }
}

pid_t wait_for(pid_t pid, int* status, int options, rusage* usage) {
    return pass_over(status, [&](int* its_status) {
        return wait4(pid, its_status, pid == -1 ? options | __WNOTHREAD : options, usage);
    });
}

pid_t wait_for_any(int* status) {
    return wait_for(-1, status, 0, nullptr);
}

pid_t wait_for_one(pid_t pid, int* status, int options) {
    return wait_for(pid, status, options, nullptr);
}

pid_t wait_with_usage(int* status, int options, rusage* usage) {
    return wait_for(-1, status, options, usage);
}

int wait_by_kind(idtype_t kind, id_t id, siginfo_t* information, int options) {
    return waitid(kind, id, information, kind == P_ALL ? options | __WNOTHREAD : options);
}

// --- Of fibres

struct Children {
    std::mutex lock;
    std::vector<pid_t> pids;

    void add(pid_t pid) {
        const std::lock_guard guard(lock);
        pids.push_back(pid);
    }
    void remove(pid_t pid) {
        const std::lock_guard guard(lock);
        std::erase(pids, pid);
    }
    std::vector<pid_t> all() {
        const std::lock_guard guard(lock);
        return pids;
    }
};

std::unique_ptr<Children[]> children_of_ranks;
std::uint32_t rank_count = 0;

// Null: the caller belongs to no rank, or is a child of fork.
Children* children_of_caller() {
    const std::uint32_t rank = rank_of_thread();
    return rank < rank_count && warren_fibre_is_one() ? &children_of_ranks[rank] : nullptr;
}

pid_t note(pid_t pid) {
    if (Children* own = pid > 0 ? children_of_caller() : nullptr) {
        own->add(pid);
    }
    return pid;
}

pid_t make_child() {
    const pid_t child = warren_image_fork();
    if (child == 0) {
        warren_image_take_streams();
    }
    return note(child);
}

// As fork, but that it calls no handlers.
pid_t make_child_for_exec() {
    return note(fork());
}

// File actions for a child whose parent gives none: the child inherits the rank's own 0, 1 and 2.
// (In a program's own actions these numbers are the host's.)
class OwnStreams {
  public:
    OwnStreams() {
        posix_spawn_file_actions_init(&actions_);
        for (int number = 0; number < 3; ++number) {
            const int place = place_of_standard(number);
            if (place < 0) {
                posix_spawn_file_actions_addclose(&actions_, number);
            } else if (place != number) {
                posix_spawn_file_actions_adddup2(&actions_, place, number);
            }
        }
    }
    ~OwnStreams() { posix_spawn_file_actions_destroy(&actions_); }
    OwnStreams(const OwnStreams&) = delete;
    OwnStreams& operator=(const OwnStreams&) = delete;

    const posix_spawn_file_actions_t* get() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_;
};

int spawn_by(decltype(&posix_spawn) function, pid_t* pid, const char* path,
             const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
             char* const* arguments, char* const* environment) {
    const OwnStreams own;
    pid_t child = -1;
    const int error = function(&child, path, actions != nullptr ? actions : own.get(), attributes,
                               arguments, environment);
    if (error == 0) {
        note(child);
        if (pid != nullptr) {
            *pid = child;
        }
    }
    return error;
}

int spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
    return spawn_by(&posix_spawn, pid, path, actions, attributes, arguments, environment);
}

int spawn_found(pid_t* pid, const char* name, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) {
    return spawn_by(&warren_image_spawn_found, pid, name, actions, attributes, arguments,
                    environment);
}

// Asks look(pid), which never sleeps, of `pid`, or of all children of the rank when it is -1, until
// one has something to say, or an error.
template <typename Look>
pid_t look_for(Children& own, pid_t pid, bool waits, Look look) {
    constexpr std::uint64_t first_ns = 50'000;
    constexpr std::uint64_t longest_ns = 5'000'000;
    for (std::uint64_t pause_ns = first_ns;; pause_ns = std::min(2 * pause_ns, longest_ns)) {
        const std::vector<pid_t> asked = pid == -1 ? own.all() : std::vector<pid_t>{pid};
        if (asked.empty()) {
            errno = ECHILD;
            return -1;
        }
        for (const pid_t one : asked) {
            const pid_t said = look(one);
            if (said < 0 && errno == ECHILD && pid == -1) {
                own.remove(one); // whose end the program has asked not to hear of
            } else if (said != 0) {
                return said;
            }
        }
        if (!waits) {
            return 0;
        }
        warren_fibre_sleep_until(monotonic_ns() + pause_ns);
    }
}

pid_t fibre_waits_once_for(pid_t pid, int* status, int options, rusage* usage) {
    Children* own = children_of_caller();
    if (own == nullptr || pid == 0 || pid < -1) {
        return wait4(pid, status, options, usage);
    }
    int its_status = 0;
    const pid_t said = look_for(*own, pid, (options & WNOHANG) == 0, [&](pid_t one) {
        return wait4(one, &its_status, options | WNOHANG, usage);
    });
    if (said > 0) {
        if (WIFEXITED(its_status) || WIFSIGNALED(its_status)) {
            own->remove(said);
        }
        if (status != nullptr) {
            *status = its_status;
        }
    }
    return said;
}

pid_t fibre_waits_for(pid_t pid, int* status, int options, rusage* usage) {
    return pass_over(status, [&](int* its_status) {
        return fibre_waits_once_for(pid, its_status, options, usage);
    });
}

pid_t fibre_waits_for_any(int* status) {
    return fibre_waits_for(-1, status, 0, nullptr);
}

pid_t fibre_waits_for_one(pid_t pid, int* status, int options) {
    return fibre_waits_for(pid, status, options, nullptr);
}

pid_t fibre_waits_with_usage(int* status, int options, rusage* usage) {
    return fibre_waits_for(-1, status, options, usage);
}

int fibre_waits_by_kind(idtype_t kind, id_t id, siginfo_t* information, int options) {
    Children* own = children_of_caller();
    if (own == nullptr || (kind != P_ALL && kind != P_PID)) {
        return waitid(kind, id, information, options);
    }
    siginfo_t its{};
    const pid_t said =
        look_for(*own, kind == P_ALL ? -1 : static_cast<pid_t>(id), (options & WNOHANG) == 0,
                 [&](pid_t one) -> pid_t {
                     its.si_pid = 0;
                     return waitid(P_PID, static_cast<id_t>(one), &its, options | WNOHANG) != 0
                                ? -1
                                : its.si_pid;
                 });
    if (said > 0 && (options & WNOWAIT) == 0 &&
        (its.si_code == CLD_EXITED || its.si_code == CLD_KILLED || its.si_code == CLD_DUMPED)) {
        own->remove(said);
    }
    if (information != nullptr) {
        *information = its;
    }
    return said < 0 ? -1 : 0;
}

} // namespace

std::span<const warren_image_binding> child_bindings() {
    static const warren_image_binding bindings[] = {
        {"wait", reinterpret_cast<void*>(&wait_for_any)},
        {"waitpid", reinterpret_cast<void*>(&wait_for_one)},
        {"wait3", reinterpret_cast<void*>(&wait_with_usage)},
        {"wait4", reinterpret_cast<void*>(&wait_for)},
        {"waitid", reinterpret_cast<void*>(&wait_by_kind)},
    };
    return bindings;
}

void prepare_children(std::uint32_t ranks) {
    rank_count = ranks;
    children_of_ranks = std::make_unique<Children[]>(ranks);
}

std::span<const warren_image_binding> fibre_child_bindings() {
    static const warren_image_binding bindings[] = {
        {"fork", reinterpret_cast<void*>(&make_child)},
        {"__fork", reinterpret_cast<void*>(&make_child)},
        {"vfork", reinterpret_cast<void*>(&make_child_for_exec)},
        {"posix_spawn", reinterpret_cast<void*>(&spawn)},
        {"posix_spawnp", reinterpret_cast<void*>(&spawn_found)},
        {"wait", reinterpret_cast<void*>(&fibre_waits_for_any)},
        {"waitpid", reinterpret_cast<void*>(&fibre_waits_for_one)},
        {"wait3", reinterpret_cast<void*>(&fibre_waits_with_usage)},
        {"wait4", reinterpret_cast<void*>(&fibre_waits_for)},
        {"waitid", reinterpret_cast<void*>(&fibre_waits_by_kind)},
    };
    return bindings;
}

} // namespace warren::launch
