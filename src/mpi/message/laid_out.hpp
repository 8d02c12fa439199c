// LaidOut: moves data with gaps through the transport: straight from the sender's layout into the
// memory that the receiver reads, and from there into its layout. Thread rule: values of one call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/message/request.hpp"
#include "mpi/transport/source.hpp"

namespace warren::message {

class LaidOut {
  public:
    explicit LaidOut(const Buffer& buffer) : buffer_(buffer) {}

    // The buffer's data from byte `first` on, for a send. Refers to this object.
    transport::Source source(std::uint64_t first) const { return {this, write, first}; }

    // Copies data that another core has written, from byte `first` on, into the buffer's layout.
    void take(std::uint64_t first, const std::byte* data, std::uint64_t bytes) const;

  private:
    static void write(const void* self, std::uint64_t first, std::uint64_t bytes, std::byte* to);

    const Buffer& buffer_;
};

} // namespace warren::message
