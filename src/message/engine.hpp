// Engine: the point-to-point core of a rank. It owns posted receives, unexpected messages and the
// operations under way, and drives the transport.
//
// Destinations are world ranks: translation by a communicator's rank map happens in the callers.
// Errors of arguments have been found before; what fails here is memory, or the message itself
// (truncation), which goes into the operation's outcome.
// Thread rule: all calls under the rank's lock; waits release it while they give the processor away.
#pragma once
// (interface in preparation; calls for collectives:)
//
//   struct Endpoint { Communicator-independent addressing of one call:
//       std::uint32_t context; int my_rank; (rank in the communicator) }
//
//   Error send(Operation mode, const Buffer&, std::uint32_t world_dest, const Envelope& (source = own
//              rank in the communicator));                               blocking
//   Error receive(const Buffer&, const Envelope&, Outcome&);             blocking
//   Error start_send(mode, Buffer, world_dest, Envelope, Request&);      nonblocking
//   Error start_receive(Buffer, Envelope, Request&);
//   Error wait(Request&);          // outcome in request.outcome
//   bool progress();  bool idle() const;
