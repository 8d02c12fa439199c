// Outbox: what waits for space on the way to other ranks: sends, and answers of the protocol.
//
// To each peer they leave in the order in which they came. Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/message/peers.hpp"
#include "mpi/message/protocol.hpp"
#include "mpi/message/transport.hpp"
#include "mpi/message/tuning.hpp"

namespace warren::message {

// Result of an attempt to send.
enum class Step : std::uint8_t {
    no_space,
    gone, // nothing more to send; complete, or waiting for the receiver's answer
};

class Outbox {
  public:
    Outbox(Rank& rank, Transport& transport) : rank_(rank), transport_(transport) {}
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    bool empty() const { return waiting_ == nullptr; }
    std::uint32_t count() const { return count_; }
    // Some sends have sent a part, and could go on.
    bool takes_turns() const { return (modes_ & turns_mode) != 0; }
    // Neither that, nor does a tool observe the rank: progress looks at the transport in the
    // shortest way. (Here, so that it asks one question.)
    bool is_plain() const { return modes_ == 0; }
    bool observed() const { return (modes_ & observed_mode) != 0; }
    void observe(bool on) {
        modes_ = static_cast<std::uint8_t>(on ? modes_ | observed_mode : modes_ & ~observed_mode);
    }

    void enqueue(Peer& peer, Outgoing& outgoing);
    // Takes a send out. False: it is not here.
    bool take_back(Peer& peer, Request& send);

    // Sends a cell now, or when there is space.
    void tell(Peer& peer, const transport::Header& header, const void* data, std::size_t bytes) {
        if (peer.first != nullptr || !transport_.send_inline(peer, header, data, bytes)) {
            tell_later(peer, header, data, bytes);
        }
    }
    void answer(Peer& peer, transport::CellKind kind, const void* data, std::size_t bytes) {
        tell(peer, {.kind = kind, .context = 0, .source = 0, .tag = 0}, data, bytes);
    }

    // Sends what there is space for; advance(peer, send) sends more of a send. Returns whether
    // anything has left.
    template <typename Advance>
    bool push(Advance advance) {
        bool moved = false;
        modes_ &= static_cast<std::uint8_t>(~turns_mode);
        Peer** link = &waiting_;
        while (*link != nullptr) {
            Peer& peer = **link;
            moved |= push_peer(peer, advance);
            if (peer.first == nullptr) {
                *link = peer.next_waiting;
            } else {
                link = &peer.next_waiting;
            }
        }
        return moved;
    }

    // Before a sleep: has the receivers ring when there is space. stands(): nobody has taken that
    // request back.
    void ask_for_space();
    bool asks_for_space() const;
    // The rank is about to sleep.
    void falls_asleep() const { transport_.falls_asleep(); }
    // Whether anything waits for space that there may be yet.
    bool waits_for_space() const;

  private:
    static constexpr std::uint8_t turns_mode = 1;
    static constexpr std::uint8_t observed_mode = 2;

    // An answer that found no space.
    struct Answer : Outgoing {
        Answer() : Outgoing(true) {}

        transport::Header header;
        std::uint8_t length;
        std::byte payload[transport::inline_bytes];
    };

    void tell_later(Peer& peer, const transport::Header& header, const void* data,
                    std::size_t bytes);
    // Nothing waits for it any more.
    void unlink(const Peer& peer);
    // Streams with gaps to one receiver send a part each by turns.
    static void put_last(Peer& peer);
    // False: no space.
    bool push_answer(Peer& peer, Answer* answer);

    template <typename Advance>
    bool push_peer(Peer& peer, Advance advance) {
        bool moved = false;
        std::uint32_t parts = 0;
        while (peer.first != nullptr) {
            Outgoing* outgoing = peer.first;
            // Taken out before it may complete: whoever completes it may free it.
            Outgoing* next = outgoing->next;
            if (outgoing->is_answer) {
                if (!push_answer(peer, static_cast<Answer*>(outgoing))) {
                    return moved;
                }
            } else {
                auto* send = static_cast<Request*>(outgoing);
                const std::uint64_t before = send->sending.moved;
                if (advance(peer, *send) == Step::no_space) {
                    const bool has_moved = send->sending.moved != before;
                    if (!send->laid_out || !has_moved) {
                        return moved || has_moved;
                    }
                    moved = true;
                    put_last(peer);
                    if (++parts < parts_per_turn) {
                        continue;
                    }
                    modes_ |= turns_mode;
                    return true;
                }
            }
            peer.first = next;
            --count_;
            moved = true;
        }
        return moved;
    }

    Rank& rank_;
    Transport& transport_;
    Peer* waiting_ = nullptr; // peers with something waiting
    std::uint32_t count_ = 0;
    std::uint8_t modes_ = 0;
};

} // namespace warren::message
