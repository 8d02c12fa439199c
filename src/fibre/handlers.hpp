// Handlers: of signals, as programs set them where ranks are fibres. The kernel calls a function of
// this library, which puts the signal off if it comes amid a section (section.hpp), and else runs
// the handler, as no fibre.
//
// What the program asks for beside (masks, alternate stacks, restarted calls) the kernel does, but
// for SA_RESETHAND and SA_NODEFER: those count when the handler runs.
// Thread rule: any thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <ucontext.h>

#include "fibre/section.hpp"

namespace warren::fibre {

class Handlers {
  public:
    using Action = struct sigaction;

    // sigaction of programs, also in a child of fork. Returns 0, or -1 with errno set.
    static int set(int number, const Action* action, Action* before);

    // By a handler that the kernel has called for a signal, first: true: it has come amid a section
    // and comes again behind it, when the handler has returned, which does nothing more. What the
    // section's own instructions have raised is not put off.
    static bool put_off(int number, siginfo_t& about, ucontext_t& context);

    // Calls a program's handler, as no fibre.
    static void run(const Action& action, int number, siginfo_t* about, ucontext_t* context);

  private:
    friend class Section;

    static int change(int number, const Action* action, Action& former);
    static void on_signal(int number, siginfo_t* about, void* context);
    static HeldSignals& held_here();
};

} // namespace warren::fibre
