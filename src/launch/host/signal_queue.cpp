#include "launch/host/signal_queue.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <sys/resource.h>

namespace warren::launch {

namespace {

bool is_timers(const siginfo_t& one) {
    return one.si_code == SI_TIMER;
}

bool is_for(Taker taker, const siginfo_t& one) {
    return taker == Taker::first_thread || one.si_code != SI_TKILL;
}

// A standard signal is pending once for the rank and once for its first thread, but each timer has
// its own.
bool is_same(const siginfo_t& one, const siginfo_t& other) {
    if (one.si_signo != other.si_signo) {
        return false;
    }
    if (is_timers(one) || is_timers(other)) {
        return is_timers(one) && is_timers(other) && one.si_timerid == other.si_timerid;
    }
    return one.si_signo < __SIGRTMIN && (one.si_code == SI_TKILL) == (other.si_code == SI_TKILL);
}

// A thread's own signals come first, as in the kernel, and then those with the lowest number.
bool comes_before(const siginfo_t& one, const siginfo_t& other) {
    const bool is_own = one.si_code == SI_TKILL;
    return is_own != (other.si_code == SI_TKILL) ? is_own : one.si_signo < other.si_signo;
}

// Standard signals and timers' are few, and none gets lost in a process either.
bool is_limited(const siginfo_t& one) {
    return one.si_signo >= __SIGRTMIN && !is_timers(one);
}

} // namespace

bool SignalQueue::is_there(const siginfo_t& information) {
    const siginfo_t* const first = all() + begin_;
    return counts_[information.si_signo] != 0 &&
           (information.si_signo < __SIGRTMIN || is_timers(information)) &&
           std::any_of(first, first + size_,
                       [&](const siginfo_t& one) { return is_same(one, information); });
}

bool SignalQueue::make_room() {
    if (begin_ + size_ < room()) {
        return true;
    }
    siginfo_t* const from = all();
    if (begin_ >= room() / 2) {
        std::copy(from + begin_, from + begin_ + size_, from);
        begin_ = 0;
        return true;
    }
    const std::uint32_t room_wanted = 2 * room();
    void* memory = mmap(nullptr, room_wanted * sizeof(siginfo_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    auto* const to = static_cast<siginfo_t*>(memory);
    std::copy(from + begin_, from + begin_ + size_, to);
    if (more_ != nullptr) {
        munmap(more_, room_ * sizeof(siginfo_t));
    }
    more_ = to;
    room_ = room_wanted;
    begin_ = 0;
    return true;
}

bool SignalQueue::put(const siginfo_t& information) {
    if (is_there(information)) {
        return true;
    }
    rlimit limit{};
    if (is_limited(information) && getrlimit(RLIMIT_SIGPENDING, &limit) == 0 &&
        size_ >= limit.rlim_cur) {
        // A process knows then only that there are some of those that kill() has sent.
        return information.si_code == SI_USER && counts_[information.si_signo] != 0;
    }
    if (!make_room()) {
        return false;
    }
    all()[begin_ + size_] = information;
    ++size_;
    ++counts_[information.si_signo];
    numbers_ |= bit(information.si_signo);
    return true;
}

Mask SignalQueue::numbers_for(Taker taker) {
    Mask found = 0;
    const siginfo_t* const first = all() + begin_;
    for (const siginfo_t* one = first; one != first + size_; ++one) {
        found |= is_for(taker, *one) ? bit(one->si_signo) : 0;
    }
    return found;
}

bool SignalQueue::take(Mask mask, siginfo_t& taken, Taker taker) {
    const Mask of_taker = taker == Taker::first_thread ? numbers_ : numbers_for(taker);
    const Mask wanted = of_taker & mask;
    if (wanted == 0) {
        return false;
    }
    siginfo_t* const first = all() + begin_;
    siginfo_t* found = nullptr;
    for (siginfo_t* one = first; one != first + size_; ++one) {
        if ((wanted & bit(one->si_signo)) != 0 && is_for(taker, *one) &&
            (found == nullptr || comes_before(*one, *found))) {
            found = one;
        }
    }
    const int number = found->si_signo;
    taken = *found;
    std::copy_backward(first, found, found + 1);
    ++begin_;
    --size_;
    if (--counts_[number] == 0) {
        numbers_ &= ~bit(number);
    }
    return true;
}

} // namespace warren::launch
