// Rendezvous and direct copies: the receiver takes the data out of the sender's memory, through the
// kernel (offers.hpp) or itself (direct.hpp).

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <span>
#include <sys/uio.h>
#include <utility>

#include "mpi/message/offers.hpp"
#include "mpi/message/payload.hpp"
#include "mpi/message/receiver.hpp"

namespace warren::message {

namespace {

// State of a message that the receiver copies out of the sender's memory.
Trial trial_of_fetch(std::uint64_t stamp, bool unexpected) {
    Trial trial = trial_of(stamp, unexpected);
    trial.method = CopyMethod::fetch;
    return trial;
}

using Pieces = std::array<iovec, transport::NodeTransport::pieces_per_read>;

// Takes `bytes` off the front of a list.
std::span<iovec> without_front(std::span<iovec> pieces, std::uint64_t bytes) {
    while (!pieces.empty() && pieces.front().iov_len <= bytes) {
        bytes -= pieces.front().iov_len;
        pieces = pieces.subspan(1);
    }
    if (bytes > 0) {
        iovec& front = pieces.front();
        front.iov_base = static_cast<std::byte*>(front.iov_base) + bytes;
        front.iov_len -= bytes;
    }
    return pieces;
}

std::uint64_t bytes_of(std::span<const iovec> pieces) {
    std::uint64_t sum = 0;
    for (const iovec& piece : pieces) {
        sum += piece.iov_len;
    }
    return sum;
}

// The sender's data, as pieces of its memory: one piece, or a list that is read part by part.
class TheirPieces {
  public:
    TheirPieces(transport::NodeTransport& transport, std::uint32_t sender,
                const RendezvousData& offered)
        : transport_(transport), sender_(sender), offered_(offered) {}

    // The next pieces, if there are none left; `done` bytes have been copied, `left` are missing.
    transport::PeerCopy refill(std::uint64_t done, std::uint64_t left) {
        using transport::PeerCopy;
        if (!now_.empty()) {
            return PeerCopy::done;
        }
        if (offered_.pieces == 0) {
            list_[0] = {.iov_base = reinterpret_cast<void*>(offered_.address + done),
                        .iov_len = left};
            now_ = {list_.data(), 1};
            return PeerCopy::done;
        }
        const std::uint64_t count = std::min<std::uint64_t>(offered_.pieces - read_, list_.size());
        const PeerCopy result = transport_.read_peer(
            sender_, offered_.address + read_ * sizeof(iovec), list_.data(), count * sizeof(iovec));
        if (count == 0 || result != PeerCopy::done) {
            return count == 0 ? PeerCopy::failed : result;
        }
        read_ += count;
        now_ = {list_.data(), count};
        return PeerCopy::done;
    }
    std::span<const iovec> now() const { return now_; }
    void copied(std::uint64_t bytes) { now_ = without_front(now_, bytes); }

