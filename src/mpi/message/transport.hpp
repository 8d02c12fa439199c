// The transport that ranks of this build use. Code of this room names it so, and uses what the seam
// lists (mpi/transport/transport.hpp) and what shm/ has beside. Thread rule: the transport's.
#pragma once

#include "mpi/transport/shm/shm_transport.hpp"

namespace warren::message {

using Transport = transport::ShmTransport;

} // namespace warren::message
