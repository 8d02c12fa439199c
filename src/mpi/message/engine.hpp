// Engine: the point-to-point core of a rank. It joins the parts that do the work, and drives them
// whenever the rank makes progress:
//
//   Core           transport, peers, request table, and what waits for space (outbox.hpp)
//   Sender         sends with a request; those that leave at once need none (at_once.hpp)
//   Receiver       posted receives, unexpected messages, arrivals
//   DirectCopies   sends announced to ranks of this address space
//   Withdrawals    announced sends that are to be taken back
//   LostPeers      ends what waits for processes that have ended
//   Stepping       operations that are made of others
//   KindTable      who handles arriving cells of each kind
//
// Destinations are endpoints (mpi/job/endpoints.hpp): translation by a communicator's rank map
// happens in the callers. Errors of arguments have been found before; what fails here is memory (an
// Error), or the message itself (truncation), which goes into the operation's outcome. The short
// path is inline here, and reaches the parts at fixed distances. Thread rule: all calls under the
// rank's lock; waits release it while they give the processor away.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "base/invariant.hpp"
#include "base/late_handle_table.hpp"
#include "mpi/message/at_once.hpp"
#include "mpi/message/core.hpp"
#include "mpi/message/direct_copies.hpp"
#include "mpi/message/farewell.hpp"
#include "mpi/message/kinds.hpp"
#include "mpi/message/lost_peers.hpp"
#include "mpi/message/protocol.hpp"
#include "mpi/message/receiver.hpp"
#include "mpi/message/sender.hpp"
#include "mpi/message/stepping.hpp"
#include "mpi/message/withdrawals.hpp"

namespace warren::message {

// For data that collective operations write into shared memory (writing_for()).
using transport::CopyMethod;
using transport::node_time_ns;
using transport::OwnCopyMethods;

class Engine {
  public:
    // `network`: to the job's other nodes; null: there are none.
    explicit Engine(Rank& rank, transport::fabric::Network* network = nullptr,
                    Senders senders = {});
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- Blocking calls. The envelope's source is the own rank in the communicator.
    Error send(Operation mode, const Buffer& buffer, std::uint32_t peer, const Envelope& envelope);
    Error receive(const Buffer& buffer, const Envelope& envelope, Outcome& outcome);

    // Sends what can leave at once: true, and nothing is under way. False: nothing has been done.
    bool send_now(const Buffer& buffer, std::uint32_t peer_rank, const Envelope& envelope) {
        if (!send_at_once(core_, buffer, peer_rank, envelope)) {
            return false;
        }
        core_.count(buffer, peer_rank);
        if (core_.rank.lock.observed()) [[unlikely]] {
            core_.count_whole(peer_rank, envelope, static_cast<std::uint64_t>(buffer.bytes()));
        }
        return true;
    }
    // Short messages: up to short_bytes of memory without gaps, through the peer's pair ring, or
    // its queue if it has none, while nothing else is under way that must come first. False:
    // nothing has been done.
    static constexpr std::size_t short_bytes = transport::ring_preferred_limit;
    static_assert(short_bytes <= transport::direct_limit);
    [[gnu::always_inline]] bool send_short(const void* data, std::size_t bytes,
                                           std::uint32_t peer_rank, const Envelope& envelope) {
        Peer* peer = core_.peers.find(peer_rank);
        if (bytes > short_bytes || peer == nullptr || peer->first != nullptr) [[unlikely]] {
            return false;
        }
        if (!peer->pair_ring) [[unlikely]] {
            return bytes <= transport::inline_bytes &&
                   send_queued(core_, *peer, data, bytes, envelope);
        }
        // Each call has its own header, so that the first one's can stay in registers.
        return bytes <= transport::inline_bytes
                   ? core_.transport.send_in_pair_ring(*peer, header_of(kind::eager, envelope),
                                                       data, bytes)
                   : core_.transport.send_block(*peer, header_of(kind::eager, envelope), {}, data,
                                                bytes);
    }
    // Waits for the message for a bounded time. Where ranks take turns, it waits until anything has
    // come if `call` says which call waits, and not at all for no_call. `unit`: the type's size.
    static constexpr std::uint32_t no_call = ~std::uint32_t{0};
    [[gnu::always_inline]] bool receive_short(void* buffer, std::size_t capacity, std::size_t unit,
                                              std::uint32_t peer_rank, const Envelope& envelope,
                                              std::uint32_t call, std::size_t& bytes) {
        if (!receiver_.idle() || !core_.outbox.empty() || !stepping_.empty() || !direct_.empty() ||
            core_.rank.lock.closed()) [[unlikely]] {
            return false;
        }
        if (core_.rank.waits.all_by_queue) [[unlikely]] {
            return core_.transport.offers().empty() &&
                   receive_queued(buffer, capacity, unit, envelope, call, bytes);
        }
        return (core_.transport.offers().empty() || core_.transport.await_helping(peer_rank)) &&
               core_.transport.receive_from_pair_ring(peer_rank, header_of(kind::eager, envelope),
                                                      buffer, capacity, unit, bytes);
    }

