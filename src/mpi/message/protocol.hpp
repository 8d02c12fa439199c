// Protocol: how a message of any size crosses a transport that moves cells and blocks.
//
//   eager        the whole message with its envelope: in the cell, or in one block
//   stream       (pairs with a pair ring) stream_head: envelope, total and first block, which is
//   all of a
//                message of up to a block. Of a larger one the rest waits until the receive is
//                matched: the receiver answers `wanted`, usually before the sender is through
//                with the head
//   rendezvous   the envelope and where the data is; the receiver, once it has matched it, copies
//                it straight from the sender's memory and answers `done`; where the kernel refuses
//                that it answers `wanted`. A sender with a pair ring that waits meanwhile copies a
//                part of large data itself (mpi/transport/shm/joint_copy.hpp). Which of stream and
//                rendezvous a message without gaps takes: mpi/message/copy_methods.hpp. While the
//                sender waits for all that it has offered to the receiver, this may ask for a
//                stream (`wanted`) instead
//   direct       (ranks of one address space, above direct_limit, or where it is the better way)
//                the envelope and where the sender's DirectSend is, by which the two copy
//                (mpi/message/direct.hpp)
//   withdrawn    a sender takes back what it has announced and nobody has received: the envelope,
//                and which send; answered by `done` that says so. Not answered if it has been
//                received, or is held by a matched probe: then that goes its way. Who has asked
//                meanwhile (`wanted`) for a send that was given up, not cancelled, is answered by
//                `done` itself: nothing comes
//   wanted       the sender streams the rest to the receive that it names: answer_head, then
//                stream_part until all is there. The blocks of one sender's streams never mix: a
//                pair has one stream at a time. Data with gaps goes as many streams, each of one
//                block (answer_head only), so that those of several messages can take turns
// A synchronous send is a rendezvous of any size, or direct.
// Tokens are handles of the rank's request table, so that a stale one is recognised.
#pragma once

#include <cstdint>

#include "mpi/transport/shm/cell.hpp"

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
} // namespace kind

using Token = std::uint64_t;

struct RendezvousData {
    std::uint64_t address; // in the sender's process; 0: ask for a stream
    std::uint64_t bytes;
    Token sender;
    std::uint64_t pieces; // not 0: at the address is a list of so many (iovec)
    std::uint64_t began;  // a Stamp (mpi/message/copy_methods.hpp), or Stamp::receivers_choice
};

struct DirectData {
    std::uint64_t send; // address of the DirectSend
    std::uint64_t bytes;
    std::uint64_t began; // a Stamp
};

// From which size on one copy, which sender and receiver must meet for, is better than two by the
// receiver's queue. (By a pair ring: CopyMethodClass.)
inline constexpr std::uint64_t direct_limit = 2048;

struct DoneData {
    Token request;           // of who gets this
    std::uint64_t withdrawn; // not 0: a send whose message has been taken back
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
    // Not 0: past the caches. (0: the way that the sender has begun with.)
    std::uint64_t passes;
};

// Beside the first block of a stream.
struct StreamHead {
    std::uint64_t total; // of the message; of an answer: of this stream
    Token token;         // the sender's request; of an answer: the receiver's
    std::uint64_t began; // a Stamp, likewise
};

static_assert(sizeof(RendezvousData) <= transport::inline_bytes);
static_assert(sizeof(WantedData) <= transport::inline_bytes);
static_assert(sizeof(StreamHead) <= transport::extra_bytes);

} // namespace warren::message
