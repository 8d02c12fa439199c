// Data that a debugger needs to find all fibres of a process (tools/gdb/fibres.py), also without
// this library's debugging information.
#include "runtime/fibres/debug.hpp"

#include <cstddef>

#include "runtime/fibres/worker.hpp"

// The offsets of types with atomic members are what they are with all compilers that we know.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

using namespace warren::fibre;

constinit DebugLayout warren_fibre_debug = {
    .version = 2,
    .stride = sizeof(Fibre),
    .stack = offsetof(Fibre, context) + offsetof(Context, stack),
    .state = offsetof(Fibre, state),
    .on_worker = offsetof(Fibre, on_worker),
    .worker = offsetof(Fibre, worker),
    .worker_number = offsetof(Worker, number),
    .worker_thread = offsetof(Worker, thread),
    .count = 0,
    .event_waiters = offsetof(Fibre, event_waiters),
    .ticket = offsetof(Fibre, ticket),
    .event_ticket = offsetof(EventWaiters, ticket),
    .fibres = nullptr,
};
