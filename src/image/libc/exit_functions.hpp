// ExitFunctions: what an image wants called when it ends: atexit, on_exit, destructors of static
// objects; and, apart, at_quick_exit.
//
// Thread rule: any thread of the image. Functions are called without the lock, so they may add
// others, which are called next, as in a process.
#pragma once

#include <mutex>
#include <vector>

namespace warren::image {

struct ExitFunction {
    void (*plain)(void*) = nullptr;            // __cxa_atexit, atexit
    void (*with_status)(int, void*) = nullptr; // on_exit
    void* argument = nullptr;
    void* module = nullptr; // an address in the module that it goes with, or null
};

class ExitFunctions {
  public:
    void add(const ExitFunction& function);
    // Calls and forgets all, the last added first.
    void run(int status);
    // Runs those whose module's address lies within [start, end).
    void run_of(const void* start, const void* end);

  private:
    std::mutex lock_;
    std::vector<ExitFunction> functions_;
};

} // namespace warren::image
