// ForkHandlers: what an image wants called when it forks (pthread_atfork). The C library would call
// the handlers of all images.
//
// Thread rule: any thread of the image. Handlers are called without the lock, so they may add
// others, which the next fork calls.
#pragma once

#include <mutex>
#include <vector>

namespace warren::image {

struct ForkHandler {
    void (*prepare)();
    void (*parent)();
    void (*child)();
    const void* module; // an address in the module that it goes with, or null
};

class ForkHandlers {
  public:
    void add(const ForkHandler& handler);
    // Forgets those whose module's address lies within [start, end).
    void remove_of(const void* start, const void* end);
    // The handlers of now, in the order in which they came.
    std::vector<ForkHandler> all();
    // In a child of fork, where another thread may have held the lock.
    void renew_lock();

  private:
    std::mutex lock_;
    std::vector<ForkHandler> handlers_;
};

} // namespace warren::image