    // The request of all sends that send_now() or send_short() has sent.
    Request& sent() { return *sent_; }

    // Posts a receive of a predefined datatype while no unexpected message is here. Null: nothing
    // has been done.
    Request* receive_later(const Buffer& buffer, const Envelope& envelope) {
        if (!buffer.type->predefined || !buffer.type->contiguous ||
            receiver_.unexpected().count() != 0) [[unlikely]] {
            return nullptr;
        }
        Request* request = core_.requests.make();
        if (request == nullptr) [[unlikely]] {
            return nullptr;
        }
        request->operation = Operation::receive;
        request->active = true;
        request->complete = false;
        request->plain = true;
        request->buffer = buffer;
        request->envelope = envelope;
        request->laid_out = false;
        request->data = static_cast<std::byte*>(buffer.base);
        request->bytes = static_cast<std::uint64_t>(buffer.bytes());
        receiver_.post(*request);
        return request;
    }

    // --- Operations with a request. make() takes one from the table (null: memory is out);
    // prepare fills it, start begins it (again, if persistent), wait completes it, discard returns
    // it to the table. A request that is discarded before it is complete is abandoned: it goes on
    // and leaves the table when it completes.
    Request* make() { return core_.requests.make(); }
    static void prepare_send(Request& request, Operation mode, const Buffer& buffer,
                             std::uint32_t peer, const Envelope& envelope);
    static void prepare_receive(Request& request, const Buffer& buffer, const Envelope& envelope);
    // `awaited`: its caller will wait for it before it leaves MPI.
    Error start(Request& request, bool awaited = false);
    void wait(Request& request) {
        if (!request.complete) [[likely]] {
            wait_long(request);
        }
    }
    // The caller won't leave MPI before the request is complete (but for the functions of
    // generalized requests): large messages may then be pushed. (wait() says so, too; this is for
    // several, of which one might be large.)
    bool may_be_pushed(const Request& request) const {
        return !core_.transport.offers().empty() ||
               (request.is_receive() && transport::CopyMethodClass::is_long(request.bytes));
    }
    void await(Request& request) {
        // (A request that was complete from the start, to MPI_PROC_NULL for one, has no state.)
        if (!request.complete && request.is_send() && request.sending.offered && !request.awaited)
            [[unlikely]] {
            transport::Offers::await(core_.peers.of(request.peer));
        }
        request.awaited = true;
    }
    void discard(Request& request) { core_.requests.discard(request); }
    // As above, for a request that may never end, because its peer doesn't take part: flush() won't
    // wait for it, nor will its message be received, unless it has been; from here on it needs
    // neither the buffer nor the datatype. What has been announced of a send is withdrawn.
    void orphan(Request& request);
    // Takes back a receive that nothing has matched, or a send that nobody has received, if it has
    // not completed. Its outcome says whether it was cancelled: at once, but for a send that has
    // been announced, which completes when its receiver has made progress, or left MPI (or, if a
    // matched probe holds it, received it).
    void cancel(Request& request);
    // Begins an operation that is made of others: request.stepping.step is asked until it says
    // true.
    void start_stepping(Request& request) { stepping_.start(request); }

    RequestTable& requests() { return core_.requests; }

    // --- Probing. A matched message is taken out of the queue and received by receive_matched.
    // peek: progress once and look; wait_for_message: until there is one, or null: nobody is left
    // who could send it, which peek says by `in_vain`.
    Unexpected* peek(const Envelope& envelope, bool& in_vain);
    Unexpected* wait_for_message(const Envelope& envelope);
    void take(Unexpected& message) { receiver_.unexpected().remove(message); }
    void start_matched(Unexpected& message, Request& receive, bool awaited = false);

    // Messages that a matched probe has taken, by their MPI_Message.
    struct Matched {
        Matched(Unexpected* taken, void* of) : message(taken), communicator(of) {}

        Unexpected* message;
        void* communicator; // of the probe
    };
    LateHandleTable<Matched>& matched() { return matched_; }

