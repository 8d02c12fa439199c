#include "launch/host/signals_to_parent.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/host/rank_timers.hpp"

namespace warren::launch {

namespace {

// Shared with all children. Whoever has sent a signal and then finds that as many have been brought
// as are sent knows that its own is among them: the router takes them in the order of their coming.
struct Counts {
    std::atomic<std::uint32_t> sent{0};
    std::atomic<std::uint32_t> brought{0}; // a futex
};

struct ToParent {
    pid_t process = 0;
    Counts* counts = nullptr; // null: the system had no memory
};

ToParent& to_parent() {
    static ToParent& only = *new ToParent; // outlives everything
    return only;
}

// The signal's number and code are in a field that the system leaves 0, and its user is the rank.
constexpr int mark = 0x43480000;
constexpr int mark_mask = ~0xffff;
constexpr int number_shift = 8;
constexpr int byte = 0xff;

// A process that doesn't bring it within this time is stopped, or about to end.
constexpr long longest_wait_ms = 1000;

std::uint32_t* word_of(std::atomic<std::uint32_t>& count) {
    return reinterpret_cast<std::uint32_t*>(&count);
}

void wait_until_brought(Counts& counts) {
    const std::uint32_t sent = counts.sent.load(std::memory_order_seq_cst);
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (long ms = 0; ms < longest_wait_ms; ++ms) {
        const std::uint32_t brought = counts.brought.load(std::memory_order_seq_cst);
        if (static_cast<std::int32_t>(brought - sent) >= 0) {
            return;
        }
        syscall(SYS_futex, word_of(counts.brought), FUTEX_WAIT, brought, &pause, nullptr, 0);
    }
}

} // namespace

void prepare_signals_to_parent() {
    to_parent().process = getpid();
    void* memory =
        mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    to_parent().counts = memory != MAP_FAILED ? new (memory) Counts : nullptr;
}

int send_to_parent(std::uint32_t rank, const siginfo_t& information) {
    const ToParent& own = to_parent();
    const pid_t router = router_of_signals();
    if (own.counts == nullptr || router == 0) {
        return kill(own.process, information.si_signo);
    }
    const int error = errno;
    siginfo_t copy = information;
    copy.si_errno = mark | information.si_signo << number_shift | (information.si_code & byte);
    copy.si_code = SI_QUEUE;
    copy.si_uid = rank;
    own.counts->sent.fetch_add(1, std::memory_order_seq_cst);
    if (syscall(SYS_rt_tgsigqueueinfo, own.process, router, signal_of_router, &copy) != 0) {
        own.counts->sent.fetch_sub(1, std::memory_order_seq_cst);
        return -1;
    }
    wait_until_brought(*own.counts);
    errno = error;
    return 0;
}

bool take_from_child(siginfo_t& information, std::uint32_t& rank) {
    if (information.si_code != SI_QUEUE || (information.si_errno & mark_mask) != mark) {
        return false;
    }
    rank = information.si_uid;
    information.si_signo = information.si_errno >> number_shift & byte;
    information.si_code = (information.si_errno & byte) == (SI_QUEUE & byte) ? SI_QUEUE : SI_USER;
    information.si_errno = 0;
    information.si_uid = getuid();
    return information.si_signo > 0 && information.si_signo < NSIG;
}

void note_brought() {
    Counts& counts = *to_parent().counts;
    counts.brought.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, word_of(counts.brought), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace warren::launch
