// Holds a mutex that others hold for a tenth of a microsecond: to sleep and be woken takes ten
// times as long as to wait a little.
#pragma once

#include <mutex>

#include "base/futex.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

class ShortHold {
  public:
    explicit ShortHold(std::mutex& mutex) : mutex_(mutex) {
        for (int i = 0; i < short_hold_tries; ++i) {
            if (mutex_.try_lock()) {
                return;
            }
            spin_pause();
        }
        mutex_.lock();
    }
    ~ShortHold() { mutex_.unlock(); }
    ShortHold(const ShortHold&) = delete;
    ShortHold& operator=(const ShortHold&) = delete;

  private:
    std::mutex& mutex_;
};

} // namespace warren::memory
