#include "launch/host/passed_signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace warren::launch {

namespace {

// The reason and the signal's own code are in a field that the system leaves 0, because the system
// lets threads send each other some codes only.
constexpr int mark = 0x57410000;
constexpr int reason_step = 0x10000;
constexpr int reason_mask = 0x70000;
constexpr int code_mask = 0xffff;

} // namespace

pid_t own_thread() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

bool pass_on(pid_t thread, Passed why, const siginfo_t& information) {
    siginfo_t copy = information;
    copy.si_errno =
        (mark + static_cast<int>(why) * reason_step) | (information.si_code & code_mask);
    copy.si_code = SI_QUEUE;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, information.si_signo, &copy) == 0;
}

Passed take_passed(siginfo_t& information) {
    const int why = (information.si_errno & ~code_mask) - mark;
    if (information.si_code != SI_QUEUE || why <= 0 || (why & ~reason_mask) != 0) {
        return Passed::none;
    }
    information.si_code = static_cast<std::int16_t>(information.si_errno & code_mask);
    information.si_errno = 0;
    return static_cast<Passed>(why / reason_step);
}

} // namespace warren::launch
