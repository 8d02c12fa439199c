// Holds one of the platform's locks for a scope.
#pragma once

#include "analyser/counts/platform.hpp"

namespace warren::locality::counts {

class Guard {
  public:
    explicit Guard(void* lock) : lock_(lock) { platform::lock(lock_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { platform::unlock(lock_); }

  private:
    void* lock_;
};

} // namespace warren::locality::counts
