// Channel: a rank's state of the way to another rank. The message room derives its own from it. A
// rank of another node has a queue that is always full, so that the short path need not ask where
// the peer is: who finds it full does. A rank may send one short message to each of thousands, so a
// Channel is small, and what large messages need is made with the first of them. Thread rule: under
// the rank's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "mpi/transport/shm/copy_methods.hpp"
#include "mpi/transport/shm/pair_ring.hpp"
#include "mpi/transport/shm/queue.hpp"

namespace warren::transport {

struct Channel;

// A pair's measurements of large messages (Plans), and its large messages under way (Offers).
struct LargeData {
    std::unique_ptr<CopyMethods> methods; // made with the first message that has a choice
    std::unique_ptr<CopyMethodJudge> judge;
    std::unique_ptr<Asking> asking; // made with the first whose method this rank may choose
    std::unique_ptr<OwnCopyMethods> writing;

    std::uint32_t offers = 0;         // sends that the peer may be fetching with this rank's help
    std::uint32_t awaited = 0;        // of them, those that this rank waits for
    bool told = false;                // its word in the pair ring says that these are all
    Channel* next_offering = nullptr; // among the channels with such

    // State of the room above, which makes it.
    struct Above {
        virtual ~Above() = default;
    };
    std::unique_ptr<Above> above;
};

struct Channel {
    explicit Channel(const node::Segment& segment, std::uint32_t to)
        : queue(segment, to), peer(to) {}
    // To a rank of another node.
    Channel(node::RankSlot& wall, std::uint32_t to) : queue(wall), peer(to), remote(true) {}

    LargeData& large() {
        if (large_ == nullptr) [[unlikely]] {
            large_ = std::make_unique<LargeData>();
        }
        return *large_;
    }
    // Null: there has been no message that needed it.
    LargeData* large_if_any() const { return large_.get(); }
    // The peer may be fetching from this rank.
    bool is_offered_some() const { return large_ != nullptr && large_->offers > 0; }

    PairRingSender pair_ring;
    QueueSender queue;
    const std::uint32_t peer; // its endpoint (mpi/job/endpoints.hpp)
    std::uint16_t heard = 0;  // cells from the peer's pair ring, modulo 2^16
    // Counted as far as it matters to the largest limit.
    std::uint8_t cells_before_pair_ring = 0;
    static constexpr std::uint8_t most_cells = 254;
    static constexpr std::uint8_t pair_ring_refused = 255;
    // Sent through bounce buffers since `heard` changed last; counted until the peer is behind.
    std::uint8_t blocks_in_a_row : 6 = 0;
    bool same_space : 1 = false;   // the peer is a rank of this process
    const bool remote : 1 = false; // the peer is a rank of another node

  private:
    std::unique_ptr<LargeData> large_;
};

} // namespace warren::transport
