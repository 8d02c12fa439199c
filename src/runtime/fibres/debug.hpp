// DebugLayout: where a debugger finds the fibres of a process. Thread rule: written once, before
// there are fibres.
#pragma once

#include <cstdint>

namespace warren::fibre {

struct Fibre;

// The names are those of the members of Fibre and Worker whose offsets they are.
struct DebugLayout {
    std::uint32_t version;
    std::uint32_t stride; // bytes from one fibre to the next
    std::uint32_t stack;
    std::uint32_t state;
    std::uint32_t on_worker;
    std::uint32_t worker;
    std::uint32_t worker_number;
    std::uint32_t worker_thread;
    std::uint32_t count;
    std::uint32_t event_waiters; // of a fibre, or 0; it still waits there if the next two are equal
    std::uint32_t ticket;
    std::uint32_t event_ticket; // in its list of event waiters
    const Fibre* fibres;        // null: there are none
};

} // namespace warren::fibre

extern "C" [[gnu::visibility("default")]] warren::fibre::DebugLayout warren_fibre_debug;
