// Other worlds: what the communicators of processes that were started apart have in common: names
// of their members, and an intercommunicator of two worlds (MPI chapter 11).
//
// Thread rule: under the rank's lock.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/ports.hpp"
#include "mpi/job/world_identity.hpp"
#include "mpi/message/other_worlds.hpp"

namespace warren::mpi {

// Names of processes by their endpoints, as they travel; and back. Error: this rank has no way to
// other worlds.
std::vector<node::ProcessName> names_of(const Context& context,
                                        const std::vector<std::uint32_t>& endpoints);
Error endpoints_of(Context& context, const std::vector<node::ProcessName>& names,
                   std::vector<std::uint32_t>& endpoints);

// A communicator has been made, or ends: its members in other worlds are connected by it.
void retain_members(Context& context, const comm::Communicator& made);
void release_members(Context& context, const comm::Communicator& ended);

// Where the root of one side meets the root of the other: the endpoint of that one, and the context
// for their messages. An intercommunicator of `comm` and the other side's is made there.
struct Meeting {
    std::uint32_t endpoint = 0;
    std::uint32_t context = 0;
};

// The part of one side's root: finds the other side's. Error: it can't.
using FindOther = Error (*)(Context& context, void* arguments, Meeting& found);

// All ranks of `comm` call it; `find` is called at the root. The new communicator has no error
// handler. Errors: the root's at all ranks, after the text `others` away from it.
Error meet(Context& context, comm::Communicator& comm, int root, FindOther find, void* arguments,
           const char* others, comm::Communicator*& made);

// Ways to find the other side: at this process's port, or at another's. `patience_ns`: how long to
// wait; 0: for ever.
Error accept_at(Context& context, std::uint64_t port, std::uint64_t patience_ns, Meeting& found);
// Accepts the port's first caller. False: it has withdrawn meanwhile, or has not said that it is
// still there before the time `limit`, ns; 0: there is none.
bool accept_first(Context& context, std::uint64_t port, std::uint64_t limit, Meeting& found);
Error knock_at(Context& context, const PortName& port, std::uint64_t patience_ns, Meeting& found);

// A pause between attempts that others' work may delay. Messages and other threads go on; without a
// way to other worlds only the latter.
constexpr std::uint64_t shortest_pause_ns = 1'000'000;
void pause_between_attempts(Context& context, std::uint64_t pause_ns = shortest_pause_ns);

// In MPI_Init of a spawned world: connects to the process that has spawned it. All ranks.
Error meet_parent(Context& context);

} // namespace warren::mpi
