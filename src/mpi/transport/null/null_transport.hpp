// NullTransport: a transport that drops what it is given, but for the last few cells: for tests of
// code above the seam, and for benchmarks of the way to a transport (bench/scale.cpp).
// Thread rule: its owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi/transport/transport.hpp"

namespace warren::transport {

class NullTransport {
  public:
    // The way to a rank of another node.
    struct Channel {
        NodeAddress address;
        std::uint32_t slot; // of the rank on its node
    };
    struct alignas(64) Cell {
        Channel to;
        Header header;
        std::uint32_t length;
        std::byte data[28]; // the first bytes
    };
    static constexpr std::uint32_t cells_kept = 64;
    static constexpr std::size_t block_bytes = 4096;

    Abilities abilities(const Channel&) const {
        return {
            .inline_bytes = inline_bytes, .block_bytes = block_bytes, .get = false, .put = false};
    }
    // Nothing can be got from a rank that isn't there, so all is pushed.
    Plan plan(const Channel&, const Outline&) const { return {}; }

    bool send_inline(const Channel& channel, const Header& header, const void* data,
                     std::size_t bytes) {
        Cell& cell = next_cell(channel, header, bytes);
        std::memcpy(cell.data, data, bytes < sizeof cell.data ? bytes : sizeof cell.data);
        return true;
    }
    bool send_block(const Channel& channel, const Header& header, const Extra&, const Source&,
                    std::size_t bytes) {
        next_cell(channel, header, bytes);
        return true;
    }
    std::size_t block_limit(const Channel&) const { return block_bytes; }

    PeerCopy get(const Channel&, const RemoteMemory&, void*) { return PeerCopy::refused; }
    template <typename Handler>
    bool poll(Handler&&) {
        return false;
    }

    // Cells sent so far, and one of the last.
    std::uint64_t sent() const { return sent_; }
    const Cell& cell(std::uint64_t number) const { return cells_[number % cells_kept]; }

  private:
    Cell& next_cell(const Channel& channel, const Header& header, std::size_t bytes) {
        Cell& cell = cells_[sent_++ % cells_kept];
        cell.to = channel;
        cell.header = header;
        cell.length = static_cast<std::uint32_t>(bytes);
        return cell;
    }

    Cell cells_[cells_kept] = {};
    std::uint64_t sent_ = 0;
};
static_assert(IsTransport<NullTransport>);

} // namespace warren::transport