    // --- Progress, and waiting for something that is not a request (a collective's step).
    bool progress();
    // For calls that don't wait: programs make them again and again. When others may have run
    // since it looked, it looks again, but not for a probe: a program that probes and tests in turn
    // could find a message that was sent after the end of an operation, while that still seems to
    // be under way.
    template <bool probes = false>
    void look() {
        const bool others_may_have_run =
            core_.rank.look([this] { return progress(); }, Arrangement<>{core_.outbox, lost_});
        if (others_may_have_run && !probes) [[unlikely]] {
            progress();
        }
    }
    // `what` describes the wait in mpiexec's account of a hang. `watch` is called before each
    // sleep, after everything that would wake this rank has been arranged; true: call done() again.
    // (By any thread of the rank, under its lock.)
    struct NoWatch {
        bool operator()() const { return false; }
    };
    template <typename Done, typename Watch = NoWatch>
    void wait_until(Done done, const WaitReason& what, BroughtBy brought_by = BroughtBy::progress,
                    const void* event = nullptr, Watch watch = {}) {
        core_.rank.wait(
            done, [this] { return progress(); }, Arrangement<Watch>{core_.outbox, lost_, watch},
            [&] { return with_counts(what); }, brought_by, event);
    }
    // wait() for a request that may have to be given up: until it is complete, or given_up() says
    // so, which is asked whenever watch() has said true.
    template <typename GivenUp, typename Watch>
    void wait_unless(Request& request, GivenUp given_up, Watch watch) {
        if (!request.complete) {
            wait_until([&] { return request.complete || given_up(); }, reason_of(request),
                       BroughtBy::progress, nullptr, watch);
        }
    }

    // --- Kinds of other rooms (protocol.hpp). register_kind: has handler(owner, arrival) called
    // for each arriving cell of a kind, in the order of its sender's sends, eager messages among
    // them; it may send, but not wait. Before any rank sends one. tell: sends a cell with up to
    // inline_bytes of data to a rank's handler, now or when there is space.
    void register_kind(transport::CellKind kind, void* owner, KindTable::Handler handler) {
        kinds_.add(kind, owner, handler);
    }
    void tell(std::uint32_t peer, const transport::Header& header, const void* data,
              std::size_t bytes) {
        core_.outbox.tell(core_.peers.of(peer), header, data, bytes);
    }

    // Completes what the program no longer waits for: sends that wait for space or for their
    // receiver (abandoned or buffered ones). Abandoned receives end when all ranks of the job are
    // here, since then nobody will send to them. Once, before MPI_Finalize ends.
    void flush();

    Rank& rank() { return core_.rank; }
    // For copies of large data to and from memory that ranks share.
    const transport::LargeCopy& copy() const { return core_.transport.copy(); }
    // Whether to push or pass large data that another rank reads piece by piece from shared memory
    // (no message is sent). The writer measures the time of the whole transfer. Null: no memory for
    // the measurements.
    OwnCopyMethods* writing_for(std::uint32_t peer_rank) {
        return transport::Plans::writing_for(core_.peers.of(peer_rank));
    }

    // The call that the program is in, for WaitReason; set by the entry points.
    std::uint32_t current_call = 0;

  private:
    friend class EngineView;
    friend class OtherWorlds;
    struct Arrivals; // handler for the transport's poll()
    struct Leaving;  // the end of flush() in a job of several nodes
    struct CountedArrivals;
    struct ForeignArrivals;
    struct StrangeArrivals;

    // A short message through the queue.
    bool receive_queued(void* buffer, std::size_t capacity, std::size_t unit,
                        const Envelope& envelope, std::uint32_t call, std::size_t& bytes);

    void wait_long(Request& request);
    template <typename Watch = NoWatch>
    struct Arrangement {
        Outbox& outbox;
        LostPeers& lost;
        Watch watch = {};
        void operator()() const { outbox.ask_for_space(); }
        bool changed() const { return watch(); }
        bool finds_lost() const { return lost.look(); }
        bool stands() const {
            if (finds_lost() || !outbox.asks_for_space() || changed()) {
                return false;
            }
            outbox.falls_asleep();
            return true;
        }
    };
    WaitReason with_counts(WaitReason reason) const;
    WaitReason reason_of(const Request& request) const;

    Core core_;
    DirectCopies direct_;
    Withdrawals withdrawals_;
    Receiver receiver_;
    Sender sender_;
    LostPeers lost_;
    Stepping stepping_;
    Farewell farewell_;
    KindTable kinds_;
    Request* sent_; // from the table
    LateHandleTable<Matched> matched_;
};

} // namespace warren::message
