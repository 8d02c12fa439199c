// Timers: when parked fibres are to go on by themselves. Entries of fibres that have been woken
// since stay until their time, and mean nothing then.
// Thread rule: any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

#include "runtime/fibres/fibre.hpp"

namespace warren::fibre {

inline timespec time_of(std::uint64_t ns) {
    return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
            .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
}

class Timers {
  public:
    struct Entry {
        std::uint64_t time_ns; // of the monotonic clock
        Fibre* fibre;
        std::uint64_t park;
    };

    void add(const Entry& entry) {
        const std::lock_guard guard(lock_);
        heap_.push_back(entry);
        std::push_heap(heap_.begin(), heap_.end(), later);
        earliest_.store(heap_.front().time_ns, std::memory_order_relaxed);
    }

    // UINT64_MAX: there is none.
    std::uint64_t earliest() const { return earliest_.load(std::memory_order_relaxed); }

    // Takes one whose time has come.
    bool take(std::uint64_t now_ns, Entry& entry) {
        const std::lock_guard guard(lock_);
        if (heap_.empty() || heap_.front().time_ns > now_ns) {
            return false;
        }
        entry = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), later);
        heap_.pop_back();
        earliest_.store(heap_.empty() ? UINT64_MAX : heap_.front().time_ns,
                        std::memory_order_relaxed);
        return true;
    }

  private:
    static bool later(const Entry& a, const Entry& b) { return a.time_ns > b.time_ns; }

    SpinLock lock_;
    std::vector<Entry> heap_; // the earliest first
    std::atomic<std::uint64_t> earliest_{UINT64_MAX};
};

} // namespace warren::fibre
