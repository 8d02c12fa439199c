// Request: one operation under way, from its start to the call that completes it.
//
// Blocking calls that finish at once need none; all others take one from the rank's table (its
// handle is the MPI_Request). A request is a head that all kinds share, and one state by its
// operation: of a send, of a receive, or of an operation that is made of others.
//
// Invariants
//  1. A request completes once for each start.
//  2. It leaves the table only when it is complete.
//  3. Its operation says which of its states exists.
// Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi.h"
#include "mpi/datatype/buffer.hpp"
#include "mpi/message/direct.hpp"
#include "mpi/message/protocol.hpp"
#include "mpi/transport/shm/copy_methods.hpp"

namespace warren::message {

enum class Operation : std::uint8_t {
    send,        // standard mode
    buffered,    // complete at once: its data is in the attached buffer
    synchronous, // complete when the receive has begun
    ready,       // goes as a standard send: a receive that is posted needs no hint
    none,        // of a request that has not been prepared
    receive,
    probe,       // only as a reason to wait
    generalised, // MPI_Grequest_start
    combined,    // Isendrecv: stands for two others
    collective,  // stands for a schedule of many (mpi/coll/schedule.hpp)
    partitioned, // of many messages (mpi/entry/partitioned.hpp)
    file         // access to a file by a helper thread (mpi/io/file.hpp)
};

inline bool sends(Operation operation) {
    return operation < Operation::none;
}

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
using transport::Trial;

// Something that waits for space on the way to a peer: a send, or an answer of the protocol.
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

struct Request;

// State of a send. start() sets all but `packed`, which prepare_send() does.
struct SendState {
    bool passes;         // it is passed instead of pushed
    bool streaming;      // the head of an answer has been sent
    bool without_blocks; // to do without large blocks, since none is free
    bool offered;        // its receiver may be fetching it, with help
    Offer offer;         // of data with gaps, or of a send that goes direct
    Withdrawal withdrawal;
    std::byte* packed;           // owned: data with gaps to be fetched, or a list of its pieces
    std::uint64_t pieces;        // in that list; 0: no list
    std::uint64_t moved;         // bytes sent
    std::uint64_t answer_token;  // of a send that streams to a receive: that receive
    std::uint64_t waits_since;   // of a send that finds no space: node_time_ns()
    DirectSend direct;           // to a rank of the same address space
    Request* next_direct;        // among those that have been announced (DirectCopies)
    Request* previous_withdrawn; // among those that are to be taken back (Withdrawals)
    Request* next_withdrawn;

    void start() {
        passes = false;
        streaming = false;
        without_blocks = false;
        offered = false;
        offer = Offer::none;
        withdrawal = Withdrawal::none;
        pieces = 0;
        moved = 0;
        answer_token = 0;
        waits_since = 0;
    }
};

// State of a receive. start() sets some; the others are set when it is posted, or its message is
// there.
struct ReceiveState {
    bool matched;             // no longer posted
    bool streaming;           // the head of an answer will come
    Request* previous_posted; // among the posted receives
    Request* next_posted;
    std::uint64_t posted_at; // order of posting
    std::uint64_t moved;     // bytes of a stream that have come
    Trial trial;             // of a stream

    void start() {
        matched = false;
        moved = 0;
    }
};

// State of an operation that consists of others: each round of progress calls step; true: the
// operation has completed. It may release the lock.
struct StepState {
    bool (*step)(Request&);
    Request* next; // among those that step (Stepping)
};

// Thousands of requests are made and ended per millisecond. Members without an initial value here
// are set when the request is prepared or started.
struct Request : Outgoing {
    Request() : Outgoing(false) {} // NOLINT(*-member-init): see above

    Operation operation = Operation::none;
    bool persistent = false;
    bool active = false;  // started and not yet completed by the program
    bool complete = true; // the outcome stands
    Fate fate = Fate::attended;
    bool shared = false;    // stands for all sends that were complete when they were started
    bool null_peer = false; // to or from MPI_PROC_NULL
    bool plain = false;     // a receive that Engine::receive_later() has posted
    bool awaited = false;   // its caller stays in MPI until it is complete
    bool laid_out;          // the data has gaps: it goes by the buffer's layout
    std::uint32_t peer;     // a destination: rank in the world
    Envelope envelope;
    Buffer buffer;
    std::byte* data;     // in one piece; null when it is laid out
    std::uint64_t bytes; // to send, or space to receive
    Outcome outcome;

    // For the room of entry points: what the request keeps alive, and its end. release is called
    // once, just before the request leaves the table.
    void (*release)(Request&) = nullptr;
    void* context;
    void* communicator = nullptr;
    void* attachment; // state of the operation, or what release() ends
    // For an operation that is made of others: the next of those.
    Request* next_part;

    union {
        SendState sending;
        ReceiveState receiving;
        StepState stepping;
    };
    // With this size the table finds a request by one multiplication; without, it takes three
    // instructions more.
    std::byte padding[16];

    bool is_send() const { return sends(operation); }
    bool is_receive() const { return operation == Operation::receive; }

    // Sets the members that describe the data, from the buffer.
    void find_data() {
        bytes = static_cast<std::uint64_t>(buffer.bytes());
        data = static_cast<std::byte*>(buffer.type->contiguous
                                           ? buffer.base
                                           : buffer.type->one_piece(buffer.base, buffer.count));
        laid_out = data == nullptr && !buffer.type->contiguous;
    }
    DirectSend::Place place() const { return {.buffer = &buffer, .piece = data}; }
    // Bytes that a receive keeps of its message.
    std::uint64_t kept() const { return static_cast<std::uint64_t>(outcome.bytes); }
};

} // namespace warren::message