  private:
    transport::NodeTransport& transport_;
    const std::uint32_t sender_;
    const RendezvousData& offered_;
    std::uint64_t read_ = 0; // of the list
    Pieces list_;
    std::span<iovec> now_;
};

} // namespace

void Receiver::arrived_rendezvous(const transport::Arrival& arrival) {
    const auto data = payload_of<RendezvousData>(arrival);
    const Envelope envelope = envelope_of(arrival.header);
    if (Request* receive = posted_.match(envelope)) {
        fetch(*receive, envelope, arrival.sender, data, false);
        return;
    }
    Unexpected& message =
        keep_announced(Unexpected::Form::rendezvous, envelope, arrival.sender, data.bytes);
    message.announced.address = data.address;
    message.announced.pieces = data.pieces;
    message.announced.token = data.sender;
    message.announced.began = data.began;
}

void Receiver::arrived_direct(const transport::Arrival& arrival) {
    const auto data = payload_of<DirectData>(arrival);
    const Envelope envelope = envelope_of(arrival.header);
    if (Request* receive = posted_.match(envelope)) {
        receive_direct(*receive, envelope, arrival.sender, data, false);
        return;
    }
    Unexpected& message =
        keep_announced(Unexpected::Form::direct, envelope, arrival.sender, data.bytes);
    message.announced.address = data.send;
    message.announced.began = data.began;
}

void Receiver::receive_direct(Request& receive, const Envelope& envelope, std::uint32_t sender,
                              const DirectData& data, bool unexpected) {
    accept(receive, envelope, data.bytes);
    Trial trial = {};
    if (data.began != 0) {
        trial = trial_of_fetch(data.began, unexpected);
    }
    reinterpret_cast<DirectSend*>(data.send)->receive(receive.place(), receive.kept(),
                                                      core_.transport.copy());
    core_.rank.ring(sender);
    if (trial.began != 0) {
        trial.ended = node_time_ns();
        judge(core_.peers.of(sender), data.bytes, trial);
    }
    core_.requests.complete(receive);
}

void Receiver::fetch(Request& receive, const Envelope& envelope, std::uint32_t sender,
                     const RendezvousData& offered, bool unexpected) {
    accept(receive, envelope, offered.bytes);
    Trial trial = {};
    if (is_asked_for(receive, sender, offered, trial)) {
        receive.receiving.moved = 0;
        receive.receiving.trial = trial;
        ask_for_rest(receive, sender, offered.sender, 0, trial.method == CopyMethod::pass);
        return;
    }
    if (!trial.asked && Stamp::time(offered.began) != 0) {
        trial = trial_of_fetch(offered.began, unexpected);
    }
    const transport::PeerCopy result = receive.kept() == 0 ? transport::PeerCopy::done
                                       : offered.address == 0
                                           ? transport::PeerCopy::failed
                                           : read_offered(receive, sender, offered);
    if (result == transport::PeerCopy::done) {
        const DoneData done = {.sender = offered.sender, .withdrawn = 0};
        core_.answer(sender, kind::done, &done, sizeof done);
        if (trial.began != 0) [[unlikely]] {
            trial.ended = node_time_ns();
            judge(core_.peers.of(sender), offered.bytes, trial);
        }
        core_.requests.complete(receive);
        return;
    }
    if (result == transport::PeerCopy::refused) {
        core_.transport.advise(sender, no_fetching, no_fetching);
    } else if (trial.began != 0) {
        // Count a failed fetch, so that it is not tried again and again for want of a measurement.
        trial.ended = node_time_ns();
        trial.failed = true;
        judge(core_.peers.of(sender), offered.bytes, trial);
    }
    receive.receiving.moved = 0;
    receive.receiving.trial = {};
    ask_for_rest(receive, sender, offered.sender, 0);
}

bool Receiver::is_asked_for(const Request& receive, std::uint32_t sender,
                            const RendezvousData& offered, Trial& trial) {
    // (A receiver that leaves MPI again would hold up the sender and its buffers.)
    if (offered.began != Stamp::receivers_choice || !receive.awaited || receive.laid_out ||
        receive.kept() != offered.bytes || !core_.transport.awaits(sender)) {
        return false;
    }
    Bulk& bulk = core_.peers.of(sender).bulk();
    std::unique_ptr<Asking>& asking = bulk.asking;
    if (asking == nullptr) {
        asking.reset(new (std::nothrow) Asking);
    }
    return asking != nullptr &&
           asking->next(offered.bytes, trial, !core_.transport.peer_copy_refused(),
                        bulk.offers > 0) != CopyMethod::fetch;
}

transport::PeerCopy Receiver::read_offered(const Request& receive, std::uint32_t sender,
                                           const RendezvousData& offered) {
    return offered.pieces == 0 && !receive.laid_out
               ? core_.transport.fetch_from_peer(sender, offered.address, receive.data,
                                                 receive.kept(),
                                                 core_.peers.of(sender).is_offered_some())
               : read_with_gaps(receive, sender, offered);
}

transport::PeerCopy Receiver::read_with_gaps(const Request& receive, std::uint32_t sender,
                                             const RendezvousData& offered) {
    using transport::PeerCopy;
    const Buffer& buffer = receive.buffer;
    const bool in_place = !receive.laid_out || is_coarse(*buffer.type);
    const std::unique_ptr<std::byte[]> window(
        in_place ? nullptr : new (std::nothrow) std::byte[fetch_window_bytes]);
    if (!in_place && window == nullptr) {
        return PeerCopy::failed;
    }
    TheirPieces theirs(core_.transport, sender, offered);
    Pieces own_list;
    const std::uint64_t kept = receive.kept();
    for (std::uint64_t done = 0; done < kept;) {
        if (const PeerCopy result = theirs.refill(done, kept - done); result != PeerCopy::done) {
            return result;
        }
        const std::uint64_t there = std::min(bytes_of(theirs.now()), kept - done);
        std::size_t own_count = 1;
        if (!in_place) {
            own_list[0] = {.iov_base = window.get(),
                           .iov_len = std::min<std::uint64_t>(there, fetch_window_bytes)};
        } else if (!receive.laid_out) {
            own_list[0] = {.iov_base = receive.data + done, .iov_len = there};
        } else {
            MPI_Count covered;
            own_count = buffer.type->pieces(buffer.base, buffer.count, static_cast<MPI_Count>(done),
                                            static_cast<MPI_Count>(there), own_list.data(),
                                            own_list.size(), covered);
        }
        std::uint64_t copied;
        const PeerCopy result =
            core_.transport.read_peer(sender, theirs.now(), {own_list.data(), own_count}, copied);
        if (result != PeerCopy::done) {
            return result;
        }
        if (!in_place) {
            LaidOut(buffer).take(done, window.get(), copied);
        }
        theirs.copied(copied);
        done += copied;
    }
    return PeerCopy::done;
}

} // namespace warren::message
