// Source: the data of a block that is to be sent.
//
// The data is contiguous, or its owner's function writes any part of it to a given place: data with
// gaps is copied once, from its layout into memory that the receiver reads.
// Thread rule: a value of one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warren::transport {

class Source {
  public:
    // Writes bytes [first, first + bytes) of the owner's data.
    using Write = void (*)(const void* owner, std::uint64_t first, std::uint64_t bytes,
                           std::byte* to);

    Source(const void* data) : data_(static_cast<const std::byte*>(data)) {} // NOLINT(*-explicit-*)
    Source(const void* owner, Write function, std::uint64_t first)
        : owner_(owner), write_(function), first_(first) {}

    // The data in one piece; null when it has to be written.
    const std::byte* data() const { return data_; }

    void write(std::size_t offset, std::size_t bytes, std::byte* to) const {
        write_(owner_, first_ + offset, bytes, to);
    }

    // Whether its copy should go past the caches (LargeCopy::pass), which counts for data in one
    // piece.
    bool passes() const { return passes_; }
    Source passing(bool passes) const {
        Source source = *this;
        source.passes_ = passes;
        return source;
    }

    // Copies short blocks of both kinds.
    void copy(std::size_t bytes, std::byte* to) const {
        if (data_ != nullptr) [[likely]] {
            std::memcpy(to, data_, bytes);
        } else {
            write(0, bytes, to);
        }
    }

  private:
    const std::byte* data_ = nullptr;
    const void* owner_ = nullptr;
    Write write_ = nullptr;
    std::uint64_t first_ = 0;
    bool passes_ = false;
};

} // namespace warren::transport
