#include "fibre/handlers.hpp"

#include <array>
#include <cerrno>
#include <mutex>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process_lock.hpp"
#include "fibre/scheduler.hpp"

namespace warren::fibre {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr int last_signal = 64;
using KernelMask = std::uint64_t;

// What the program has set. Writers have the lock and are in a section; handlers read without. The
// version says which of the two counts: never the one that changes, so that a child of fork, which
// may be made amid that, has a whole one too (if not yet the kernel's part of it).
struct Entry {
    std::atomic<std::uint32_t> version{0};
    std::array<struct sigaction, 2> actions{};
};
std::array<Entry, last_signal + 1> entries;
ProcessLock entries_lock;

void set_entry(int number, const struct sigaction& action) {
    Entry& entry = entries[static_cast<std::size_t>(number)];
    const std::uint32_t next = entry.version.load(relaxed) + 1;
    std::atomic_thread_fence(std::memory_order_release);
    entry.actions[next % 2] = action;
    entry.version.store(next, std::memory_order_release);
}

struct sigaction read_entry(int number) {
    const Entry& entry = entries[static_cast<std::size_t>(number)];
    while (true) {
        const std::uint32_t before = entry.version.load(std::memory_order_acquire);
        const struct sigaction action = entry.actions[before % 2];
        std::atomic_thread_fence(std::memory_order_acquire);
        if (entry.version.load(relaxed) == before) {
            return action;
        }
    }
}

bool names_function(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// What an instruction has done, which is done again if the handler returns.
bool is_fault(int number, const siginfo_t& about) {
    return about.si_code > 0 && (number == SIGSEGV || number == SIGBUS || number == SIGILL ||
                                 number == SIGFPE || number == SIGTRAP || number == SIGSYS);
}

// The kernel's sets of signals are the first words of the C library's.
KernelMask& mask_of(ucontext_t& context) {
    return *reinterpret_cast<KernelMask*>(&context.uc_sigmask);
}

// What stands in a handler's mark: its own address, so, but for chance, nothing else.
constexpr std::uintptr_t mark_key = 0x5bd1e995c6a4a793U;

bool is_on(const stack_t& stack, std::uintptr_t address) {
    const auto begin = reinterpret_cast<std::uintptr_t>(stack.ss_sp);
    return (stack.ss_flags & SS_DISABLE) == 0 && address >= begin &&
           address < begin + stack.ss_size;
}

} // namespace

HeldSignals& Handlers::held_here() {
    if (here.own != nullptr) {
        return here.own->worker.load(std::memory_order_relaxed)->held;
    }
    return here.worker != nullptr ? here.worker->held : here.held;
}

void Section::let_come() {
    HeldSignals& held = Handlers::held_here();
    if (!held.are_held.load(relaxed)) {
        return;
    }
    sigset_t mask;
    sigemptyset(&mask);
    *reinterpret_cast<KernelMask*>(&mask) = held.mask.exchange(~KernelMask{0}, relaxed);
    held.are_held.store(false, relaxed);
    holding.fetch_sub(1, relaxed);
    // (By the C library: where ThreadSanitizer stands before it, it lets come what it has kept.)
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &mask, nullptr); // they come here
    errno = error;
}

bool Handlers::put_off(int number, siginfo_t& about, ucontext_t& context) {
    if (!Section::has_caller() || is_fault(number, about)) {
        return false;
    }
    const int error = errno;
    // (Refused, should others have filled the queue of real-time signals: then without what it
    // says, to any thread.)
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, &about) != 0) {
        kill(getpid(), number);
    }
    HeldSignals& held = held_here();
    // Another one may have come amid this, whose context blocks what this one's handler does.
    held.mask.fetch_and(mask_of(context), relaxed);
    if (!held.are_held.exchange(true, relaxed)) {
        Section::holding.fetch_add(1, relaxed);
    }
    mask_of(context) = ~KernelMask{0}; // when the handler has returned
    errno = error;
    return true;
}

[[gnu::no_sanitize("address")]] void Handlers::run(const Action& action, int number,
                                                   siginfo_t* about, ucontext_t* context) {
    const std::uintptr_t mark = reinterpret_cast<std::uintptr_t>(&mark) ^ mark_key;
    const bool hides = Scheduler::current() != nullptr;
    if (hides) {
        const auto address = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        const stack_t& stack = context->uc_stack;
        here.handler_begin =
            is_on(stack, address) ? reinterpret_cast<std::uintptr_t>(stack.ss_sp) : 0;
        here.handler_end = address;
        here.handler_mark = &mark;
        here.handler_mask = mask_of(*context);
        here.fibre = nullptr;
    }
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(number, about, context);
    } else {
        action.sa_handler(number);
    }
    if (hides) {
        here.fibre = here.own; // (null: in a child of fork)
    }
}

// Here no fibre is seen: a handler runs, or has run until it left by siglongjmp.
[[gnu::noinline, gnu::no_sanitize("address", "thread")]] Fibre*
Scheduler::current_behind_handler() {
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const bool is_below = frame >= here.handler_begin && frame < here.handler_end;
    // (What is called after a jump may be as deep as the handler was, but then has written there.)
    if (!is_below || __atomic_load_n(here.handler_mark, __ATOMIC_RELAXED) !=
                         (reinterpret_cast<std::uintptr_t>(here.handler_mark) ^ mark_key)) {
        here.fibre = here.own;
    }
    return here.fibre;
}

void Handlers::on_signal(int number, siginfo_t* about, void* memory) {
    auto& context = *static_cast<ucontext_t*>(memory);
    if (put_off(number, *about, context)) {
        return;
    }
    const Action action = read_entry(number);
    if (!names_function(action)) {
        // Another thread has changed it just now: as if the signal had come behind that.
        if (action.sa_handler == SIG_DFL) {
            syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, about);
        }
        return;
    }
    if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
        Action none{};
        none.sa_handler = SIG_DFL;
        set(number, &none, nullptr);
    }
    if ((action.sa_flags & SA_NODEFER) != 0) {
        const KernelMask own = KernelMask{1} << (number - 1);
        syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &own, nullptr, sizeof own);
    }
    run(action, number, about, &context);
}

int Handlers::set(int number, const Action* action, Action* before) {
    // (What the caller has given may be no memory, and a handler of that jump away from here.)
    Action wanted{};
    if (action != nullptr) {
        wanted = *action;
    }
    Action former{};
    if (change(number, action != nullptr ? &wanted : nullptr, former) != 0) {
        return -1;
    }
    if (before != nullptr) {
        *before = former;
    }
    return 0;
}

int Handlers::change(int number, const Action* action, Action& former) {
    const Section section;
    const std::lock_guard guard(entries_lock);
    if (sigaction(number, nullptr, &former) != 0) {
        return -1; // there is no such signal
    }
    if ((former.sa_flags & SA_SIGINFO) != 0 && former.sa_sigaction == on_signal) {
        former = read_entry(number);
    }
    if (action == nullptr) {
        return 0;
    }
    Action wanted = *action;
    if (names_function(wanted)) {
        set_entry(number, wanted); // before the kernel calls for it
        wanted.sa_sigaction = on_signal;
        wanted.sa_flags =
            (wanted.sa_flags & ~(SA_NODEFER | static_cast<int>(SA_RESETHAND))) | SA_SIGINFO;
    }
    if (sigaction(number, &wanted, nullptr) != 0) {
        return -1; // SIGKILL, SIGSTOP: nobody calls for those
    }
    if (!names_function(*action)) {
        set_entry(number, *action);
    }
    return 0;
}

} // namespace warren::fibre
