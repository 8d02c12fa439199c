// Local sockets by which processes of one user and one node find each other: of the abstract kind,
// which have a name in the kernel but none in a file system, and end with their last user.
//
// Any user may connect to such a socket, so both sides ask the kernel for the other's user
// (is_own_user) before they believe anything. Thread rule: plain functions.
#pragma once

#include <string>

#include "base/error.hpp"
#include "mpi/job/world_identity.hpp"

namespace warren::node {

// The names of a process's socket, and of the socket by which its mpiexec takes requests.
std::string socket_of(const ProcessName& process);
std::string launcher_socket_of(std::uint64_t world);
// How the names of a world's ports begin (mpi/entry/ports.hpp).
std::string port_name_start(std::uint64_t world);

// A socket of this type (SOCK_STREAM, SOCK_SEQPACKET) that takes connections under the name, or
// only keeps it from others (`backlog` 0). Not blocking, closed by exec. -1 with errno.
int listen_at(const std::string& name, int type, int backlog);
// A connection to it, likewise; ECONNREFUSED: there is none, EPERM: it is another user's, EAGAIN:
// its queue is full.
int connect_to(const std::string& name, int type);
// As above; waits up to that long while the queue is full, which many may fill at once.
int connect_patiently(const std::string& name, int type, int patience_ms);
// Takes a connection of this user's; those of others are closed. -1 with errno; EAGAIN: there is
// none, or so many of others that this one looks again later.
int accept_own(int listener);
// Whether an error says that this process or the node has no descriptor, or no memory, left.
bool lacks_descriptors(int reason);
// Says what an errno of these functions means, and a remedy.
std::string text_of_socket_error(int reason);
// Whether the process at the other end belongs to this process's user.
bool is_own_user(int connection);

} // namespace warren::node
