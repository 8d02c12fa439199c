// NodeTransport: moves cells, and blocks of data that go with them, between the ranks of a node,
// and hands those for ranks of other nodes to the network, those for other worlds to the bridge. It
// keeps what the seam promises
// (mpi/transport/transport.hpp).
//
// A pair starts on the receiver's queue. After cells_until_pair_ring cells, if ranks have
// processors of their own, the sender opens a pair ring. It announces the ring in the queue and
// sends all later cells through it, so that order holds. Thread rule: under the rank's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/rank/rank.hpp"
#include "mpi/transport/bridge/bridge.hpp"
#include "mpi/transport/fabric/network.hpp"
#include "mpi/transport/shm/bounce.hpp"
#include "mpi/transport/shm/cell.hpp"
#include "mpi/transport/shm/channel.hpp"
#include "mpi/transport/shm/copy.hpp"
#include "mpi/transport/shm/copy_large.hpp"
#include "mpi/transport/shm/pair_ring.hpp"
#include "mpi/transport/shm/queue.hpp"
#include "mpi/transport/shm/tuning.hpp"
#include "mpi/transport/source.hpp"

namespace warren::transport {

class NodeTransport {
  public:
    // `network`: to other nodes; null: there are none.
    explicit NodeTransport(Rank& rank, fabric::Network* network = nullptr);

    // Sends up to inline_bytes of data in the cell.
    bool send_inline(Channel& channel, const Header& header, const void* data, std::size_t bytes) {
        return channel.pair_ring ? send_in_pair_ring(channel, header, data, bytes)
                                 : queue_inline(channel, header, data, bytes);
    }

    // As above, for a channel that has a pair ring.
    [[gnu::always_inline]] bool send_in_pair_ring(Channel& channel, const Header& header,
                                                  const void* data, std::size_t bytes) {
        Cell* cell = claim_in_pair_ring(channel);
        if (cell == nullptr) [[unlikely]] {
            return false;
        }
        fill(*cell, header);
        cell->place = Place::cell;
        cell->length = static_cast<std::uint8_t>(bytes);
        copy_small(cell->payload, data, bytes);
        channel.pair_ring.publish(*cell);
        Doorbell::ring(rank_.header(), channel.queue.doorbell());
        return true;
    }

    // Waits a while for a cell from a rank that has a pair ring here. Takes it if its data is in
    // the cell or in the ring, its header equals `header`, and it is at most `capacity` bytes in
    // elements of `unit`. `bytes`: the number of bytes copied. False: nothing has been done; call
    // poll() for whatever has come.
    [[gnu::always_inline]] bool receive_from_pair_ring(std::uint32_t sender, const Header& header,
                                                       void* to, std::size_t capacity,
                                                       std::size_t unit, std::size_t& bytes) {
        const std::uint32_t number =
            pair_ring_of_ != nullptr ? pair_ring_of_[sender] : no_pair_ring;
        if (number == no_pair_ring) [[unlikely]] {
            return false;
        }
        PairRingReceiver& pair_ring = pair_rings_[number];
        const Cell* cell = pair_ring.peek();
        if (cell == nullptr && (cell = await_in_pair_ring(pair_ring)) == nullptr) {
            return false;
        }
        if (cell->kind != header.kind || cell->context != header.context ||
            cell->source != header.source || cell->tag != header.tag ||
            !take_from_pair_ring(pair_ring, *cell, to, capacity, unit, bytes)) [[unlikely]] {
            return false;
        }
        pair_ring.pop();
        offer_space();
        return true;
    }

    // As above, from the queue, on a node without pair rings. next_queued: null, nothing has come.
    const Cell* next_queued() const { return queue_.claimed() ? queue_.peek() : nullptr; }
    [[gnu::always_inline]] bool receive_queued(const Cell& next, const Header& header, void* to,
                                               std::size_t capacity, std::size_t unit,
                                               std::size_t& bytes) {
        if (next.kind != header.kind || next.context != header.context ||
            next.source != header.source || next.tag != header.tag || next.place != Place::cell ||
            !fits(next.length, capacity, unit)) [[unlikely]] {
            return false;
        }
        bytes = next.length;
        copy_small(to, next.payload, bytes);
        queue_.pop();
        offer_space();
        return true;
    }

