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

    // For a thread that goes to sleep: until when, to see to timers then. UINT64_MAX: another
    // thread wakes in time, or there is no timer. Each timer would wake all idle workers otherwise.
    std::uint64_t watch() {
        const std::uint64_t time_ns = earliest();
        std::uint64_t watched_ns = watched_.load(std::memory_order_relaxed);
        while (time_ns < watched_ns) {
            if (watched_.compare_exchange_weak(watched_ns, time_ns, std::memory_order_relaxed)) {
                return time_ns;
            }
        }
        return UINT64_MAX;
    }

    // The thread is awake. `time_ns` is what watch has returned.
    void end_watch(std::uint64_t time_ns) {
        watched_.compare_exchange_strong(time_ns, UINT64_MAX, std::memory_order_relaxed);
    }

    // No sleeping thread wakes in time for the earliest timer.
    bool are_unwatched() const { return earliest() < watched_.load(std::memory_order_relaxed); }

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
    // The earliest time at which a sleeping thread wakes by itself; UINT64_MAX: none does. (A later
    // one may wake as well. Who ends its watch may make others watch the same time again.)
    std::atomic<std::uint64_t> watched_{UINT64_MAX};
};

} // namespace warren::fibre
