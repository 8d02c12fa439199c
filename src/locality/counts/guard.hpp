// Holds one of DynamoRIO's locks for a scope.
#pragma once

#include "dr_api.h"

namespace warren::locality::counts {

class Guard {
  public:
    explicit Guard(void* lock) : lock_(lock) { dr_mutex_lock(lock_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { dr_mutex_unlock(lock_); }

  private:
    void* lock_;
};

} // namespace warren::locality::counts
