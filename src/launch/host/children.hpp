// Children of ranks: a rank's wait calls report its own children only, never another rank's.
//
// The kernel knows which thread made a child. Fibres move among kernel threads, so the host records
// their children when they are made, and a fibre that waits lets other fibres run. Thread rule: any
// thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>
#include <sys/types.h>

#include "warren/image.h"

namespace warren::launch {

// Finds a child of a fibre that has ended and of which no signal has told, and describes its end as
// a signal does. False: there is none, or the fibre waits for one, and looks itself. Both of these
// in signal handlers as well.
bool find_ended_child(std::uint32_t rank, siginfo_t& information);
// Once its handler has run, or is about to run in the fibre itself: waits of the fibre go on.
void end_of_child_is_handled(std::uint32_t rank);
// Or is being made.
bool may_be_child_of_fibre(pid_t pid);
// The calling fibre gets the signals of all such children.
void signal_ended_children();

// Replacements for the C library's wait functions, for thread ranks.
std::span<const warren_image_binding> child_bindings();

// Replacements for fibres: the wait functions and those that make children. Call prepare_children
// once, before there are ranks.
void prepare_children(std::uint32_t ranks);
std::span<const warren_image_binding> fibre_child_bindings();

} // namespace warren::launch
