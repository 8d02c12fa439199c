// Signals that tell of descriptors which are ready (F_SETOWN and O_ASYNC): a rank that has its
// process as the owner of a descriptor means itself. The kernel's owner is then the rank's first
// thread; for fibres it is the router (rank_timers.hpp), with a signal that names the descriptor.
// (SIGURG, which can't, comes to no fibre.)
//
// Thread rule: any thread; take_of_descriptor in the router.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads; whether ranks are fibres.
void prepare_descriptor_signals(bool fibres);

// fcntl, of the kernel's descriptors.
int control_descriptor(int descriptor, int command, void* argument);
// ioctl, likewise.
int control_device(int descriptor, unsigned long request, void* argument);

// Whether it is such a signal for a fibre, of this rank, which gets what its program has asked for.
bool take_of_descriptor(siginfo_t& information, std::uint32_t& rank);

// Replacements for the C library's functions, for threads.
std::span<const warren_image_binding> descriptor_signal_bindings();

} // namespace warren::launch
