// The request by which a rank has a launcher start processes, and how the two talk.
//
// A rank connects to its mpiexec (launcher_socket_of) and sends one packet: the words of a command
// line of mpiexec, each with a final 0, the first of which is the port where the spawned world is
// to connect. mpiexec starts another mpiexec with them, to which it leaves the connection. That one
// writes why it can't start the processes, if so, and closes the connection at its end. A rank
// without an mpiexec starts one itself, which ends its job when the connection closes before the
// rank has released it.
// Thread rule: constants and plain values.
#pragma once

#include <cstddef>

namespace warren::node {

// Words and their final zeros: what a packet holds under the kernel's default limits.
inline constexpr std::size_t spawn_request_limit = 128 * 1024;

// Bytes that the rank sends thereafter.
inline constexpr char spawn_connected = 'c'; // the spawned world has connected
inline constexpr char spawn_released = 'r';  // the rank has left MPI: the job goes on alone

// Variables of a spawned world's mpiexec, which takes them out of its environment: the connection's
// number, a space, and 1 if its close ends the job, else 0; ranks that use the processors already.
inline constexpr const char* spawn_variable = "WARREN_SPAWN";
inline constexpr const char* parent_variable = "WARREN_PARENT"; // the port

// An argument of a program begins with it where mpiexec would take it for the end of the arguments.
inline constexpr char spawn_escape = '\1';

} // namespace warren::node
