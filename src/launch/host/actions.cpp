#include "launch/host/actions.hpp"

#include <cstdint>
#include <cstdlib>

#include "runtime/fibres/api.hpp"

namespace warren::launch {

void Actions::prepare(std::uint32_t ranks) {
    ranks_ = ranks;
    // Zeros of the system's, of which ranks use few.
    all_.reset(static_cast<struct sigaction*>(
        std::calloc(ranks * std::size_t{NSIG}, sizeof(struct sigaction))));
}

Actions& actions() {
    static Actions& only = *new Actions;
    return only;
}

// Both kinds of handlers have one place, where the kernel looks for SIG_DFL and SIG_IGN, whatever
// the flags say.
bool is_handler(const struct sigaction& action) {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

bool is_ignored(const struct sigaction& action) {
    return action.sa_handler == SIG_IGN;
}

namespace {

// The innermost handler. Who left it by siglongjmp is above on the stack, which grows downwards, or
// has the signal unblocked again. Fibres have their own.
struct RunningHandler {
    std::uintptr_t frame = 0; // its beginning, on the stack of what it has interrupted; 0: none
    int number = 0;           // blocked while it runs; 0: not so
};
thread_local RunningHandler running_handler;
thread_local std::uint32_t handlers_run = 0;

bool is_blocked(int number) {
    sigset_t set;
    return pthread_sigmask(SIG_BLOCK, nullptr, &set) == 0 && sigismember(&set, number) == 1;
}

bool is_on_signal_stack() {
    stack_t stack{};
    return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

[[gnu::always_inline]] inline std::uintptr_t frame_address() {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

class InHandler {
  public:
    explicit InHandler(int number) : before_(running_handler) {
        if (warren_fibre_is_one()) {
            warren_fibre_stay(); // where its mask is
        }
        if (!is_on_signal_stack()) {
            running_handler = {.frame = frame_address(), .number = is_blocked(number) ? number : 0};
        }
    }
    ~InHandler() { running_handler = before_; }
    InHandler(const InHandler&) = delete;
    InHandler& operator=(const InHandler&) = delete;

  private:
    const RunningHandler before_;
};

} // namespace

bool is_in_handler() {
    if (running_handler.frame != 0 &&
        (frame_address() > running_handler.frame ||
         (running_handler.number != 0 && !is_blocked(running_handler.number)))) {
        running_handler = {};
    }
    return running_handler.frame != 0 || is_on_signal_stack();
}

std::uint32_t handlers_of_thread() {
    return handlers_run;
}

void note_unblocking() {
    if (running_handler.number != 0 && !is_blocked(running_handler.number)) {
        running_handler.number = 0;
    }
}

void run_handler(struct sigaction& action, int number, siginfo_t* information, void* context,
                 const sigset_t* interrupted) {
    const struct sigaction own = action;
    if ((own.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
        action.sa_handler = SIG_DFL; // and the flags stay
    }
    sigset_t former;
    pthread_sigmask(SIG_BLOCK, nullptr, &former);
    sigset_t its = interrupted != nullptr ? *interrupted : former;
    if ((own.sa_flags & SA_NODEFER) != 0) {
        sigdelset(&its, number);
    } else {
        sigaddset(&its, number);
    }
    sigorset(&its, &its, &own.sa_mask);
    pthread_sigmask(SIG_SETMASK, &its, nullptr);
    const InHandler in_handler(number);
    ++handlers_run;
    warren_fibre_note_handler((own.sa_flags & SA_RESTART) != 0);
    if ((own.sa_flags & SA_SIGINFO) != 0) {
        own.sa_sigaction(number, information, context);
    } else {
        own.sa_handler(number);
    }
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

void take_default(int number) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
}

} // namespace warren::launch
