#include "launch/host/children.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/blocked_signals.hpp"
#include "base/futex.hpp"
#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/child_list.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/interrupted_calls.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

// Whether the rank's children leave nothing behind when they end. The kernel sees to that when all
// ranks want it so (signals.cpp).
bool has_passing_children(std::uint32_t rank) {
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
            has_passing_children(rank_of_thread())) {
            continue;
        }
        if (said > 0 && status != nullptr) {
            *status = its_status;
        }
        return said;
    }
}

std::unique_ptr<Children[]> children_of_ranks;
std::uint32_t rank_count = 0;
pid_t host_process = 0;
bool has_fibres = false;
std::atomic<int> being_made{0};      // children that are in no list yet
thread_local int made_by_thread = 0; // of those

// Null: the caller belongs to no rank, or is a child of fork. A thread that the program has made
// has the same children.
Children* children_of_caller() {
    const std::uint32_t rank = rank_of_thread();
    return rank < rank_count && getpid() == host_process ? &children_of_ranks[rank] : nullptr;
}

// A handler in another thread may in turn wait for one of this thread, so not for long.
void wait_for_handlers(const Children& own) {
    constexpr int looks = 100;
    constexpr timespec pause{.tv_sec = 0, .tv_nsec = 20'000};
    for (int look = 0; look < looks && own.handlers != 0; ++look) {
        nanosleep(&pause, nullptr);
    }
}

// The calling rank gets the signal of a child.
void act_on_child(pid_t pid, int code, int status) {
    siginfo_t information{};
    information.si_signo = SIGCHLD;
    information.si_code = code;
    information.si_pid = pid;
    information.si_uid = getuid();
    information.si_status = status;
    act_on_signal(rank_of_thread(), information);
}

// The calling rank has waited for the child, and gets its signal before that is told.
void remove(Children& own, pid_t pid, int code, int status) {
    if (HeldChildren(own).remove(pid)) {
        wait_for_handlers(own);
        act_in_interrupted_fibre(); // or the fibre has kept it
        return;
    }
    act_on_child(pid, code, status);
}

// As remove(), for a stop or a continuation.
void take_state(Children& own, pid_t pid, int code, int status) {
    if (HeldChildren(own).take_state(pid, code)) {
        act_in_interrupted_fibre();
    } else if (wants_stops(rank_of_thread())) {
        act_on_child(pid, code, status);
    }
}

// The fibre's handler runs in the fibre itself meanwhile, and so before the wait has told of the
// end.
class Polling {
  public:
    explicit Polling(Children& children) : children_(children) { ++children_.polls; }
    ~Polling() {
        const int error = errno;
        --children_.polls;
        signal_ended_children();
        errno = error;
    }
    Polling(const Polling&) = delete;
    Polling& operator=(const Polling&) = delete;

    // Handlers run: one may leave the wait by siglongjmp.
    Handled act(SignalWait& wait) {
        --children_.polls;
        signal_ended_children();
        const Handled handled = wait.act();
        ++children_.polls;
        return handled;
    }

  private:
    Children& children_;
};

// Whom a wait is for.
struct Wanted {
    pid_t child = 0; // 0: any, of the group
    pid_t group = 0; // 0: any
};

// As wait4() understands its first argument.
Wanted wanted_by(pid_t pid) {
    return pid > 0     ? Wanted{.child = pid}
           : pid == 0  ? Wanted{.group = getpgrp()}
           : pid == -1 ? Wanted{}
                       : Wanted{.group = -pid};
}

bool is_there(pid_t child) {
    siginfo_t information{};
    return waitid(P_PID, static_cast<id_t>(child), &information,
                  WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

// Asks look(pid, WNOHANG) of the rank's children of a group until one has something to say. -1:
// there is none. A handler may call this, so it allocates nothing.
template <typename Look>
pid_t look_at_all(Children& own, pid_t group, Look look) {
    std::size_t index = 0;
    bool has_some = false;
    while (const pid_t one = HeldChildren(own).number(index)) {
        if (group != 0 && getpgid(one) != group) {
            ++index;
            continue;
        }
        const pid_t said = look(one, WNOHANG);
        if (said < 0 && errno == ECHILD) {
            if (is_there(one)) {
                ++index; // of a kind that is not asked for, or ended where that is not
            } else {
                HeldChildren(own).remove(one); // whose end the program has asked not to hear of
            }
            continue;
        }
        if (said != 0) {
            return said;
        }
        has_some = true;
        ++index;
    }
    errno = ECHILD;
    return has_some ? 0 : -1;
}

bool is_of_other_rank(Children& own, pid_t pid) {
    if (HeldChildren(own).has(pid)) {
        return false;
    }
    const std::uint32_t parent = rank_of_child(pid);
    return parent != no_rank && &children_of_ranks[parent] != &own;
}

// Asks look(pid, options) of the rank's children that are wanted.
template <typename Look>
pid_t look_once(Children& own, const Wanted& wanted, int options, Look look) {
    if (wanted.child != 0) {
        if (is_of_other_rank(own, wanted.child)) {
            errno = ECHILD;
            return -1;
        }
        return look(wanted.child, options);
    }
    return look_at_all(own, wanted.group, look);
}

constexpr std::uint64_t first_child_look_ns = 50'000;
constexpr std::uint64_t longest_child_look_ns = 5'000'000;

// Looks until a child has something to say, or an error, which may be a handler's interruption.
template <typename Look>
pid_t look_in_fibre(RankSignals& signals, Children& own, const Wanted& wanted, Look look) {
    SignalWait wait(signals, SignalWait::Kind::for_other, nullptr);
    Polling polling(own);
    std::uint64_t pause_ns = first_child_look_ns;
    Handled handled = Handled::none;
    while (true) {
        if (const pid_t said = look_once(own, wanted, WNOHANG, look)) {
            return said;
        }
        if (handled == Handled::interrupt) {
            errno = EINTR;
            return -1;
        }
        handled = polling.act(wait);
        if (handled == Handled::none) {
            wait.sleep(monotonic_ns() + pause_ns);
            pause_ns = std::min(2 * pause_ns, longest_child_look_ns);
        }
    }
}

// Whether the kernel can look for any child of the rank's: all are the calling thread's, and no
// other thread makes some meanwhile.
bool has_made_all(Children& own) {
    if (warren_image_other_threads() != 0) {
        return false;
    }
    const pid_t maker = own_thread();
    HeldChildren held(own);
    return std::all_of(held.list().begin(), held.list().end(),
                       [&](const Child& child) { return child.maker == maker; });
}

// The kernel waits if it can; `any` is what wait4() calls all of them.
template <typename Look>
pid_t look_in_thread(Children& own, const Wanted& wanted, Look look) {
    if (wanted.child != 0) {
        return look_once(own, wanted, 0, look);
    }
    const std::uint32_t interruptions = interruptions_of_thread();
    std::uint64_t pause_ns = first_child_look_ns;
    while (true) {
        const bool is_interrupted = interruptions_of_thread() != interruptions;
        if (const pid_t said = look_once(own, wanted, WNOHANG, look)) {
            return said;
        }
        if (is_interrupted) {
            errno = EINTR;
            return -1;
        }
        if (!has_fibres && wanted.group == 0 && has_made_all(own)) {
            return look(-1, __WNOTHREAD);
        }
        const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(pause_ns)};
        nanosleep(&pause, nullptr);
        pause_ns = std::min(2 * pause_ns, longest_child_look_ns);
    }
}

template <typename Look>
pid_t look_for(Children& own, const Wanted& wanted, bool waits, Look look) {
    if (!waits) {
        pid_t said = 0;
        {
            const BlockedSignals blocked; // a handler may leave by siglongjmp
            ++own.polls;
            said = look_once(own, wanted, WNOHANG, look);
            --own.polls;
        }
        const int error = errno;
        signal_ended_children();
        errno = error;
        return said;
    }
    RankSignals* signals = is_in_handler() ? nullptr : signals_of_caller();
    return signals != nullptr ? look_in_fibre(*signals, own, wanted, look)
                              : look_in_thread(own, wanted, look);
}

pid_t waits_once_for(pid_t pid, int* status, int options, rusage* usage) {
    Children* own = children_of_caller();
    if (own == nullptr) {
        return wait4(pid, status, options, usage);
    }
    int its_status = 0;
    const pid_t said =
        look_for(*own, wanted_by(pid), (options & WNOHANG) == 0, [&](pid_t one, int more) {
            return wait4(one, &its_status, options | more, usage);
        });
    if (said > 0) {
        if (WIFEXITED(its_status)) {
            remove(*own, said, CLD_EXITED, WEXITSTATUS(its_status));
        } else if (WIFSIGNALED(its_status)) {
            remove(*own, said, WCOREDUMP(its_status) ? CLD_DUMPED : CLD_KILLED,
                   WTERMSIG(its_status));
        } else if (WIFSTOPPED(its_status)) {
            take_state(*own, said, CLD_STOPPED, WSTOPSIG(its_status));
        } else {
            take_state(*own, said, CLD_CONTINUED, SIGCONT);
        }
        if (status != nullptr) {
            *status = its_status;
        }
    }
    return said;
}

pid_t rank_waits_for(pid_t pid, int* status, int options, rusage* usage) {
    return pass_over(
        status, [&](int* its_status) { return waits_once_for(pid, its_status, options, usage); });
}

pid_t rank_waits_for_any(int* status) {
    return rank_waits_for(-1, status, 0, nullptr);
}

pid_t rank_waits_for_one(pid_t pid, int* status, int options) {
    return rank_waits_for(pid, status, options, nullptr);
}

pid_t rank_waits_with_usage(int* status, int options, rusage* usage) {
    return rank_waits_for(-1, status, options, usage);
}

bool is_end(const siginfo_t& information) {
    return information.si_code == CLD_EXITED || information.si_code == CLD_KILLED ||
           information.si_code == CLD_DUMPED;
}

// waitid once; -1, a child, or 0: none has something to say.
pid_t waits_once_by_kind(Children& own, const Wanted& wanted, siginfo_t& its, int options) {
    const pid_t said = look_for(own, wanted, (options & WNOHANG) == 0, [&](pid_t one, int more) {
        its.si_pid = 0;
        const int error =
            waitid(one == -1 ? P_ALL : P_PID, static_cast<id_t>(one), &its, options | more);
        return error != 0 ? -1 : its.si_pid;
    });
    if (said > 0 && (options & WNOWAIT) == 0) {
        if (is_end(its)) {
            remove(own, said, its.si_code, its.si_status);
        } else {
            take_state(own, said, its.si_code, its.si_status);
        }
    }
    return said;
}

int rank_waits_by_kind(idtype_t kind, id_t id, siginfo_t* information, int options) {
    Children* own = children_of_caller();
    const auto number = static_cast<pid_t>(id);
    if (own == nullptr || (kind != P_ALL && kind != P_PID && kind != P_PGID) ||
        (kind == P_PID && number <= 0)) {
        return waitid(kind, id, information, options);
    }
    const Wanted wanted = kind == P_ALL   ? Wanted{}
                          : kind == P_PID ? Wanted{.child = number}
                                          : Wanted{.group = number != 0 ? number : getpgrp()};
    siginfo_t its{};
    pid_t said = waits_once_by_kind(*own, wanted, its, options);
    while (said > 0 && is_end(its) && has_passing_children(rank_of_thread())) {
        if ((options & WNOWAIT) != 0) { // nobody waits for it later either
            waits_once_for(said, nullptr, WNOHANG, nullptr);
        }
        its = {};
        said = waits_once_by_kind(*own, wanted, its, options);
    }
    if (information != nullptr) {
        *information = its;
    }
    return said < 0 ? -1 : 0;
}

} // namespace

namespace {

bool find_ended(std::uint32_t rank, siginfo_t& information) {
    HeldChildren held(children_of_ranks[rank]);
    if (has_passing_children(rank)) { // the kernel has reaped some if all ranks have such
        std::erase_if(held.list(),
                      [](const Child& child) { return !is_there(child.pid) && errno == ECHILD; });
    }
    for (Child& child : held.list()) {
        information = {};
        if (child.end == Child::End::untold &&
            waitid(P_PID, static_cast<id_t>(child.pid), &information,
                   WEXITED | WNOHANG | WNOWAIT) == 0 &&
            information.si_pid == child.pid) {
            child.end = has_passing_children(rank) ? Child::End::passes : Child::End::told;
            return true;
        }
    }
    return false;
}

// Those whose signals the rank has, or gets before it goes on.
void let_children_pass(std::uint32_t rank) {
    HeldChildren held(children_of_ranks[rank]);
    std::erase_if(held.list(), [](const Child& child) {
        return child.end == Child::End::passes && waitpid(child.pid, nullptr, WNOHANG) != 0;
    });
}

} // namespace

bool find_ended_child(std::uint32_t rank, siginfo_t& information) {
    if (rank >= rank_count) {
        return false;
    }
    Children& children = children_of_ranks[rank];
    ++children.handlers;
    const bool found = children.polls == 0 && find_ended(rank, information);
    if (!found) {
        --children.handlers;
    }
    return found;
}

bool find_stopped_child(std::uint32_t rank, siginfo_t& information) {
    if (rank >= rank_count) {
        return false;
    }
    HeldChildren held(children_of_ranks[rank]);
    for (Child& child : held.list()) {
        information = {};
        if (waitid(P_PID, static_cast<id_t>(child.pid), &information,
                   WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) == 0 &&
            information.si_pid == child.pid &&
            (information.si_code != child.told_state || child.state_taken)) {
            child.told_state = information.si_code;
            child.state_taken = false;
            return true;
        }
    }
    return false;
}

void skip_stops(std::uint32_t rank) {
    siginfo_t information{};
    while (find_stopped_child(rank, information)) {
    }
}

bool wants_stops(std::uint32_t rank) {
    return (actions().of(rank, SIGCHLD).sa_flags & SA_NOCLDSTOP) == 0;
}

void end_of_child_is_handled(std::uint32_t rank) {
    let_children_pass(rank);
    --children_of_ranks[rank].handlers;
}

bool is_child_being_made() {
    return being_made != 0;
}

// A child in no list yet is the calling thread's, if that makes one.
std::uint32_t rank_of_sender(pid_t pid) {
    if (!is_there(pid)) {
        return no_rank;
    }
    constexpr int looks = 100;
    constexpr timespec pause{.tv_sec = 0, .tv_nsec = 20'000};
    for (int look = 0; look < looks && made_by_thread == 0 && being_made != 0; ++look) {
        nanosleep(&pause, nullptr);
    }
    const std::uint32_t rank = rank_of_child(pid);
    return rank == no_rank && made_by_thread != 0 ? rank_of_thread() : rank;
}

std::uint32_t rank_of_child(pid_t pid) {
    for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
        if (HeldChildren(children_of_ranks[rank]).has(pid)) {
            return rank;
        }
    }
    return no_rank;
}

void signal_ended_children() {
    siginfo_t information{};
    while (children_of_caller() != nullptr && find_ended(rank_of_thread(), information)) {
        let_children_pass(rank_of_thread());
        act_on_signal(rank_of_thread(), information);
    }
}

void begin_child() {
    ++being_made;
    ++made_by_thread;
}

pid_t note_child(pid_t pid) {
    Children* own = pid > 0 ? children_of_caller() : nullptr;
    if (own != nullptr) {
        HeldChildren(*own).list().push_back({.pid = pid, .maker = own_thread()});
    }
    --being_made;
    --made_by_thread;
    if (own != nullptr) {
        signal_ended_children(); // it may have ended before it was in the list
    }
    return pid;
}

pid_t wait_for_command(pid_t pid, int* status, int options) {
    return rank_waits_for(pid, status, options, nullptr);
}

void prepare_children(std::uint32_t ranks, bool fibres) {
    rank_count = ranks;
    host_process = getpid();
    has_fibres = fibres;
    children_of_ranks = std::make_unique<Children[]>(ranks);
}

std::span<const warren_image_binding> child_bindings() {
    static const warren_image_binding bindings[] = {
        {"wait", reinterpret_cast<void*>(&rank_waits_for_any)},
        {"waitpid", reinterpret_cast<void*>(&rank_waits_for_one)},
        {"wait3", reinterpret_cast<void*>(&rank_waits_with_usage)},
        {"wait4", reinterpret_cast<void*>(&rank_waits_for)},
        {"waitid", reinterpret_cast<void*>(&rank_waits_by_kind)},
    };
    return bindings;
}

} // namespace warren::launch