    // Waits a while for a cell from a rank that has a pair ring here, and calls meanwhile() in
    // between. False: none has come, or something else has.
    template <typename Meanwhile>
    bool await_cell(std::uint32_t sender, Meanwhile meanwhile) {
        const PairRingReceiver* pair_ring = pair_ring_from(sender);
        for (std::uint32_t turn = 0; pair_ring != nullptr && turn < polls_of_a_pair_ring; ++turn) {
            if (pair_ring->peek() != nullptr) {
                return true;
            }
            if (something_else_has_come(*pair_ring)) {
                return false;
            }
            spin_pause();
            meanwhile();
        }
        return false;
    }

    // Sends 1 to block_limit(channel) bytes of data, with `extra` for the receiver's handler. A
    // block of more than ring_block_limit may reach the handler in pieces; `total` is what the
    // message has altogether, a hint for their size.
    bool send_block(Channel& channel, const Header& header, const Extra& extra,
                    const Source& source, std::size_t bytes, std::uint64_t total = 0);

    // The largest block of this channel.
    std::size_t block_limit(const Channel& channel) const {
        if (!channel.pair_ring) {
            return channel.remote ? fabric::Network::block_limit : chunk_data_bytes;
        }
        return bounces_.available() ? bounce_bytes : ring_block_limit;
    }

    // The largest block of a message of `total` bytes that takes several.
    std::size_t stream_block_limit(const Channel& channel, std::uint64_t total) const {
        const std::size_t limit = block_limit(channel);
        return total < long_stream_bytes || copy_.near_bytes() >= bounces_under_way * bounce_bytes
                   ? limit
                   : std::min(limit, long_stream_block_bytes);
    }

    // Up to this size a message is best sent as one block that arrives whole.
    std::size_t whole_block_limit(const Channel& channel) const {
        if (!channel.pair_ring) {
            return channel.remote ? fabric::Network::block_limit : chunk_data_bytes;
        }
        return bounces_.available() ? ring_preferred_limit : ring_block_limit;
    }

    // For copies of a piece's data.
    const LargeCopy& copy() const { return copy_; }

    // Hands everything that has arrived to handler(const Arrival&), in order per sender; a pair
    // ring's cell that contains its data, to handler.cell(const Cell&, its sender). It takes at
    // most frame_limit frames of long blocks per sender. Returns whether anything had arrived.
    template <typename Handler>
    bool poll(Handler&& handler, std::uint32_t frame_limit = cells_taken_per_poll) {
        bool any = false;
        for (PairRingReceiver& pair_ring : pair_rings_) {
            // A bound, so that one busy sender doesn't keep the others waiting.
            std::uint32_t frames = 0;
            for (std::uint32_t turn = 0; turn < cells_taken_per_poll && frames < frame_limit;
                 ++turn) {
                Cell* cell = pair_ring.peek();
                if (cell == nullptr) {
                    break;
                }
                if (turn != 0) {
                    pair_ring.prefetch();
                }
                if (cell->place == Place::cell) [[likely]] {
                    handler.cell(*cell, pair_ring.sender());
                    pair_ring.pop();
                } else {
                    frames += cell->place == Place::bounce ? 1 : 0;
                    if (!deliver_block(pair_ring, *cell, handler)) {
                        break;
                    }
                }
                any = true;
            }
        }
        for (std::uint32_t turn = 0; turn < cells_taken_per_poll; ++turn) {
            // Where many ranks share processors, a rank's cells are mostly not in the cache.
            if (rank_.oversubscribed() && !queue_.claimed()) {
                break;
            }
            Cell* cell = queue_.peek();
            if (cell == nullptr) {
                break;
            }
            any = true;
            deliver_queue_cell(*cell, handler);
        }
        if (any) {
            offer_space();
        }
        return any;
    }

