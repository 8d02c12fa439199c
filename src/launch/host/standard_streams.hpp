// The standard descriptors of ranks that are fibres: 0, 1 and 2 of their programs.
//
// The descriptors of a process are all its kernel threads', which fibres move among. So a rank's
// pipes keep the numbers that they have in the host, and the calls of its program that name 0, 1 or
// 2 get those instead: closing and duplicating here, all others in descriptor_calls.hpp. A child
// that a rank forks has them as 0, 1 and 2. All other descriptors, and the working directory, are
// all ranks'. Where descriptors are scarce, neighbours share their pipes; one that redirects its
// output gets places of its own. What a rank closes is never the host's, nor a file that its loader
// has read. (A library that nobody has loaded before, or that the system's loader loads, may be
// closed while it is being opened.)
//
// Thread rule: prepare_streams before there are ranks; close_streams by the rank's end.
#pragma once

#include <cstdint>
#include <span>
#include <spawn.h>

#include "launch/mpiexec/host_plan.hpp"
#include "warren/image.h"

namespace warren::launch {

void prepare_streams(const HostPlan& plan);

// The process's descriptor that the calling rank's program means by this number; -1: closed.
int real_descriptor(int descriptor);
// The file that is the rank's standard input at first.
int first_input(std::uint32_t rank);
// A child that is started by these actions has the calling rank's descriptors as 0, 1 and 2. An
// error number, or 0.
int add_own_streams(posix_spawn_file_actions_t* actions);
// The number by which the calling rank's program knows a descriptor of the process.
int number_of_descriptor(int descriptor);

// Replacements for the C library's functions.
std::span<const warren_image_binding> stream_bindings();

// The rank writes and reads no more: who reads its output sees the end of it.
void close_streams(std::uint32_t rank);

} // namespace warren::launch
