#include "launch/host/signals_to_parent.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/host/rank_timers.hpp"

namespace warren::launch {

namespace {

// How many signals of a sender's slot the router has brought: shared with all children, and a
// futex. A sender waits for a change, so that one which dies or jumps away as it sends leaves
// nothing to wait for. (Two senders of the same slot at once may each take the other's signal for
// their own.)
using Slot = std::atomic<std::uint32_t>;
constexpr std::uint32_t slot_count = 1024;

struct ToParent {
    pid_t process = 0;
    Slot* slots = nullptr; // null: the system had no memory
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

Slot& slot_of(pid_t sender) {
    return to_parent().slots[static_cast<std::uint32_t>(sender) % slot_count];
}

std::uint32_t* word_of(Slot& slot) {
    return reinterpret_cast<std::uint32_t*>(&slot);
}

void wait_until_brought(Slot& slot, std::uint32_t before) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (long ms = 0; ms < longest_wait_ms && slot.load(std::memory_order_seq_cst) == before;
         ++ms) {
        syscall(SYS_futex, word_of(slot), FUTEX_WAIT, before, &pause, nullptr, 0);
    }
}

} // namespace

void prepare_signals_to_parent() {
    to_parent().process = getpid();
    void* memory = mmap(nullptr, slot_count * sizeof(Slot), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    to_parent().slots = memory != MAP_FAILED ? static_cast<Slot*>(memory) : nullptr; // zeros
}

int send_to_parent(std::uint32_t rank, const siginfo_t& information) {
    const ToParent& own = to_parent();
    const pid_t router = router_of_signals();
    if (own.slots == nullptr || router == 0) {
        return kill(own.process, information.si_signo);
    }
    const int error = errno;
    siginfo_t copy = information;
    copy.si_errno = mark | information.si_signo << number_shift | (information.si_code & byte);
    copy.si_code = SI_QUEUE;
    copy.si_uid = rank;
    Slot& slot = slot_of(information.si_pid);
    const std::uint32_t before = slot.load(std::memory_order_seq_cst);
    if (syscall(SYS_rt_tgsigqueueinfo, own.process, router, signal_of_router, &copy) != 0) {
        return -1;
    }
    wait_until_brought(slot, before);
    errno = error;
    return 0;
}

bool take_from_child(siginfo_t& information, std::uint32_t& rank) {
    if (to_parent().slots == nullptr || information.si_code != SI_QUEUE ||
        (information.si_errno & mark_mask) != mark) {
        return false;
    }
    rank = information.si_uid;
    information.si_signo = information.si_errno >> number_shift & byte;
    information.si_code = (information.si_errno & byte) == (SI_QUEUE & byte) ? SI_QUEUE : SI_USER;
    information.si_errno = 0;
    information.si_uid = getuid();
    return information.si_signo > 0 && information.si_signo < NSIG;
}

void note_brought(pid_t sender) {
    Slot& slot = slot_of(sender);
    slot.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, word_of(slot), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace warren::launch
