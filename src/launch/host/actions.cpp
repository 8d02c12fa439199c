#include "launch/host/actions.hpp"

#include <cstdlib>

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

bool is_handler(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool is_ignored(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

void run_handler(struct sigaction& action, int number, siginfo_t* information, void* context) {
    const struct sigaction own = action;
    if ((own.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
        action = {};
    }
    sigset_t blocked = own.sa_mask;
    if ((own.sa_flags & SA_NODEFER) == 0) {
        sigaddset(&blocked, number);
    }
    sigset_t former;
    pthread_sigmask(SIG_BLOCK, &blocked, &former);
    if ((own.sa_flags & SA_NODEFER) != 0) {
        sigset_t itself;
        sigemptyset(&itself);
        sigaddset(&itself, number);
        pthread_sigmask(SIG_UNBLOCK, &itself, nullptr);
    }
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
