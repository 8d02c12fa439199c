#include "mpi/transport/shm/node_transport.hpp"

#include <cstring>

namespace warren::transport {

NodeTransport::NodeTransport(Rank& rank, fabric::Network* network)
    : rank_(rank),
      network_(network),
      endpoints_(rank.world_size),
      ends_(queue_ends_of(rank.slot)),
      queue_(rank.segment, rank.index),
      chunks_(rank.segment.at(chunks)),
      bounces_(rank) {}

bool NodeTransport::queue_inline(Channel& channel, const Header& header, const void* data,
                                 std::size_t bytes) {
    if (open_pair_ring(channel)) {
        return send_inline(channel, header, data, bytes);
    }
    std::uint32_t position;
    Cell* cell = channel.queue.claim(position);
    if (cell == nullptr) {
        return send_elsewhere(channel, header, nullptr, data, bytes);
    }
    fill(*cell, header);
    cell->sender = rank_.index;
    cell->place = Place::cell;
    cell->length = static_cast<std::uint8_t>(bytes);
    copy_small(cell->payload, data, bytes);
    QueueSender::publish(*cell, position);
    Doorbell::ring(rank_.header(), channel.queue.doorbell());
    return true;
}

bool NodeTransport::send_block(Channel& channel, const Header& header, const Extra& extra,
                               const Source& source, std::size_t bytes, std::uint64_t total) {
    BlockReference reference = {};
    std::memcpy(reference.extra, extra, extra_bytes);
    reference.bytes = static_cast<std::uint32_t>(bytes);
    if (channel.pair_ring || open_pair_ring(channel)) {
        return bytes <= whole_block_limit(channel)
                   ? send_through_ring(channel, header, reference, source, bytes)
                   : send_through_bounce(channel, header, reference, source, bytes, total);
    }
    return send_through_chunk(channel, header, reference, source, bytes);
}

bool NodeTransport::send_through_ring(Channel& channel, const Header& header,
                                      BlockReference& reference, const Source& source,
                                      std::size_t bytes) {
    Cell* cell = claim_in_pair_ring(channel);
    if (cell == nullptr) {
        return false;
    }
    std::byte* place = channel.pair_ring.claim_ring(static_cast<std::uint32_t>(bytes), reference);
    if (place == nullptr) {
        return false;
    }
    source.copy(bytes, place);
    channel.pair_ring.commit_ring(reference);
    fill(*cell, header);
    cell->place = Place::ring;
    std::memcpy(cell->payload, &reference, sizeof reference);
    channel.pair_ring.publish(*cell);
    channel.pair_ring.prefetch_ring(bytes);
    Doorbell::ring(rank_.header(), channel.queue.doorbell());
    return true;
}

namespace {

// Size of a frame. Frames are small while the receiver waits, so that its copy begins early, and
// larger while it is behind, since each publication costs both ranks a cache line transfer.
// Publishing a passed frame waits for memory: a long message has equal frames, of which only the
// last is left to copy for the receiver when all are published.
std::size_t frame_bytes(std::size_t bytes, std::uint64_t total, bool receiver_is_behind,
                        bool passes) {
    constexpr std::size_t kilo = 1024;
    if (passes && total > bounce_bytes) {
        return 64 * kilo;
    }
    if (receiver_is_behind && passes) {
        return 128 * kilo;
    }
    if (total > bounce_bytes) {
        return (receiver_is_behind ? 64 : 32) * kilo;
    }
    if (receiver_is_behind) {
        return bytes <= 16 * kilo ? bytes : 12 * kilo;
    }
    return bytes <= 16 * kilo ? 4 * kilo : (bytes <= 48 * kilo ? 8 * kilo : 12 * kilo);
}

} // namespace

// Whether the receiver is behind, with one more block under way. A cell from it in the opposite
// pair ring shows that it is not, without a read of a line that it writes.
bool NodeTransport::is_behind(Channel& channel) const {
    const std::uint32_t number =
        pair_ring_of_ != nullptr ? pair_ring_of_[channel.peer] : no_pair_ring;
    const auto heard =
        static_cast<std::uint16_t>(number != no_pair_ring ? pair_rings_[number].read() : 0);
    if (channel.heard != heard) {
        channel.heard = heard;
        channel.blocks_in_a_row = 0;
    }
    if (channel.blocks_in_a_row < blocks_until_behind) {
        ++channel.blocks_in_a_row;
    }
    return channel.blocks_in_a_row == blocks_until_behind;
}

bool NodeTransport::send_through_bounce(Channel& channel, const Header& header,
                                        BlockReference& reference, const Source& source,
                                        std::size_t bytes, std::uint64_t total) {
    Cell* cell = claim_in_pair_ring(channel);
    if (cell == nullptr) {
        return false;
    }
    Bounce bounce;
    if (!bounces_.take(bounce)) {
        // One receiver that is away may hold them all; the ring is the pair's own.
        return bytes <= ring_block_limit &&
               send_through_ring(channel, header, reference, source, bytes);
    }
    const std::uint64_t kept = bounce.may_be_kept ? may_be_kept_bit : 0;
    const bool behind = is_behind(channel);
    const std::size_t frame = frame_bytes(bytes, total, behind, source.passes());
    const std::byte* data = source.data();
    const BouncePlace where = {.number = bounce.number,
                               .turn = behind ? bounces_.next_turn(bounce.number, bytes) : 0,
                               .shift = BouncePlace::shift_of(data)};
    std::byte* place = bounces_.memory(where.number) + where.offset();
    std::size_t done = 0;
    while (true) {
        const std::size_t left = bytes - done;
        // A short tail goes with the last frame.
        const std::size_t step = left > frame + frame / 2 ? frame : left;
        if (source.passes()) {
            LargeCopy::pass(place + done, data + done, step);
        } else if (data != nullptr) [[likely]] {
            copy_.put(place + done, data + done, step);
        } else {
            source.write(done, step, place + done);
        }
        done += step;
        if (done == step) {
            reference.position = where.packed();
            reference.mark = done | kept;
            fill(*cell, header);
            cell->place = Place::bounce;
            std::memcpy(cell->payload, &reference, sizeof reference);
            channel.pair_ring.publish(*cell);
        } else {
            block_mark(*cell).store(done | kept, std::memory_order_release);
        }
        if (done == bytes) {
            break;
        }
    }
    Doorbell::ring(rank_.header(), channel.queue.doorbell());
    return true;
}

bool NodeTransport::send_through_chunk(Channel& channel, const Header& header,
                                       BlockReference& reference, const Source& source,
                                       std::size_t bytes) {
    if (!channel.queue.has_space()) {
        return send_elsewhere(channel, header, &reference.extra, source, bytes);
    }
    Chunk* chunk = free_chunk(reference.position);
    if (chunk == nullptr) {
        return false;
    }
    std::uint32_t position;
    Cell* cell = channel.queue.claim(position);
    if (cell == nullptr) {
        return false;
    }
    chunk->busy.store(channel.peer + 1, std::memory_order_relaxed);
    source.copy(bytes, chunk->data);
    fill(*cell, header);
    cell->sender = rank_.index;
    cell->place = Place::chunk;
    std::memcpy(cell->payload, &reference, sizeof reference);
    QueueSender::publish(*cell, position);
    Doorbell::ring(rank_.header(), channel.queue.doorbell());
    return true;
}

Chunk* NodeTransport::free_chunk(std::uint32_t& number) {
    const std::uint32_t first = rank_.index * chunks_per_rank;
    for (std::uint32_t i = 0; i < chunks_per_rank; ++i) {
        const std::uint32_t mine = (next_chunk_ + i) % chunks_per_rank;
        Chunk& chunk = chunks_[first + mine];
        // Acquire pairs with the receiver's release: it has read what was in it.
        if (chunk.busy.load(std::memory_order_acquire) == 0) {
            next_chunk_ = mine + 1;
            number = first + mine;
            return &chunk;
        }
    }
    return nullptr;
}

bool NodeTransport::open_pair_ring(Channel& channel) {
    const node::Segment& segment = rank_.segment;
    // A rank that shares its processor gains nothing from a pair ring: the switch between ranks
    // dwarfs it.
    if (segment.units(pair_rings) == 0) {
        return false;
    }
    if (channel.cells_before_pair_ring == Channel::pair_ring_refused) {
        return false;
    }
    if (channel.cells_before_pair_ring < limits.cells_until_pair_ring) {
        if (channel.cells_before_pair_ring < Channel::most_cells) {
            ++channel.cells_before_pair_ring;
        }
        return false;
    }
    std::uint32_t position;
    if (!channel.queue.has_space()) {
        return false;
    }
    channel.cells_before_pair_ring = Channel::pair_ring_refused; // unless it is opened below
    std::atomic<std::uint32_t>& inbound =
        queue_ends_of(segment.slot(channel.peer)).inbound_pair_rings;
    if (inbound.fetch_add(1, std::memory_order_relaxed) >= pair_rings_per_receiver) {
        inbound.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    const std::uint32_t number =
        segment.at(pair_rings_opened)->fetch_add(1, std::memory_order_relaxed);
    if (number >= segment.units(pair_rings) || !segment.commit_units(pair_rings, number, 1)) {
        return false;
    }
    Cell* cell = channel.queue.claim(position);
    if (cell == nullptr) {
        return false; // the pair ring is lost, the queue goes on
    }
    fill(*cell, {.kind = cell_opens_pair_ring, .context = 0, .source = 0, .tag = 0});
    cell->sender = rank_.index;
    cell->place = Place::cell;
    cell->length = sizeof number;
    std::memcpy(cell->payload, &number, sizeof number);
    QueueSender::publish(*cell, position);
    channel.pair_ring = PairRingSender(PairRing::at(rank_.segment, number));
    return true;
}

void NodeTransport::accept_pair_ring(std::uint32_t number, std::uint32_t sender) {
    if (pair_ring_of_ == nullptr) {
        // Also for those of other nodes and worlds, which have none: they may be asked for.
        pair_ring_of_.reset(new std::uint32_t[endpoints_]);
        std::fill_n(pair_ring_of_.get(), endpoints_, no_pair_ring);
    }
    pair_ring_of_[sender] = static_cast<std::uint32_t>(pair_rings_.size());
    pair_rings_.emplace_back(PairRing::at(rank_.segment, number), sender);
}

void NodeTransport::grow(std::uint32_t endpoints) {
    if (pair_ring_of_ != nullptr) {
        std::unique_ptr<std::uint32_t[]> larger(new std::uint32_t[endpoints]);
        std::copy_n(pair_ring_of_.get(), endpoints_, larger.get());
        std::fill(larger.get() + endpoints_, larger.get() + endpoints, no_pair_ring);
        pair_ring_of_ = std::move(larger);
    }
    endpoints_ = endpoints;
}

void NodeTransport::want_space(std::uint32_t at) {
    waiters_for_space(at)[rank_.index / 64].fetch_or(std::uint64_t{1} << rank_.index % 64,
                                                     std::memory_order_relaxed);
    // Release: who takes the 1 away finds the bit.
    queue_ends_of(rank_.segment.slot(at)).space_wanted.store(1, std::memory_order_release);
}

const Cell* NodeTransport::await_in_pair_ring(const PairRingReceiver& pair_ring) const {
    for (std::uint32_t turn = 0; turn < polls_of_a_pair_ring; ++turn) {
        if (something_else_has_come(pair_ring)) [[unlikely]] {
            return nullptr;
        }
        spin_pause();
        if (const Cell* cell = pair_ring.peek()) {
            return cell;
        }
    }
    return nullptr;
}

void NodeTransport::ask_for_space(const Channel& channel) {
    if (channel.remote) {
        if (channel.peer < rank_.world_size) {
            network_->want_space(rank_.index);
        }
        return; // (The bridge's thread rings for space by itself.)
    }
    want_space(channel.peer);
    if (channel.pair_ring) {
        if (!bounces_.ask_for_return()) {
            // One has come back since: the attempt that follows will find it. Nothing to wait for.
        }
        return;
    }
    const std::uint32_t first = rank_.index * chunks_per_rank;
    for (std::uint32_t i = 0; i < chunks_per_rank; ++i) {
        const std::uint32_t holder = chunks_[first + i].busy.load(std::memory_order_relaxed);
        if (holder != 0) {
            want_space(holder - 1);
        }
    }
}

void NodeTransport::ring_space_waiters() {
    if (ends_.space_wanted.exchange(0, std::memory_order_acquire) == 0) {
        return;
    }
    std::atomic<std::uint64_t>* words = waiters_for_space(rank_.index);
    for (std::uint32_t word = 0; word < waiter_words(); ++word) {
        if (words[word].load(std::memory_order_relaxed) == 0) {
            continue;
        }
        std::uint64_t bits = words[word].exchange(0, std::memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) {
            rank_.ring(word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
        }
    }
}

void NodeTransport::advise(std::uint32_t peer, std::uint32_t mask, std::uint32_t bits) {
    if (const PairRingReceiver* pair_ring = pair_ring_from(peer)) {
        const std::uint32_t before = pair_ring->advice().load(std::memory_order_relaxed);
        const std::uint32_t after = (before & ~mask) | bits;
        if (after != before) {
            pair_ring->advice().store(after, std::memory_order_relaxed);
        }
    }
}

} // namespace warren::transport
