// Calls aside: from what inline code calls, in the middle of the program's own instructions, a
// function of any kind: the registers that counters.cpp does without, the vectors' and those of
// floating point, are kept for the program, and the function has a large stack.
//
// It is for what may be left out: while one thread is in it, others that ask are sent on. No signal
// is waited for and none is blocked. Thread rule: make() and forget() while there is one thread,
// run() by any.
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
