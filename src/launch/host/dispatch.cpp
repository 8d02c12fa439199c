#include "launch/host/dispatch.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "launch/host/actions.hpp"
#include "launch/host/children.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/interrupted_calls.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/rank_signals.hpp"
#include "launch/host/rank_timers.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/signal_owners.hpp"
#include "launch/host/thread_signals.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

struct State {
    pid_t process = 0;
    bool fibres = false;
};

State& state() {
    static State& only = *new State; // outlives everything
    return only;
}

bool stops_by_default(int number) {
    return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

// The default action, by or for one rank, is the process's.
void end_by(std::uint32_t rank, int number, bool own) {
    take_default(number);
    if (own && getpid() == state().process && !stops_by_default(number)) {
        report_crash(rank, number);
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    syscall(SYS_tgkill, getpid(), own_thread(), number);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr); // it comes now
    install_dispatcher(number, SA_RESTART);      // the process was stopped, and goes on
}

// The mask to which the kernel goes back after a handler. It has room for these signals only.
Mask mask_in(const void* context) {
    Mask mask = 0;
    std::memcpy(&mask, &static_cast<const ucontext_t*>(context)->uc_sigmask, sizeof mask);
    return mask;
}

void set_mask_in(void* context, Mask mask) {
    std::memcpy(&static_cast<ucontext_t*>(context)->uc_sigmask, &mask, sizeof mask);
}

// The program's mask after a handler, which was shown one mask and has left another.
Mask changed(Mask blocked, Mask shown, Mask left) {
    return (blocked & ~(shown & ~left)) | (left & ~shown & ~(bit(SIGKILL) | bit(SIGSTOP)));
}

// The handler is shown the fibre's mask; the worker's, to which the kernel goes back, only loses
// what the handler takes away.
void run_in_fibre(std::uint32_t rank, struct sigaction& action, siginfo_t* information,
                  void* context) {
    const Mask blocked = mask_of_fibre(rank);
    const Mask in_kernel = mask_in(context);
    const Mask shown = blocked | in_kernel;
    set_mask_in(context, shown);
    run_handler(action, information->si_signo, information, context);
    const Mask left = mask_in(context);
    set_mask_in(context, in_kernel & left);
    restore_mask_of_fibre(rank, changed(blocked, shown, left));
}

// `is_running`: the handler's own thread is what the signal has interrupted.
void run_in_thread(struct sigaction& action, siginfo_t* information, void* context,
                   bool is_running) {
    const int number = information->si_signo;
    const Mask blocked = noted_mask();
    const Mask shown = mask_in(context);
    note_mask(is_running ? blocked | blocked_by_handler(action, number) : blocked);
    const sigset_t interrupted = set_of(is_running ? mask_of_wait(shown) : shown);
    run_handler(action, number, information, context, is_running ? &interrupted : nullptr);
    note_mask(is_running ? changed(blocked, shown, mask_in(context)) : blocked);
}

// `is_running`: the rank's code is what the signal has interrupted. False: no handler has run.
bool deliver(std::uint32_t rank, int number, siginfo_t* information, void* context, bool own,
             bool is_running) {
    note_taken(*information);
    struct sigaction& action = actions().of(rank, number);
    const int flags = action.sa_flags;
    if (is_handler(action)) {
        const std::uint32_t former = act_for(is_running ? no_rank : rank);
        if (!state().fibres || (is_running && !warren_fibre_is_one())) {
            run_in_thread(action, information, context, is_running);
        } else {
            run_in_fibre(rank, action, information, context);
        }
        act_for(former);
        if (is_running && (flags & SA_RESTART) == 0) {
            end_interrupted_call(context);
        }
        return true;
    }
    if (!is_ignored(action) && !is_ignored_by_default(number)) {
        end_by(rank, number, own);
    }
    return false;
}

// Whether it tells of a descriptor: of those, the kernel's owners are ranks' first threads
// (descriptor_signals.hpp), and fibres' have passed the router.
bool is_of_descriptor(const siginfo_t& information) {
    const int number = information.si_signo;
    const bool is_named = information.si_code >= POLL_IN && information.si_code <= POLL_HUP;
    return number == SIGIO || number == SIGURG ? is_named || information.si_code == SI_KERNEL
                                               : is_named && number >= SIGRTMIN;
}

// From outside the process, or from its kernel state that no rank has of its own.
bool is_for_all(const siginfo_t& information) {
    if (is_of_descriptor(information)) {
        return false;
    }
    switch (information.si_code) {
    case SI_TKILL:
    case SI_TIMER:
    case SI_ASYNCIO:
    case SI_MESGQ:
    case SI_ASYNCNL:
        return false;
    case SI_USER:
    case SI_QUEUE:
        return information.si_pid != getpid();
    default:
        return true;
    }
}

// The rank that a signal is for which a timer, or a child with another program, has sent; nobody or
// no_rank, as for owner_of_signal.
std::uint32_t rank_meant(siginfo_t& information) {
    const std::uint32_t owner = owner_of_signal(information);
    const bool is_sent = information.si_code == SI_USER || information.si_code == SI_QUEUE;
    const bool may_be_childs = owner == no_rank && is_sent && is_for_all(information);
    return may_be_childs ? rank_of_sender(information.si_pid) : owner;
}

// The fibre that acts on a signal for all: the running one, or else another, that has a handler; if
// none has, the default action is the process's. Best one that doesn't block it.
std::uint32_t receiver_among_fibres(std::uint32_t running, int number) {
    const Actions& all = actions();
    for (const bool with_handler : {true, false}) {
        for (const bool unblocked : {true, false}) {
            const auto fits = [&](std::uint32_t rank) {
                return (!with_handler || is_handler(all.of(rank, number))) &&
                       (!unblocked || !blocks_signal(rank, number));
            };
            if (running != no_rank && fits(running)) {
                return running;
            }
            for (std::uint32_t rank = 0; rank < all.ranks(); ++rank) {
                if (fits(rank)) {
                    return rank;
                }
            }
        }
    }
    return running;
}

// Whether the calling thread, which lets the signal through, isn't the rank's fibre, and that has
// it blocked.
bool is_only_for_thread(std::uint32_t rank, std::uint32_t running, int number) {
    return rank != no_rank && rank == running && !warren_fibre_is_one() &&
           blocks_signal(rank, number);
}

// The rank's handler runs in the thread that runs the rank, where it may end the call that it has
// interrupted or leave by siglongjmp. False: none runs it, or the calling one.
bool pass_to_thread_of(std::uint32_t rank, Passed why, const siginfo_t& information) {
    const pid_t thread = warren_fibre_thread(rank);
    return thread != 0 && thread != own_thread() &&
           is_handler(actions().of(rank, information.si_signo)) &&
           pass_on(thread, why, information);
}

bool pass_to_fibre(std::uint32_t rank, const siginfo_t& information) {
    siginfo_t to_fibre = information;
    to_fibre.si_uid = rank; // or a timer's overruns
    return pass_to_thread_of(rank, Passed::to_fibre, to_fibre);
}

bool pass_to_worker(std::uint32_t rank, const siginfo_t& information) {
    return is_for_all(information) ? pass_to_thread_of(rank, Passed::to_worker, information)
                                   : pass_to_fibre(rank, information);
}

// The rank's handler runs in its fibre: at once if the signal has interrupted that, else when it
// goes on.
void give_to_fibre(std::uint32_t rank, std::uint32_t running, siginfo_t* information, void* context,
                   bool own) {
    const bool is_interrupted =
        rank == running && warren_fibre_is_one() && !warren_fibre_is_switching();
    if (is_interrupted || !is_handler(actions().of(rank, information->si_signo))) {
        deliver(rank, information->si_signo, information, context, own, rank == running);
    } else {
        keep_for_fibre(rank, *information);
    }
}

// The parent gets the signal of a child; `running`: the calling thread's rank.
void give_to_parent(std::uint32_t rank, std::uint32_t running, siginfo_t* information,
                    void* context) {
    if (state().fibres) {
        if (is_only_for_thread(rank, running, SIGCHLD)) {
            deliver(rank, SIGCHLD, information, context, true, true);
        } else if (!hold_back(rank, *information) && !pass_to_fibre(rank, *information)) {
            give_to_fibre(rank, running, information, context, true);
        }
    } else if (rank == running) {
        deliver(rank, SIGCHLD, information, context, true, true);
    } else {
        post_to_rank(rank, *information);
    }
}

// The ends of children: a signal may stand for several, which are of any rank.
void dispatch_ends(std::uint32_t running, siginfo_t* information, void* context) {
    bool found = false;
    for (std::uint32_t rank = 0; rank < actions().ranks(); ++rank) {
        siginfo_t its{};
        while (find_ended_child(rank, its)) {
            found = true;
            if (rank == running) { // the handler may wait for children
                end_of_child_is_handled(rank);
            }
            give_to_parent(rank, running, &its, context);
            if (rank != running) {
                end_of_child_is_handled(rank);
            }
        }
    }
    siginfo_t there{};
    const auto id = static_cast<id_t>(information->si_pid);
    // (Who makes a child lists it before it is no longer being made: so the lists come last.)
    if (!found && !is_child_being_made() && rank_of_child(information->si_pid) == no_rank &&
        waitid(P_PID, id, &there, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        there.si_pid == information->si_pid) { // a child of a thread that is no fibre
        const std::uint32_t rank =
            state().fibres ? receiver_among_fibres(running, SIGCHLD) : running;
        if (rank != no_rank && state().fibres && !hold_back(rank, *information)) {
            give_to_fibre(rank, running, information, context, false);
        } else if (rank != no_rank && !state().fibres) {
            deliver(rank, SIGCHLD, information, context, false, rank == running);
        }
    }
    act_on_held_back(SIGCHLD);
}

// Stops and continuations of children of any rank.
void dispatch_stops(std::uint32_t running, void* context) {
    for (std::uint32_t rank = 0; rank < actions().ranks(); ++rank) {
        siginfo_t its{};
        while (find_stopped_child(rank, its)) {
            if (wants_stops(rank)) {
                give_to_parent(rank, running, &its, context);
            }
        }
    }
}

// The kernel merges signals of children: one may stand for stops and ends.
void dispatch_child(std::uint32_t running, siginfo_t* information, void* context) {
    dispatch_stops(running, context);
    dispatch_ends(running, information, context);
}

// All fibres that wait for a signal get it. False: none does.
bool wake_waiting_fibres(int number, const siginfo_t& information) {
    bool woken = false;
    for (std::uint32_t rank = 0; rank < actions().ranks(); ++rank) {
        woken |= waits_for_signal(rank, number) && hold_back(rank, information);
    }
    return woken;
}

// The fibre that a signal is for that hasn't come from outside; no_rank: it has.
std::uint32_t receiver_inside(siginfo_t& information, std::uint32_t running, Passed passed) {
    if (passed == Passed::to_fibre) {
        const std::uint32_t rank = information.si_uid;
        information.si_uid = information.si_code == SI_TIMER ? 0 : getuid();
        return has_ended(rank) ? nobody : rank;
    }
    const std::uint32_t owner = rank_meant(information);
    if (owner != no_rank || is_for_all(information)) {
        return owner;
    }
    // Else a thread of the host's, for a fibre's timer.
    return running != no_rank ? running : receiver_among_fibres(running, information.si_signo);
}

// Whether a signal that has come to a thread of the program's, which is no fibre, is for it alone.
// (What sigqueue sends to the own process has been passed on.)
bool is_for_this_thread(const siginfo_t& information, Passed passed) {
    if (passed == Passed::to_rank || information.si_code == SI_TKILL) {
        return true;
    }
    return passed == Passed::none &&
           ((information.si_code == SI_QUEUE && information.si_pid == getpid()) ||
            (information.si_code == SI_TIMER && !has_owner(information)));
}

void dispatch_to_fibre(int number, siginfo_t* information, void* context, Passed passed) {
    const std::uint32_t running = rank_of_thread();
    if (running != no_rank && !warren_fibre_is_one() && is_for_this_thread(*information, passed)) {
        deliver(running, number, information, context, true, true); // for a thread of the program's
        return;
    }
    std::uint32_t rank = receiver_inside(*information, running, passed);
    if (rank == nobody) {
        return;
    }
    const bool own = rank != no_rank && rank == running;
    if (rank == no_rank) {
        if (number == SIGCHLD) {
            dispatch_child(running, information, context);
            return;
        }
        if (wake_waiting_fibres(number, *information)) {
            return;
        }
        rank = receiver_among_fibres(running, number);
    }
    if (is_only_for_thread(rank, running, number)) {
        deliver(rank, number, information, context, true, true);
        return;
    }
    if (rank != no_rank && !hold_back(rank, *information) &&
        !(passed == Passed::none && (rank != running || !warren_fibre_is_one()) &&
          pass_to_worker(rank, *information))) {
        give_to_fibre(rank, running, information, context, own);
        act_on_held_back(number);
    }
}

// Every other rank that is a thread gets it. Of one that has no room for it the handler
// runs here.
void post_to_others(std::uint32_t running, siginfo_t* information, void* context) {
    for (std::uint32_t other = 0; other < actions().ranks(); ++other) {
        if (other != running && first_thread(other) != 0 && !post_to_rank(other, *information) &&
            errno == EAGAIN) {
            deliver(other, information->si_signo, information, context, false, false);
        }
    }
}

} // namespace

void prepare_dispatch(bool fibres) {
    state().process = getpid();
    state().fibres = fibres;
}

bool is_ignored_by_default(int number) {
    return number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT;
}

void dispatch(int number, siginfo_t* information, void* context) {
    const int error = errno;
    const Passed passed = take_passed(*information);
    if (passed == Passed::to_wake) {
        return;
    }
    if (passed == Passed::to_look) {
        act_on_held_back(number);
        errno = error;
        return;
    }
    if (passed == Passed::to_rank) {
        note_come();
    }
    if (state().fibres && getpid() == state().process) {
        dispatch_to_fibre(number, information, context, passed);
        errno = error;
        return;
    }
    const std::uint32_t running = rank_of_thread();
    bool own = !is_for_all(*information);
    if (passed == Passed::none && getpid() == state().process) {
        const std::uint32_t owner = rank_meant(*information);
        if (owner != no_rank && owner != running) {
            if (owner != nobody) {
                send_to_rank(owner, *information);
            }
            errno = error;
            return;
        }
        own |= owner != no_rank;
        if (!own && number == SIGCHLD) {
            dispatch_child(running, information, context);
            errno = error;
            return;
        }
        if (!own) {
            post_to_others(running, information, context);
        }
    }
    if (running != no_rank) {
        deliver(running, number, information, context, own || getpid() != state().process, true);
    }
    errno = error;
}

void install_dispatcher(int number, int flags) {
    struct sigaction action {};
    action.sa_sigaction = dispatch;
    action.sa_flags = SA_SIGINFO | flags;
    if (!state().fibres) {
        // Others come when a rank's handler begins, which may have them blocked (run_handler).
        sigfillset(&action.sa_mask);
        for (int one = 1; one < NSIG; ++one) {
            if (is_crash_signal(one)) {
                sigdelset(&action.sa_mask, one);
            }
        }
    }
    sigaction(number, &action, nullptr);
}

Mask blocked_by_handler(const struct sigaction& action, int number) {
    return mask_of(action.sa_mask) | ((action.sa_flags & SA_NODEFER) == 0 ? bit(number) : 0);
}

bool deliver_by_caller(std::uint32_t rank, siginfo_t& information) {
    ucontext_t context{};
    return deliver(rank, information.si_signo, &information, &context, true, false);
}

bool offer_to_fibre(std::uint32_t rank, siginfo_t& information) {
    bool has_room = true;
    if (hold_back(rank, information, false, &has_room) || pass_to_fibre(rank, information)) {
        return has_room;
    }
    if (is_handler(actions().of(rank, information.si_signo))) {
        return keep_for_fibre(rank, information);
    }
    deliver_by_caller(rank, information);
    return true;
}

bool send_to_rank(std::uint32_t rank, siginfo_t& information) {
    const bool sent =
        state().fibres ? offer_to_fibre(rank, information) : post_to_rank(rank, information);
    if (!sent) {
        note_taken(information); // by nobody
    }
    return sent;
}

bool is_for_caller(siginfo_t& information) {
    const std::uint32_t rank = rank_of_thread();
    const std::uint32_t owner = rank_meant(information);
    if (owner == nobody) {
        return false;
    }
    if (owner != no_rank && owner != rank) {
        send_to_rank(owner, information);
        return false;
    }
    if (owner == rank || !is_for_all(information)) {
        return true;
    }
    ucontext_t context{};
    if (information.si_signo == SIGCHLD) {
        // The caller looks into the queue of its rank afterwards.
        dispatch_child(no_rank, &information, &context);
        return false;
    }
    if (state().fibres) {
        wake_waiting_fibres(information.si_signo, information);
    } else {
        post_to_others(rank, &information, &context);
    }
    return true;
}

void act_on_signal(std::uint32_t rank, siginfo_t& information) {
    if (!state().fibres) {
        if ((mask_of_thread() & bit(information.si_signo)) == 0) {
            deliver_by_caller(rank, information);
        } else {
            post_to_rank(rank, information);
        }
        return;
    }
    if (!hold_back(rank, information, true)) {
        deliver_by_caller(rank, information);
        act_on_held_back(0);
    }
}

} // namespace warren::launch
