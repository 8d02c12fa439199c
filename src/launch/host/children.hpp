// Children of ranks: a rank's wait calls report its own children only, never another rank's.
//
// The kernel knows which thread made a child, but fibres move among kernel threads, and a process's
// threads wait for each other's children. So the host records children when they are made. A fibre
// that waits lets other fibres run. Thread rule: any thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>
#include <sys/types.h>

#include "warren/image.h"

namespace warren::launch {

// Finds a child of the rank that has ended and of which no signal has told, and describes its end
// as a signal does. False: there is none, or a fibre waits for one, and looks itself. All of these
// in signal handlers as well.
bool find_ended_child(std::uint32_t rank, siginfo_t& information);
// Once its handler has run, is kept for the rank, or is about to run in the rank's own thread:
// waits of the rank go on, and children that nobody waits for pass.
void end_of_child_is_handled(std::uint32_t rank);
// Finds a child of the rank that has been stopped or continued, of which no signal has told, as
// find_ended_child does.
bool find_stopped_child(std::uint32_t rank, siginfo_t& information);
// No signal is going to tell of those that there are.
void skip_stops(std::uint32_t rank);
// Whether the rank wants signals of that.
bool wants_stops(std::uint32_t rank);
// Whether a child is being made that is in no list yet.
bool is_child_being_made();
// Its parent; no_rank: it is in no list.
std::uint32_t rank_of_child(pid_t pid);
// Whose child has sent a signal; no_rank: nobody's. In signal handlers.
std::uint32_t rank_of_sender(pid_t pid);
// The calling rank gets the signals of all such children.
void signal_ended_children();

// A child is about to be made. It is made, or (-1) not: returns that.
void begin_child();
pid_t note_child(pid_t pid);
// waitpid for the child of system and its kin, also when the rank wants to hear of no ends.
pid_t wait_for_command(pid_t pid, int* status, int options);

// Once, before there are ranks.
void prepare_children(std::uint32_t ranks, bool fibres);
// Replacements for the C library's functions that wait for children.
std::span<const warren_image_binding> child_bindings();

} // namespace warren::launch
