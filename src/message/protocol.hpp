// Protocol: how a message of any size crosses a transport that moves cells and blocks.
//
//   eager        the whole message with its envelope: in the cell, or in one block
//   stream       stream_head (envelope, first block), then stream_part until all is there. The
//                blocks of one sender's streams never mix: a pair has one stream at a time
//   rendezvous   the envelope and where the data is; the receiver, once it has matched it, copies it
//                straight from the sender's memory and answers `done`; where the kernel refuses that
//                it answers `wanted`, and the sender streams it (answer_head, stream_part)
// A synchronous send is a rendezvous of any size.
// Tokens are handles of the rank's request table, so that a stale one is recognised.
#pragma once

#include <cstdint>

#include "transport/cell.hpp"

namespace warren::message {

namespace kind {
inline constexpr transport::CellKind eager = 1;
inline constexpr transport::CellKind stream_head = 2;
inline constexpr transport::CellKind stream_part = 3;
inline constexpr transport::CellKind rendezvous = 4;
inline constexpr transport::CellKind done = 5;
inline constexpr transport::CellKind wanted = 6;
inline constexpr transport::CellKind answer_head = 7;
} // namespace kind

using Token = std::uint64_t;

struct RendezvousData {
    std::uint64_t address; // in the sender's process
    std::uint64_t bytes;
    Token sender;
};

struct DoneData {
    Token sender;
};

struct WantedData {
    Token sender;
    Token receiver;
    std::uint64_t bytes; // that the receiver has room for
};

// Beside the first block of a stream.
struct StreamHead {
    std::uint64_t total;
    Token receiver; // of an answer
};

static_assert(sizeof(RendezvousData) <= transport::inline_bytes);
static_assert(sizeof(WantedData) <= transport::inline_bytes);
static_assert(sizeof(StreamHead) <= transport::extra_bytes);

} // namespace warren::message
