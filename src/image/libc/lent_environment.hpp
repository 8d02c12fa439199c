// While it lives, the process's environment is the calling image's: around functions of the C
// library that look into it themselves (getdate, wordexp, catopen). What such a function sets is
// the image's.
//
// Thread rule: one at a time in the process; a lock sees to it. Others that ask the process's
// environment meanwhile, which programs don't, see the image's.
#pragma once

#include "image/libc/state.hpp"

namespace warren::image::libc {

class LentEnvironment {
  public:
    LentEnvironment();
    LentEnvironment(const LentEnvironment&) = delete;
    LentEnvironment& operator=(const LentEnvironment&) = delete;
    ~LentEnvironment();

  private:
    char** lent_;
    char** former_;
};

// In a child of fork: another thread may have had the lock.
void renew_environment_lock();

} // namespace warren::image::libc
