// Owners of the signals that timers of ranks cause: the kernel gives such a signal the owner's tag
// as its value, instead of the program's. While a signal of a timer is on its way to its rank, the
// timer's further ends count as overruns, as the kernel counts them.
//
// Thread rule: any thread; what says so, in signal handlers as well.
#pragma once

#include <csignal>
#include <cstdint>
#include <ctime>

namespace warren::launch {

// Once, before there are other threads.
void prepare_owners(std::uint32_t ranks);

// A rank's alarm has an owner from the start.
sigval tag_of_alarm(std::uint32_t rank);
// Makes an owner for a timer. The caller has signals blocked. False: there is no room.
bool make_owner(std::uint32_t rank, const sigevent& event, sigval& tag);
// The timer has been made; null: it hasn't.
void note_timer(sigval tag, const timer_t* timer);
// The rank has deleted it. A signal of it that is on its way arrives.
void forget_timer(std::uint32_t rank, timer_t timer);
// Whether a timer runs, of which a signal will come.
bool a_timer_runs();
// The rank has ended: its timers are deleted, and signals that come yet are dropped.
void end_owners(std::uint32_t rank);

// Signals of nobody are to be dropped: their rank has ended, or they are overruns.
inline constexpr std::uint32_t nobody = UINT32_MAX - 1;
// The rank to which a signal from the kernel belongs that a timer of a rank's has caused, which
// gets the number that its program expects; no_rank: none. In signal handlers.
std::uint32_t owner_of_signal(siginfo_t& information);
// Whether it is a timer's that has an owner, or has had one.
bool has_owner(const siginfo_t& information);
// The program gets this signal now, or never: it has the program's value, and further ones may
// come. In signal handlers.
void note_taken(siginfo_t& information);
// The last signal of a timer that the program has got had these; -1: it is no timer of the rank's.
// In signal handlers.
int overruns_of(std::uint32_t rank, timer_t timer);

} // namespace warren::launch
