// Calls aside: code called from the middle of the program's instructions calls any function here.
// The vector and floating-point registers, which counters.cpp does without, are saved for the
// program, and the function gets a large stack.
//
// Only optional work is done aside: while one thread is in it, run() refuses others. No signal is
// waited for and none is blocked. Thread rule: make() and forget() while there is one thread, run()
// by any.
#pragma once

#include <cstddef>

namespace warren::locality::counts {

class Aside {
  public:
    bool make(); // false: the processor or the kernel has not what it needs
    // False, with nothing done: another thread is in it.
    bool run(void (*function)(void*), void* argument);
    // In a forked child, whose parent's other threads may have been in it.
    void forget() { busy_ = false; }

  private:
    char* memory_ = nullptr; // the stack, and behind it the area for registers
    bool busy_ = false;
};

} // namespace warren::locality::counts
