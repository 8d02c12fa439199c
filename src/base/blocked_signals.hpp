// No signal comes to the calling thread while one of these lives. A thread that is made meanwhile
// inherits the mask, so that handlers of the program never run in threads of the library.
// Thread rule: the thread that made it destroys it.
#pragma once

#include <csignal>

namespace warren {

class BlockedSignals {
  public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

  private:
    sigset_t before_;
};

} // namespace warren
