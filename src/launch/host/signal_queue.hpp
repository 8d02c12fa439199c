// SignalQueue: signals of a rank that are pending, in the order in which they have come.
//
// It begins with room in itself and gets more from the system, so it may grow in signal handlers.
// Thread rule: whoever holds the rank's signals. Invariant: all zeros is an empty queue, whose
// pages take no memory.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>

namespace warren::launch {

using Mask = std::uint64_t; // bit n - 1: signal n

constexpr Mask bit(int number) {
    return Mask{1} << (number - 1);
}

// Who takes signals: what raise and pthread_kill have sent to a fibre is for that alone.
enum class Taker : std::uint8_t { first_thread, other_thread };

class SignalQueue {
  public:
    // The queue keeps one of a standard signal for the rank, one for its first thread alone, and
    // one of each timer; it drops more of the same. False: the queue has as many as a process may
    // have (RLIMIT_SIGPENDING), or the system has no memory.
    bool put(const siginfo_t& information);
    // Takes one of the mask: what is for the taker alone, else the lowest number, the first that
    // has come of those. False: there is none for the taker.
    bool take(Mask mask, siginfo_t& taken, Taker taker);
    // Numbers that are in it.
    Mask numbers() const { return numbers_; }
    // Those of signals that are for the taker.
    Mask numbers_for(Taker taker);
    std::uint32_t size() const { return size_; }

  private:
    static constexpr std::uint32_t small_room = 64;

    siginfo_t* all() { return more_ != nullptr ? more_ : few_; }
    std::uint32_t room() const { return more_ != nullptr ? room_ : small_room; }
    bool is_there(const siginfo_t& information);
    // Room for one more at the end.
    bool make_room();

    Mask numbers_;
    std::uint32_t begin_; // of those that are there
    std::uint32_t size_;
    std::uint32_t counts_[NSIG]; // by number
    siginfo_t* more_;            // null: few_ has them
    std::uint32_t room_;
    siginfo_t few_[small_room];
};

} // namespace warren::launch