    // As above, from other nodes.
    template <typename Handler>
    bool poll_network(Handler&& handler) {
        return network_->poll(rank_.index, !rank_.lock.shared(), rank_.waits.shares_processor,
                              handler);
    }
    // As above, from other worlds.
    template <typename Handler>
    bool poll_bridge(Handler&& handler) {
        return bridge_->poll(handler);
    }
    // Before a sleep, after the last poll.
    void falls_asleep() const {
        if (network_ != nullptr) {
            network_->falls_asleep(rank_.index);
        }
        if (bridge_ != nullptr) {
            bridge_->falls_asleep();
        }
    }
    // To other worlds, once the rank has to do with any; null before.
    bridge::Bridge* bridge() const { return bridge_.get(); }
    Error open_bridge(bridge::Above above) {
        return bridge::Bridge::open(rank_, std::move(above), bridge_);
    }
    // Makes room for endpoints below `endpoints`.
    void grow(std::uint32_t endpoints);
    // Null: the job has one node.
    fabric::Network* network() const { return network_; }

    // Hands over all cells that ranks of the node had sent before an action of theirs that this
    // rank has seen (with acquire). False: some may be queued behind a cell that another rank is
    // writing now, which rings afterwards.
    template <typename Handler>
    bool poll_what_is_sent(Handler&& handler) {
        const std::uint32_t end = queue_.end();
        bool more = true;
        while (more && !queue_.is_past(end)) {
            more = poll(handler);
        }
        // Each poll takes at least one cell of a pair ring.
        for (std::uint32_t turn = 0; more && turn < pair_ring_cells; ++turn) {
            more = poll(handler);
        }
        return queue_.is_past(end);
    }

    // Before a sleep with sends that found no space: asks the channel's peer, and each rank that
    // holds chunks of this one, to ring when they have taken something.
    void ask_for_space(const Channel& channel);
    // Whether that request to the channel's peer still stands.
    bool asks_for_space(const Channel& channel) const {
        return channel.remote ||
               (waiters_for_space(channel.peer)[rank_.index / 64].load(std::memory_order_acquire) >>
                    rank_.index % 64 &
                1) != 0;
    }

    // Changes the bits of `mask` in the word that the peer, if it has a pair ring here, finds in
    // its channel's pair ring.
    void advise(std::uint32_t peer, std::uint32_t mask, std::uint32_t bits);
    // Whether the peer, if it has a pair ring here, waits for all that it has offered.
    bool awaits(std::uint32_t peer) {
        const PairRingReceiver* pair_ring = pair_ring_from(peer);
        return pair_ring != nullptr && pair_ring->awaits();
    }
    // The peer's pair ring towards this rank; null: it has none.
    PairRingReceiver* pair_ring_from(std::uint32_t peer) {
        const std::uint32_t number = pair_ring_of_ != nullptr ? pair_ring_of_[peer] : no_pair_ring;
        return number != no_pair_ring ? &pair_rings_[number] : nullptr;
    }

    Rank& rank() { return rank_; }

    // A tool may change these (mpi/tool).
    struct Limits {
        // Cells that a pair sends before it gets a pair ring; channel.hpp counts up to 254.
        std::uint32_t cells_until_pair_ring = transport::cells_until_pair_ring;
        std::uint64_t direct = direct_limit; // Plans
    };
    Limits limits;

