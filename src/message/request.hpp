// Request: one operation under way, from its start to the call that completes it.
//
// Blocking calls keep it on the stack; nonblocking and persistent ones take it from the rank's table
// (its handle is the MPI_Request). Thread rule: under the rank's lock.
#pragma once

#include <cstdint>

#include "datatype/datatype.hpp"
#include "mpi.h"

namespace warren::message {

enum class Operation : std::uint8_t {
    none,
    send,        // standard mode
    buffered,    // completes at once; its data sits in the attached buffer
    synchronous, // completes when the receive has started
    ready,       // as standard: the receiver needs no hint
    receive,
    generalised, // MPI_Grequest_start
    combined     // Isendrecv: two requests in one
};

// Where a message goes to or may come from, in the terms that both sides share.
struct Envelope {
    std::uint32_t context; // of the communicator, and of point-to-point or collective traffic in it
    std::int32_t source;   // rank in the communicator; MPI_ANY_SOURCE in a receive
    std::int32_t tag;      // MPI_ANY_TAG in a receive
};

// What a completed operation tells its caller.
struct Outcome {
    std::int32_t source = MPI_ANY_SOURCE;
    std::int32_t tag = MPI_ANY_TAG;
    std::int32_t error_class = MPI_SUCCESS; // MPI_ERR_TRUNCATE, …
    bool cancelled = false;
    MPI_Count bytes = 0;     // received
    MPI_Count available = 0; // that the message had: more than `bytes` after a truncation
};

// Memory and the datatype that lays it out.
struct Buffer {
    void* base;
    MPI_Count count;
    const datatype::Datatype* type;

    MPI_Count bytes() const { return count * type->size; }
};

struct Link {
    Link* previous;
    Link* next;
};

} // namespace warren::message
