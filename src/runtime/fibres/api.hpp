// Functions for fibres that libwarren.so offers to the host process (launch/host) and to the MPI
// library, which finds functions() by its name where a process has several ranks.
//
// Thread rule: that of Scheduler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/futex.hpp"
#include "runtime/balance/load_table.hpp"

namespace warren::fibre {

struct HostOptions {
    const int* processors; // one worker on each; -1: not bound
    std::uint32_t workers;
    std::uint32_t fibres;
    void (*begin_worker)();
    void (*interrupted)(); // in a fibre that has been (warren_fibre_interrupt)
    bool (*stays)();       // whether the calling fibre still has to (warren_fibre_stay)
    void (*stuck)();
    bool (*expects_signals)(); // which may resume a fibre
    void (*blocked)(std::uint32_t fibre);
    balance::LoadTable loads;
    bool steals;
    const char* balancer; // its name, and what Balancing wants to know; null: none
    std::uint64_t balance_period_ns;
    std::uint32_t balance_collectives;
    const std::uint32_t* distances; // of workers; null: unknown
    const char* balance_record;     // null: none
    void (*balance_record_failed)(int error);
    // Has fibres' memory follow them; null: nobody does.
    void (*placed)(const std::uint32_t* before, const std::uint32_t* now, std::uint32_t fibres);
};

} // namespace warren::fibre

extern "C" {
// Once, before the others. They return an errno.
void warren_fibre_prepare(const warren::fibre::HostOptions* options);
int warren_fibre_make(void* stack, std::size_t bytes, void (*function)(void*), void* argument);
int warren_fibre_start(void);
// The waits of the process; null: it has no fibres.
const warren::FibreFunctions* warren_fibre_functions(void);
// The calling fibre, if it is one, may go on elsewhere from here (warren/ranks.h).
void warren_fibre_point(void);
// The calling fibre's program has ended: its load is written down.
void warren_fibre_last_load(void);
// The calling fibre stays as it is for ever: its memory may be looked at.
[[noreturn]] void warren_fibre_end(void);
// Whether the calling thread is a fibre.
bool warren_fibre_is_one(void);
// Puts the calling fibre, if it is one, to sleep until then (monotonic clock). Returns whether it
// is one.
bool warren_fibre_sleep_until(std::uint64_t time_ns);
// Parks the calling fibre while the word has this value, but not beyond then. Who changes it tells
// the fibre, maybe in a signal handler.
void warren_fibre_wait_told(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                            std::uint64_t time_ns);
void warren_fibre_tell(std::atomic<std::uint32_t>& word);
// The kernel's number of the thread that runs the fibre at present; 0: none. In signal handlers,
// too.
int warren_fibre_thread(std::uint32_t fibre);
// Has the fibre call HostOptions::interrupted as soon as it can; what it waits in goes on later.
// Returns the kernel's number of another thread that runs it, and may do so for long; 0: none. In
// signal handlers, too.
int warren_fibre_interrupt(std::uint32_t fibre);
// Whether the calling thread is about to switch to another fibre, a worker without fibre, or in a
// wait for an object, which must not be left by a jump.
bool warren_fibre_is_switching(void);
// The calling fibre has changed what belongs to its kernel thread, such as the mask of signals. It
// stays there, and waits as a thread does, until HostOptions::stays says that it need not.
void warren_fibre_stay(void);
// A handler of a signal runs in the calling thread, installed with SA_RESTART or without.
void warren_fibre_note_handler(bool restarts);
}
