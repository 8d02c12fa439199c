// Section: what of the scheduler no handler of a signal comes amid.
//
// A signal may come at any instruction: while its thread holds a lock of this room, has a list half
// changed, is between two fibres, or places ranks. A handler of a program that ran there and slept,
// gave way, woke another fibre or forked would enter the scheduler a second time. So all of that is
// done in sections, and handlers (handlers.hpp) come before or behind one.
//
// Invariants
//  1. In a section is whoever may hold a lock of this room, changes a queue, a bucket, a gathering,
//     the timers or a place of object waits, balances, or switches: a fibre, or another thread,
//     from where it calls until it is back; a worker's own context always, but while it sleeps.
//     The monitor blocks all signals.
//  2. A signal that comes amid a section is put off: it is sent to the same kernel thread again,
//     which blocks all signals from then on. It is let come by who ends the outermost section
//     there, be it another fibre by then, or by the worker before it sleeps. So none is lost, and
//     none waits for longer than a section takes, which waits for nothing but who has a lock.
//  3. So a handler finds the scheduler as any call finds it, and may do what a thread may: what it
//     wakes is woken, and its fork has a child that is in no section. But while it runs its thread
//     is no fibre, as the kernel keeps what goes back at its end (the mask of signals, the
//     alternate stack) by kernel thread: its waits and sleeps are the kernel's and keep the worker,
//     for which a spare one stands in, and instead of giving way it sleeps for a moment.
//     (Nobody stands in for a worker without a fibre: what becomes ready for it while a handler
//     runs there is taken by others that may, or waits till that has ended.)
//  4. One that leaves by siglongjmp is over when what it has left calls the scheduler.
// What this doesn't see: handlers set by a program's own system calls, without the C library, or by
// the C library's own code, as that of popen and system. What it changes: of real-time signals that
// are sent one behind another to one thread, those that are put off may come behind later ones.
// Thread rule: a thread's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace warren::fibre {

struct Fibre;
struct Worker;

// Of a kernel thread that has put signals off; that one's own.
struct HeldSignals {
    std::atomic<bool> are_held{false};
    // As the kernel has it: of those that are blocked anyway; all, where none is held.
    std::atomic<std::uint64_t> mask{~std::uint64_t{0}};
};

// What each thread, fibre or not, knows of itself.
struct Here {
    Fibre* fibre = nullptr;   // that it is; null: none, or a handler of a signal runs
    bool is_inside = false;   // a section
    Fibre* own = nullptr;     // that it is, also then
    Worker* worker = nullptr; // whose own context it is
    HeldSignals held;         // of one that is neither
    // Of the outermost handler that runs: what it has of the stack, and its mark there.
    std::uintptr_t handler_begin = 0;
    std::uintptr_t handler_end = 0;
    const std::uintptr_t* handler_mark = nullptr;
    std::uint64_t handler_mask = 0; // what its end brings back
};
[[gnu::tls_model("initial-exec")]] constinit inline thread_local Here here;

class Section {
  public:
    Section() : before_(std::exchange(here.is_inside, true)) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Section() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        here.is_inside = before_;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        // (Of this thread what it has itself stored; of others, it doesn't matter.)
        if (holding.load(std::memory_order_relaxed) != 0 && !before_) [[unlikely]] {
            let_come();
        }
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    static bool has_caller() { return here.is_inside; }

    // The calling thread is in none from now on.
    static void leave() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        here.is_inside = false;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (holding.load(std::memory_order_relaxed) != 0) [[unlikely]] {
            let_come();
        }
    }

    // Lives while what is in a section lets handlers come.
    class Gap {
      public:
        Gap() { leave(); }
        ~Gap() {
            here.is_inside = true;
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        Gap(const Gap&) = delete;
        Gap& operator=(const Gap&) = delete;
    };

  private:
    friend class Handlers;

    // How many kernel threads hold signals.
    static constinit inline std::atomic<std::uint32_t> holding{0};

    // What this kernel thread holds comes.
    [[gnu::noinline]] static void let_come();

    const bool before_;
};

} // namespace warren::fibre
