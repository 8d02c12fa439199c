// The frames of a bridge's connections, and how its sockets' events tell where they come from.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <sys/epoll.h>

#include "mpi/transport/transport.hpp"

namespace warren::transport::bridge {

// A frame of a connection. `extra` follows it if flags say so, then the data.
struct FrameHead {
    std::uint32_t bytes; // of data
    CellKind kind;
    std::uint16_t flags;
    std::uint32_t context; // of a goodbye: the newest connection that its sender has seen
    std::int32_t source;
    std::int32_t tag;
};

// The first bytes of a connection: who has opened it.
struct Hello {
    std::uint64_t magic;
    std::uint64_t world;
    std::uint32_t rank;
    std::uint32_t connection; // counts those that it has opened to this process, from 1 on
};

inline constexpr std::uint64_t hello_magic = 0x32656764'69725761; // "aWridge2"
inline constexpr std::uint16_t has_extra = 1;
inline constexpr std::uint16_t goodbye = 2; // no communicator has both processes
inline constexpr std::uint16_t leaves = 4;  // with a goodbye: its sender leaves MPI

// The origin of an event, in its upper half; the lower one is an endpoint or a number.
inline constexpr std::uint64_t of_listener = 0;
inline constexpr std::uint64_t of_arriving = std::uint64_t{1} << 32;
inline constexpr std::uint64_t of_way = std::uint64_t{2} << 32;
inline constexpr std::uint64_t of_other = std::uint64_t{3} << 32;

inline void add_event(int events, int descriptor, std::uint32_t what, std::uint64_t origin) {
    epoll_event event = {.events = what, .data = {.u64 = origin}};
    epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event);
}

inline void change_event(int events, int descriptor, std::uint32_t what, std::uint64_t origin) {
    epoll_event event = {.events = what, .data = {.u64 = origin}};
    epoll_ctl(events, EPOLL_CTL_MOD, descriptor, &event);
}

} // namespace warren::transport::bridge
