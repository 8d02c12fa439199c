// Transport: the seam between messages and the ways to other ranks.
//
// A transport moves cells, and blocks of data that go with them, from rank to rank. A rank's state
// of the way to one other rank is a Channel, which the transport defines. The message room asks for
// the plan of a message (Plan) and carries it out with
//
//   send_inline   a cell with up to inline_bytes of data
//   send_block    a cell with a block, up to block_limit() of the channel
//   get           a copy out of memory that the other rank has offered
//
// and takes what arrives from poll(). Every transport guarantees
//  1. Cells of one pair of ranks arrive in the order of their sends.
//  2. A send that returns false has done nothing, and may be tried again after progress.
//  3. A send has copied its data when it returns.
//
// Ranks of a node use shm/. null/ drops what it is given, for tests and benchmarks. Which transport
// a rank uses is fixed when the library is built (message/transport.hpp), so calls are direct. A
// rank of another node has a queue that is always full (shm/channel.hpp); who finds a queue full
// asks for that, and sends by fabric/. Thread rule: under the rank's lock.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "mpi/transport/source.hpp"

namespace warren::transport {

// A node's address for a transport between nodes, which knows what the words mean; the two upper
// bits of the last are left to tell transports apart.
struct NodeAddress {
    std::uint32_t words[3] = {};
};
static_assert(sizeof(NodeAddress) == 12);

// --- Cells

// The message room's purpose of a cell (mpi/message/protocol.hpp); 0 is the transport's own.
using CellKind = std::uint16_t;
// A large block may be handed over in pieces: the first with the cell's kind, the others with this
// one. The block's handler must know its size.
inline constexpr CellKind further_piece = 1;

// The head of a cell beside its data: its purpose and the envelope of a message.
struct Header {
    CellKind kind;
    std::uint32_t context;
    std::int32_t source;
    std::int32_t tag;
};

inline constexpr std::size_t inline_bytes = 40; // of data in a cell
inline constexpr std::size_t extra_bytes = 24;  // for the handler, beside a block
using Extra = std::byte[extra_bytes];

// An arrival: a cell, or the next piece of a block that is still arriving. Valid during the
// handler's call.
struct Arrival {
    Header header;
    std::uint32_t sender;
    std::uint32_t bytes;
    std::uint32_t block_bytes; // of the whole block, of which this may be a piece
    const std::byte* data;
    const std::byte* extra; // of a block; null when the data was in the cell
};

// --- Memory of other ranks

// Capabilities of a channel.
struct Abilities {
    std::size_t inline_bytes; // in a cell
    std::size_t block_bytes;  // in a block
    bool get;                 // copy out of the other rank's memory
    bool put;                 // copy into it
};

// Memory that a rank has offered to others. `key` is its transport's; shm needs none.
struct RemoteMemory {
    std::uint64_t address; // in that rank's process; 0: none is offered
    std::uint64_t length;
    std::uint64_t key;
};

// Result of a copy out of another rank's memory.
enum class PeerCopy : std::uint8_t {
    done,
    failed, // this one: the memory isn't there (any more)
    refused // this one and all later ones
};

// --- Plans

// Properties of a message that determine its plan.
struct Outline {
    std::uint64_t bytes;
    bool awaited = false;        // its sender waits for it in MPI
    bool gaps = false;           // its data isn't in one piece
    bool small_pieces = false;   // but in pieces of less than a cache line
    bool meets = false;          // it is complete only when its receive has begun (synchronous)
    bool leaves = false;         // it should leave its sender's memory, whoever is late (buffered)
    bool without_blocks = false; // large blocks have been too long in coming
};

enum class Move : std::uint8_t {
    push,  // in cells and blocks; what doesn't fit a block streams after the match
    get,   // the receiver gets it from the sender's memory
    direct // the ranks share an address space, and copy from buffer to buffer
};

struct Plan {
    Move move = Move::push;
    bool passes = false;   // push past this core's caches
    bool counts = false;   // the transport has chosen among several, and counts what it chose
    bool measured = false; // and may measure how long it takes
    bool open = false;     // get: the receiver may ask for a push instead
};

// --- The seam

// The functions of a handler of arrivals: operator() for each, and cell() for one with its data in
// the cell, which transports may call instead with their own form of a cell.
struct AnyHandler {
    void operator()(const Arrival&) const {}
    template <typename Cell>
    void cell(const Cell&, std::uint32_t) const {}
};

template <typename Transport>
concept IsTransport = requires(Transport& transport, typename Transport::Channel& channel,
                               const Header& header, const void* data, std::size_t bytes,
                               const Extra& extra, const Source& source, const Outline& outline,
                               const RemoteMemory& memory, void* to) {
    { transport.abilities(channel) } -> std::same_as<Abilities>;
    { transport.plan(channel, outline) } -> std::same_as<Plan>;
    { transport.send_inline(channel, header, data, bytes) } -> std::same_as<bool>;
    { transport.send_block(channel, header, extra, source, bytes) } -> std::same_as<bool>;
    { transport.block_limit(channel) } -> std::same_as<std::size_t>;
    { transport.get(channel, memory, to) } -> std::same_as<PeerCopy>;
    { transport.poll(AnyHandler()) } -> std::same_as<bool>;
};

} // namespace warren::transport
