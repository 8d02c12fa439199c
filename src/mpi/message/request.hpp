// Request: one operation under way, from its start to the call that completes it.
//
// Blocking calls that finish at once need none; all others take one from the rank's table (its
// handle is the MPI_Request).
//
// Invariants
//  1. A request completes once for each start.
//  2. It leaves the table only when it is complete.
// Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi.h"
#include "mpi/datatype/buffer.hpp"
#include "mpi/message/copy_methods.hpp"
#include "mpi/message/direct.hpp"

namespace warren::message {

enum class Operation : std::uint8_t {
    send,        // standard mode
    buffered,    // complete at once: its data is in the attached buffer
    synchronous, // complete when the receive has begun
    ready,       // goes as a standard send: a receive that is posted needs no hint
    receive,
    probe,       // only as a reason to wait
    generalised, // MPI_Grequest_start
    combined,    // Isendrecv: stands for two others
    collective,  // stands for a schedule of many (mpi/coll/schedule.hpp)
    partitioned  // of many messages (mpi/entry/partitioned.hpp)
};

// Envelope: source and tag of a message or receive, in terms that both sides share.
struct Envelope {
    std::uint32_t context; // of the communicator, and of point-to-point or collective traffic in it
    std::int32_t source;   // rank in the communicator; MPI_ANY_SOURCE in a receive
    std::int32_t tag;      // MPI_ANY_TAG in a receive
};

// Result of a completed operation.
struct Outcome {
    std::int32_t source = MPI_ANY_SOURCE;
    std::int32_t tag = MPI_ANY_TAG;
    std::int32_t error_class = MPI_SUCCESS; // MPI_ERR_TRUNCATE, …
    bool cancelled = false;
    MPI_Count bytes = 0;     // received
    MPI_Count available = 0; // that the message had: more than `bytes` after a truncation
};

using datatype::Buffer;

// Something that waits for room on the way to a peer: a send, or an answer of the protocol.
struct Outgoing {
    explicit Outgoing(bool answer) : is_answer(answer) {}

    Outgoing* next = nullptr;
    const bool is_answer;
};

// The owner of a request that completes.
enum class Fate : std::uint8_t {
    attended,  // a call of the program
    left,      // Engine::flush at the latest (buffered sends)
    abandoned, // nobody (MPI_Request_free): it leaves the table when it completes, and
               // Engine::flush waits for that
    orphaned,  // nobody, nor does Engine::flush wait for it: its peer takes no part. It no longer
               // touches memory of the program
};

// How the receiver of a rendezvous gets data with gaps, or any of a rank of its address space.
enum class Offer : std::uint8_t {
    none, // not yet decided
    streamed,
    fetched, // `packed` is ready
    direct   // `direct` has been announced
};

// State of a send that has been announced, and cancelled or given up.
enum class Withdrawal : std::uint8_t {
    none,
    asked, // its receiver is to say whether it has received it
    left,  // the same, but that has left MPI: what it has said is there, and about to be looked at
    over
};

// Thousands of requests are made and ended per millisecond. Members without an initial value here
// are set when the request is prepared or started.
struct Request : Outgoing {
    Request() : Outgoing(false) {}

    Operation operation = Operation::send;
    bool persistent = false;
    bool active = false;    // started and not yet completed by the program
    bool complete = true;   // the outcome stands
    bool matched = false;   // a receive: no longer posted
    bool passes = false;    // a send: it is passed instead of pushed
    bool streaming = false; // a send: the head of an answer has been sent; a receive: one will come
    Fate fate = Fate::attended;
    bool fetched = false;   // a send: to do without large blocks, since none is free
    bool shared = false;    // stands for all sends that were complete when they were started
    bool null_peer = false; // to or from MPI_PROC_NULL
    bool plain = false;     // a receive that Engine::receive_later() has posted
    bool offered = false;   // a send: its receiver may be fetching it, with help
    Withdrawal withdrawal = Withdrawal::none;
    bool awaited = false; // its caller stays in MPI until it is complete
    bool laid_out;        // the data has gaps: it goes by the buffer's layout
    Offer offer;          // a send with gaps, or one that goes direct
    std::uint32_t peer;   // a send's destination: rank in the world
    Envelope envelope;
    Buffer buffer;
    std::byte* data;             // in one piece; null when it is laid out
    std::byte* packed = nullptr; // owned: a send with gaps to be fetched, or a list of its pieces
    std::uint64_t pieces;        // in that list; 0: no list
    std::uint64_t bytes;         // to send, or room to receive
    std::uint64_t moved;         // of them so far
    std::uint64_t answer_token;  // of a send that streams to a receive: that receive
    std::uint64_t waits_since;   // of a send that finds no room: node_time_ns()
    Outcome outcome;

    // Sets the members that describe the data, from the buffer.
    void find_data() {
        bytes = static_cast<std::uint64_t>(buffer.bytes());
        data = static_cast<std::byte*>(buffer.type->contiguous
                                           ? buffer.base
                                           : buffer.type->one_piece(buffer.base, buffer.count));
        laid_out = data == nullptr && !buffer.type->contiguous;
    }
    DirectSend::Place place() const { return {.buffer = &buffer, .piece = data}; }

    // Among the posted receives.
    Request* previous_posted;
    Request* next_posted;
    std::uint64_t posted_at; // order of posting

    // For the room of entry points: what the request keeps alive, and its end. release is called
    // once, just before the request leaves the table.
    void (*release)(Request&) = nullptr;
    void* context;
    void* communicator = nullptr;

    // Members that a short receive doesn't use stand behind all that it has.
    void* attachment;     // state of generalised, combined and buffered operations
    Trial trial;          // a receive that streams
    DirectSend direct;    // of a send to a rank of the same address space
    Request* next_direct; // among those that have been announced
    // Among those that are to be taken back.
    Request* previous_withdrawn;
    Request* next_withdrawn;

    // For operations that consist of others: each round of progress calls it; true: the operation
    // has completed. It may release the lock. The operation may link its parts by next_stepping.
    bool (*step)(Request&);
    Request* next_stepping;
};

} // namespace warren::message
