// Protocol: how a message of any size crosses a transport that moves cells and blocks.
//
//   eager        the whole message with its envelope: in the cell, or in one block
//   stream       (pairs with a pair ring) stream_head: envelope, total and first block. A message
//                of up to a block is complete with it. The rest of a larger one waits until the
//                receive is matched: the receiver answers `wanted`, usually before the sender has
//                finished the head
//   rendezvous   the envelope and where the data is, or a list of its pieces. Once the receiver has
//                matched it, it gets the data straight from the sender's memory and answers `done`;
//                if that is refused, it answers `wanted`. The transport may let it ask for a stream
//                (`wanted`) instead (mpi/transport/shm/plans.hpp)
//   direct       (ranks of one address space, above direct_limit, or where it is faster) the
//                envelope and where the sender's DirectSend is, by which the two copy
//                (mpi/message/direct.hpp)
//   withdrawn    a sender takes back an announced send that nobody has received: the envelope, and
//                which send. The receiver answers `done` with that send. It doesn't answer if the
//                send has been received, or is held by a matched probe, which then goes on. If the
//                receiver has asked (`wanted`) meanwhile for a send that was given up, not
//                cancelled, the sender answers `given_up`: no data comes
//   wanted       the sender streams the rest to the receive that it names: answer_head, then
//                stream_part until all is there. The blocks of one sender's streams never mix: a
//                pair has one stream at a time. Data with gaps goes as many streams, each of one
//                block (answer_head only), so that those of several messages can take turns
// Which of stream, rendezvous and direct it is, is the transport's plan. A synchronous send is a
// rendezvous of any size, or direct.
// Tokens are handles of the rank's request table, so that a stale one is recognised.
//
// Each kind has one handler (kinds.hpp). Rooms above this one register their own kinds with
// Engine::register_kind, by numbers from kind::first_free on, listed here.
#pragma once

#include <cstdint>

#include "mpi/transport/transport.hpp"

namespace warren::message {

namespace kind {
inline constexpr transport::CellKind stream_part = transport::further_piece;
inline constexpr transport::CellKind eager = 2;
inline constexpr transport::CellKind stream_head = 3;
inline constexpr transport::CellKind rendezvous = 4;
inline constexpr transport::CellKind done = 5;
inline constexpr transport::CellKind wanted = 6;
inline constexpr transport::CellKind answer_head = 7;
inline constexpr transport::CellKind direct = 8;
inline constexpr transport::CellKind withdrawn = 9;
inline constexpr transport::CellKind given_up = 10;
inline constexpr transport::CellKind rendezvous_list = 11;
inline constexpr transport::CellKind farewell = 12; // farewell.hpp
// Kinds of the rooms above.
inline constexpr transport::CellKind first_free = 16;
inline constexpr transport::CellKind port_request = 21;   // mpi/entry/ports.hpp
inline constexpr transport::CellKind port_answer = 22;    // the same
inline constexpr transport::CellKind window_request = 23; // mpi/rma/window_server.hpp
inline constexpr transport::CellKind window_notice = 24;  // the same
inline constexpr transport::CellKind limit = 25;          // all are below it
} // namespace kind

// Envelope: source and tag of a message or receive, in terms that both sides share.
struct Envelope {
    std::uint32_t context; // of the communicator, and of point-to-point or collective traffic in it
    std::int32_t source;   // rank in the communicator; MPI_ANY_SOURCE in a receive
    std::int32_t tag;      // MPI_ANY_TAG in a receive
};

inline transport::Header header_of(transport::CellKind kind, const Envelope& envelope) {
    return {
        .kind = kind, .context = envelope.context, .source = envelope.source, .tag = envelope.tag};
}
inline Envelope envelope_of(const transport::Header& header) {
    return {.context = header.context, .source = header.source, .tag = header.tag};
}

using Token = std::uint64_t;

struct RendezvousData {
    transport::RemoteMemory memory; // with the data; without an address: ask for a stream
    Token sender;
    std::uint64_t began; // a stamp (mpi/transport/shm/plans.hpp)
};

struct RendezvousListData {
    transport::RemoteMemory list; // of pieces (iovec)
    Token sender;
    std::uint64_t bytes; // of data
};

struct DirectData {
    std::uint64_t send; // address of the DirectSend
    std::uint64_t bytes;
    std::uint64_t began; // a stamp
};

struct DoneData {
    Token sender;
    std::uint64_t withdrawn; // not 0: its message has been taken back
};

struct GivenUpData {
    Token receiver;
};

struct WithdrawnData {
    std::uint64_t send; // as in DirectData, or the token
    Token sender;
};

struct WantedData {
    Token sender;
    Token receiver;
    std::uint64_t from; // what the receiver has already
    std::uint64_t to;   // where its room ends
    // Not 0: pass it. (0: go on by the method that the sender has begun with.)
    std::uint64_t passes;
};

// Precedes the data in the first block of a stream.
struct StreamHead {
    std::uint64_t total; // of the message; of an answer: of this stream
    Token token;         // the sender's request; of an answer: the receiver's
    std::uint64_t began; // a stamp, likewise
};

static_assert(sizeof(RendezvousData) <= transport::inline_bytes);
static_assert(sizeof(RendezvousListData) <= transport::inline_bytes);
static_assert(sizeof(WantedData) <= transport::inline_bytes);
static_assert(sizeof(StreamHead) <= transport::extra_bytes);

} // namespace warren::message