  private:
    static constexpr std::uint32_t no_pair_ring = ~std::uint32_t{0};
    // Rings the ranks that sleep until this one has taken something. Like every waker (see
    // mpi/rank/doorbell.hpp) it fences between what it has stored and what it looks at, or the
    // sleeper does for it.
    [[gnu::always_inline]] void offer_space() {
        if (rank_.header().fence_in_wakers.load(std::memory_order_relaxed) != 0) {
            std::atomic_thread_fence(std::memory_order_seq_cst);
        } else {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        if (ends_.space_wanted.load(std::memory_order_relaxed) != 0) [[unlikely]] {
            ring_space_waiters();
        }
    }
    void ring_space_waiters();
    void want_space(std::uint32_t at);
    // The bits of the ranks that wait for space at a rank: waiter_words() words of 64.
    std::atomic<std::uint64_t>* waiters_for_space(std::uint32_t at) const {
        return rank_.segment.at(space_waiters) + std::uint64_t{at} * waiter_words();
    }
    std::uint32_t waiter_words() const { return (rank_.size + 63) / 64; }

    void fill(Cell& cell, const Header& header) const {
        cell.kind = header.kind;
        cell.context = header.context;
        cell.source = header.source;
        cell.tag = header.tag;
    }
    // The next cell of a channel's pair ring, or null. It acknowledges the cells that this rank has
    // read of the opposite pair ring.
    [[gnu::always_inline]] Cell* claim_in_pair_ring(Channel& channel) {
        const PairRingReceiver* reverse_ring = pair_ring_from(channel.peer);
        if (reverse_ring != nullptr) [[likely]] {
            channel.pair_ring.learn(reverse_ring->acknowledged(), reverse_ring->read());
        }
        Cell* cell = channel.pair_ring.claim();
        if (cell != nullptr) [[likely]] {
            cell->turn.acknowledged =
                static_cast<std::uint16_t>(reverse_ring != nullptr ? reverse_ring->read() : 0);
        }
        return cell;
    }

    bool queue_inline(Channel& channel, const Header& header, const void* data, std::size_t bytes);
    // The channel's queue is full: sends if its peer is on another node, or in another world.
    bool send_elsewhere(const Channel& channel, const Header& header, const Extra* extra,
                        const Source& source, std::size_t bytes) {
        if (!channel.remote) {
            return false;
        }
        return channel.peer < rank_.world_size
                   ? network_->send(rank_.index, channel.peer, header, extra, source, bytes)
                   : bridge_->send(channel.peer, header, extra, source, bytes);
    }
    bool send_through_ring(Channel& channel, const Header& header, BlockReference& reference,
                           const Source& source, std::size_t bytes);
    bool send_through_bounce(Channel& channel, const Header& header, BlockReference& reference,
                             const Source& source, std::size_t bytes, std::uint64_t total);
    bool send_through_chunk(Channel& channel, const Header& header, BlockReference& reference,
                            const Source& source, std::size_t bytes);
    bool is_behind(Channel& channel) const;
    static std::atomic_ref<std::uint64_t> block_mark(Cell& cell) {
        return std::atomic_ref<std::uint64_t>(
            *reinterpret_cast<std::uint64_t*>(cell.payload + block_progress_offset));
    }
    Chunk* free_chunk(std::uint32_t& number);
    // Opens the pair's pair ring when it is due; true when the channel has one now.
    bool open_pair_ring(Channel& channel);
    void accept_pair_ring(std::uint32_t number, std::uint32_t sender);
    static bool fits(std::size_t bytes, std::size_t capacity, std::size_t unit) {
        return bytes == capacity || (bytes < capacity && bytes % unit == 0);
    }
    // The data of a pair ring's next cell: false when it is elsewhere, or doesn't fit.
    [[gnu::always_inline]] static bool take_from_pair_ring(PairRingReceiver& pair_ring,
                                                           const Cell& cell, void* to,
                                                           std::size_t capacity, std::size_t unit,
                                                           std::size_t& bytes) {
        if (cell.place == Place::cell) [[likely]] {
            bytes = cell.length;
            if (!fits(bytes, capacity, unit)) [[unlikely]] {
                return false;
            }
            copy_small(to, cell.payload, bytes);
            return true;
        }
        const auto& reference = *reinterpret_cast<const BlockReference*>(cell.payload);
        if (cell.place != Place::ring || !fits(reference.bytes, capacity, unit)) {
            return false;
        }
        bytes = reference.bytes;
        // The data mostly has the expected position and length. By using these, the processor loads
        // the data while the cell is still in transfer, instead of waiting to read position and
        // length from it. This must be a branch, since a conditional move would wait too: the
        // assembly hides the values from the compiler.
        std::uint32_t position = pair_ring.expected_position();
        std::size_t length = capacity;
        if (reference.position != position || bytes != length) [[unlikely]] {
            position = reference.position;
            length = bytes;
            asm volatile("" : "+r"(position), "+r"(length));
        }
        std::memcpy(to, pair_ring.ring(position), length);
        pair_ring.release_ring(reference.mark);
        return true;
    }
    // Waits a while for a pair ring's next cell; null when it has not come, or something else has.
    const Cell* await_in_pair_ring(const PairRingReceiver& pair_ring) const;
    bool something_else_has_come(const PairRingReceiver& pair_ring) const {
        return queue_.peek() != nullptr || (pair_rings_.size() > 1 && any_but(pair_ring));
    }
    // Whether a cell has come in another pair ring.
    bool any_but(const PairRingReceiver& pair_ring) const {
        for (const PairRingReceiver& other : pair_rings_) {
            if (&other != &pair_ring && other.peek() != nullptr) {
                return true;
            }
        }
        return false;
    }

    // Delivers a pair ring's cell whose data is elsewhere. False: the block's next piece has not
    // come yet.
    template <typename Handler>
    [[gnu::noinline]] bool deliver_block(PairRingReceiver& pair_ring, Cell& cell,
                                         Handler&& handler) {
        Arrival arrival = arrival_of(cell, pair_ring.sender());
        // Read in place: the sender of a bounce block still writes its mark, and only that.
        const auto& reference = *reinterpret_cast<const BlockReference*>(cell.payload);
        arrival.extra = reference.extra;
        arrival.block_bytes = reference.bytes;
        if (cell.place == Place::ring) {
            arrival.data = pair_ring.ring(reference.position);
            arrival.bytes = reference.bytes;
            handler(arrival);
            pair_ring.release_ring(reference.mark);
            pair_ring.pop();
            return true;
        }
        // Acquire pairs with the sender's release after each frame: the bytes are there. A frame
        // is short, so it is worth waiting for the next one right here.
        std::uint64_t mark = block_mark(cell).load(std::memory_order_acquire);
        for (std::uint32_t turn = 0; (mark & ~may_be_kept_bit) == pair_ring.handed; ++turn) {
            if (turn == polls_of_a_frame) {
                return false;
            }
            spin_pause();
            mark = block_mark(cell).load(std::memory_order_acquire);
        }
        const std::uint64_t there = mark & ~may_be_kept_bit;
        const BouncePlace where = BouncePlace::unpacked(reference.position);
        arrival.data = bounces_.memory(where.number) + where.offset() + pair_ring.handed;
        arrival.bytes = static_cast<std::uint32_t>(there - pair_ring.handed);
        if (pair_ring.handed != 0) {
            arrival.header.kind = further_piece;
        }
        handler(arrival);
        pair_ring.handed = there;
        if (there == reference.bytes) {
            bounces_.drop({.number = where.number, .may_be_kept = (mark & may_be_kept_bit) != 0});
            pair_ring.handed = 0;
            pair_ring.pop();
        }
        return true;
    }

    template <typename Handler>
    void deliver_queue_cell(const Cell& cell, Handler&& handler) {
        Arrival arrival = arrival_of(cell, cell.sender);
        if (cell.place == Place::chunk) {
            BlockReference reference;
            std::memcpy(&reference, cell.payload, sizeof reference);
            Chunk& chunk = chunks_[reference.position];
            arrival.data = chunk.data;
            arrival.bytes = reference.bytes;
            arrival.block_bytes = reference.bytes;
            arrival.extra = reference.extra;
            handler(arrival);
            // Release: the data has been read before the owner writes the chunk again.
            chunk.busy.store(0, std::memory_order_release);
        } else if (cell.kind == cell_opens_pair_ring) {
            std::uint32_t number;
            std::memcpy(&number, cell.payload, sizeof number);
            accept_pair_ring(number, cell.sender);
        } else {
            handler(arrival);
        }
        queue_.pop();
    }

    Rank& rank_;
    fabric::Network* const network_;
    std::unique_ptr<bridge::Bridge> bridge_;
    std::uint32_t endpoints_; // there is room for
    QueueEnds& ends_;         // this rank's
    QueueReceiver queue_;
    Chunk* chunks_;                            // of all ranks
    std::uint32_t next_chunk_ = 0;             // where the search for a free one starts
    std::vector<PairRingReceiver> pair_rings_; // inbound
    std::unique_ptr<std::uint32_t[]>
        pair_ring_of_; // by sender: which one; null: there are none yet
    BounceStock bounces_;
    LargeCopy copy_;
};

} // namespace warren::transport
