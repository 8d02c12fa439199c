// Rendezvous and direct copies: the receiver takes the data out of the sender's memory, through the
// kernel (offers.hpp) or itself (direct.hpp).

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <span>
#include <sys/uio.h>
#include <utility>

#include "mpi/message/offered_data.hpp"
#include "mpi/message/payload.hpp"
#include "mpi/message/receiver.hpp"

namespace warren::message {

namespace {

using Pieces = std::array<iovec, transport::PeerMemory::pieces_per_read>;

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
    TheirPieces(transport::PeerMemory& memory, std::uint32_t sender,
                const transport::RemoteMemory& offered, bool listed)
        : memory_(memory),
          sender_(sender),
          offered_(offered),
          pieces_(listed ? offered.length / sizeof(iovec) : 0) {}

    // The next pieces, if there are none left; `done` bytes have been copied, `left` are missing.
    transport::PeerCopy refill(std::uint64_t done, std::uint64_t left) {
        using transport::PeerCopy;
        if (!now_.empty()) {
            return PeerCopy::done;
        }
        if (pieces_ == 0) {
            list_[0] = {.iov_base = reinterpret_cast<void*>(offered_.address + done),
                        .iov_len = left};
            now_ = {list_.data(), 1};
            return PeerCopy::done;
        }
        const std::uint64_t count = std::min<std::uint64_t>(pieces_ - read_, list_.size());
        const PeerCopy result = memory_.read(sender_, offered_.address + read_ * sizeof(iovec),
                                             list_.data(), count * sizeof(iovec));
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
    transport::PeerMemory& memory_;
    const std::uint32_t sender_;
    const transport::RemoteMemory offered_;
    const std::uint64_t pieces_; // in the list; 0: no list
    std::uint64_t read_ = 0;     // of the list
    Pieces list_;
    std::span<iovec> now_;
};

} // namespace

void Receiver::arrived_rendezvous(const transport::Arrival& arrival) {
    const auto data = payload_of<RendezvousData>(arrival);
    take_offer(arrival, {.memory = data.memory,
                         .sender = data.sender,
                         .bytes = data.memory.length,
                         .listed = false,
                         .began = data.began});
}

void Receiver::arrived_rendezvous_list(const transport::Arrival& arrival) {
    const auto data = payload_of<RendezvousListData>(arrival);
    take_offer(arrival, {.memory = data.list,
                         .sender = data.sender,
                         .bytes = data.bytes,
                         .listed = true,
                         .began = 0});
}

void Receiver::take_offer(const transport::Arrival& arrival, const Offered& offered) {
    const Envelope envelope = envelope_of(arrival.header);
    if (Request* receive = posted_.match(envelope)) {
        fetch(*receive, envelope, arrival.sender, offered, false);
        return;
    }
    Unexpected& message =
        keep_announced(offered.listed ? Unexpected::Form::listed : Unexpected::Form::rendezvous,
                       envelope, arrival.sender, offered.bytes);
    message.announced.memory = offered.memory;
    message.announced.token = offered.sender;
    message.announced.began = offered.began;
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
    message.announced.direct = data.send;
    message.announced.began = data.began;
}

void Receiver::receive_direct(Request& receive, const Envelope& envelope, std::uint32_t sender,
                              const DirectData& data, bool unexpected) {
    accept(receive, envelope, data.bytes);
    const Trial trial = transport::Plans::trial_of_taken(data.began, unexpected);
    reinterpret_cast<DirectSend*>(data.send)->receive(receive.place(), receive.kept(),
                                                      core_.transport.copy());
    core_.rank.ring(sender);
    if (trial.began != 0) {
        core_.transport.plans().arrived(core_.peers.of(sender), data.bytes, trial);
    }
    core_.requests.complete(receive);
}

void Receiver::fetch(Request& receive, const Envelope& envelope, std::uint32_t sender,
                     const Offered& offered, bool unexpected) {
    using transport::PeerCopy;
    accept(receive, envelope, offered.bytes);
    Peer& peer = core_.peers.of(sender);
    Trial trial = {};
    if (is_asked_for(receive, peer, offered, trial)) {
        receive.receiving.moved = 0;
        receive.receiving.trial = trial;
        ask_for_rest(receive, sender, offered.sender, 0,
                     trial.method == transport::CopyMethod::pass);
        return;
    }
    if (!trial.asked) {
        trial = transport::Plans::trial_of_taken(offered.began, unexpected);
    }
    const bool fetches =
        offered.memory.address != 0 && offered.bytes >= core_.transport.memory().fetched_from;
    const PeerCopy result = receive.kept() == 0 ? PeerCopy::done
                            : fetches           ? read_offered(receive, sender, offered)
                                                : PeerCopy::failed;
    if (result == PeerCopy::done) {
        const DoneData done = {.sender = offered.sender, .withdrawn = 0};
        core_.answer(sender, kind::done, &done, sizeof done);
        core_.transport.plans().arrived(peer, offered.bytes, trial);
        core_.requests.complete(receive);
        return;
    }
    if (result == PeerCopy::refused) {
        core_.transport.plans().refuse_get(sender);
    } else {
        // Count a failed fetch, so that it is not tried again and again for want of a measurement.
        trial.failed = true;
        core_.transport.plans().arrived(peer, offered.bytes, trial);
    }
    receive.receiving.moved = 0;
    receive.receiving.trial = {};
    ask_for_rest(receive, sender, offered.sender, 0);
}

bool Receiver::is_asked_for(const Request& receive, Peer& sender, const Offered& offered,
                            Trial& trial) {
    // (A receiver that leaves MPI again would hold up the sender and its buffers.)
    return transport::Plans::is_open(offered.began) && receive.awaited && !receive.laid_out &&
           receive.kept() == offered.bytes &&
           core_.transport.plans().asks_for_push(sender, offered.bytes, trial);
}

transport::PeerCopy Receiver::read_offered(const Request& receive, std::uint32_t sender,
                                           const Offered& offered) {
    if (offered.listed || receive.laid_out) {
        return read_with_gaps(receive, sender, offered);
    }
    transport::RemoteMemory wanted = offered.memory;
    wanted.length = receive.kept();
    return core_.transport.get(core_.peers.of(sender), wanted, receive.data);
}

transport::PeerCopy Receiver::read_with_gaps(const Request& receive, std::uint32_t sender,
                                             const Offered& offered) {
    using transport::PeerCopy;
    const Buffer& buffer = receive.buffer;
    const bool in_place = !receive.laid_out || is_coarse(*buffer.type);
    const std::unique_ptr<std::byte[]> window(
        in_place ? nullptr : new (std::nothrow) std::byte[fetch_window_bytes]);
    if (!in_place && window == nullptr) {
        return PeerCopy::failed;
    }
    TheirPieces theirs(core_.transport.memory(), sender, offered.memory, offered.listed);
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
        const PeerCopy result = core_.transport.memory().read(sender, theirs.now(),
                                                              {own_list.data(), own_count}, copied);
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
