// Engine: the point-to-point core of a rank. It owns posted receives, unexpected messages and the
// operations under way, and drives the transport.
//
// Destinations are world ranks: translation by a communicator's rank map happens in the callers.
// Errors of arguments have been found before; what fails here is memory (an Error), or the message
// itself (truncation), which goes into the operation's outcome.
// Thread rule: all calls under the rank's lock; waits release it while they give the processor
// away.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "base/handle_table.hpp"
#include "base/invariant.hpp"
#include "base/late_handle_table.hpp"
#include "base/sparse_array.hpp"
#include "mpi/message/copy_methods.hpp"
#include "mpi/message/matching.hpp"
#include "mpi/message/protocol.hpp"
#include "mpi/message/request.hpp"
#include "mpi/transport/shm/node_transport.hpp"

namespace warren::message {

class Engine {
  public:
    explicit Engine(Rank& rank);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- Blocking calls. The envelope's source is the own rank in the communicator.
    Error send(Operation mode, const Buffer& buffer, std::uint32_t peer, const Envelope& envelope);
    Error receive(const Buffer& buffer, const Envelope& envelope, Outcome& outcome);

    // Sends what can leave at once: true, and nothing is under way. False: nothing has been done.
    bool send_now(const Buffer& buffer, std::uint32_t peer_rank, const Envelope& envelope) {
        if (!leaves_now(buffer, peer_rank, envelope)) {
            return false;
        }
        count(buffer, peer_rank);
        return true;
    }
    // Short messages: up to short_bytes of memory without gaps, through the peer's pair ring, or
    // its queue if it has none, while nothing else is under way that must come first. False:
    // nothing has been done.
    static constexpr std::size_t short_bytes = transport::ring_preferred_limit;
    static_assert(short_bytes <= direct_limit);
    [[gnu::always_inline]] bool send_short(const void* data, std::size_t bytes,
                                           std::uint32_t peer_rank, const Envelope& envelope) {
        Peer* peer = peers_[peer_rank];
        if (bytes > short_bytes || peer == nullptr || peer->first != nullptr) [[unlikely]] {
            return false;
        }
        if (!peer->pair_ring) [[unlikely]] {
            return bytes <= transport::inline_bytes && send_queued(*peer, data, bytes, envelope);
        }
        // Each call has its own header, so that the first one's can stay in registers.
        return bytes <= transport::inline_bytes
                   ? transport_.send_in_pair_ring(*peer, header_of(kind::eager, envelope), data,
                                                  bytes)
                   : transport_.send_block(*peer, header_of(kind::eager, envelope), {}, data,
                                           bytes);
    }
    // Waits for the message for a bounded time. Where ranks take turns, it waits until anything has
    // come if `call` says which call waits, and not at all for no_call. `unit`: the type's size.
    static constexpr std::uint32_t no_call = ~std::uint32_t{0};
    [[gnu::always_inline]] bool receive_short(void* buffer, std::size_t room, std::size_t unit,
                                              std::uint32_t peer_rank, const Envelope& envelope,
                                              std::uint32_t call, std::size_t& bytes) {
        if ((posted_.count() | unexpected_.count()) != 0 || waiting_ != nullptr ||
            stepping_ != nullptr || direct_ != nullptr || rank_.lock.shared()) [[unlikely]] {
            return false;
        }
        if (rank_.takes_turns()) [[unlikely]] {
            return offering_ == nullptr &&
                   receive_queued(buffer, room, unit, envelope, call, bytes);
        }
        return (offering_ == nullptr || await_helping(peer_rank)) &&
               transport_.receive_from_pair_ring(peer_rank, header_of(kind::eager, envelope),
                                                 buffer, room, unit, bytes);
    }

    // The request of all sends that send_now() or send_short() has sent.
    Request& sent() { return *sent_; }

    // Posts a receive of a predefined datatype while no unexpected message is here. Null: nothing
    // has been done.
    Request* receive_later(const Buffer& buffer, const Envelope& envelope) {
        if (!buffer.type->predefined || !buffer.type->contiguous || unexpected_.count() != 0)
            [[unlikely]] {
            return nullptr;
        }
        Request* request = requests_.insert();
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
        request->moved = 0;
        posted_.post(*request);
        return request;
    }

    // --- Operations with a request. make() takes one from the table (null: memory is out);
    // prepare fills it, start begins it (again, if persistent), wait completes it, discard returns
    // it to the table. A request that is discarded before it is complete is abandoned: it goes on
    // and leaves the table when it completes.
    Request* make() { return requests_.insert(); }
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
        return offering_ != nullptr ||
               (request.operation == Operation::receive && CopyMethodClass::is_long(request.bytes));
    }
    void await(Request& request) {
        if (request.offered && !request.awaited) [[unlikely]] {
            await_offered(request);
        }
        request.awaited = true;
    }
    void discard(Request& request);
    // As above, for a request that may never end, because its peer doesn't take part: flush() won't
    // wait for it, nor will its message be received, unless it has been; from here on it needs
    // neither the buffer nor the datatype. What has been announced of a send is withdrawn.
    void orphan(Request& request);
    // Leaves an incomplete request to flush(): nobody else waits for it.
    void leave(Request& request);
    // Takes back a receive that nothing has matched, or a send that nobody has received, if it has
    // not completed. Its outcome says whether it was cancelled: at once, but for a send that has
    // been announced, which completes when its receiver has made progress, or left MPI (or, if a
    // matched probe holds it, received it).
    void cancel(Request& request);
    // Completes a request from outside (generalised requests).
    void complete(Request& request) {
        WARREN_INVARIANT(!request.complete || request.operation == Operation::generalised,
                         "request 1: a request completes once for each start");
        request.complete = true;
        if (request.fate != Fate::attended) [[unlikely]] {
            end_unattended(request);
            return;
        }
        rank_.wake_threads();
    }
    // Begins an operation that is made of others: request.step is asked until it says true.
    void start_stepping(Request& request);

    HandleTable<Request>& requests() { return requests_; }
    // The request of a handle of the program; null when it is none. A request that was freed before
    // it completed exists, but not for the program, unless it is generalised and to be completed.
    Request* held(MPI_Request handle) const {
        Request* request = requests_.find(handle);
        return request != nullptr && request->fate == Fate::abandoned &&
                       request->operation != Operation::generalised
                   ? nullptr
                   : request;
    }

    // --- Probing. A matched message is taken out of the queue and received by receive_matched.
    // peek: progress once and look; wait_for_message: until there is one.
    Unexpected* peek(const Envelope& envelope);
    Unexpected* wait_for_message(const Envelope& envelope);
    void take(Unexpected& message) { unexpected_.remove(message); }
    Error start_matched(Unexpected& message, Request& receive, bool awaited = false);

    // Messages that a matched probe has taken, by their MPI_Message.
    struct Matched {
        Matched(Unexpected* taken, void* of) : message(taken), communicator(of) {}

        Unexpected* message;
        void* communicator; // of the probe
    };
    LateHandleTable<Matched>& matched() { return matched_; }

    // --- Progress, and waiting for something that is not a request (a collective's step).
    bool progress();
    // For calls that don't wait: programs make them again and again.
    void look() {
        rank_.look([this] { return progress(); }, Arrangement<>{*this});
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
        rank_.wait(
            done, [this] { return progress(); }, Arrangement<Watch>{*this, watch},
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

    // Completes what the program no longer waits for: sends that wait for room or for their
    // receiver (abandoned or buffered ones). Abandoned receives end when all ranks of the job are
    // here, since then nobody will send to them. Once, before MPI_Finalize ends.
    void flush();
    // Requests that the program has not completed.
    std::size_t live_requests() const { return requests_.live() - 1; }

    Rank& rank() { return rank_; }
    // For copies of large data to and from memory that ranks share.
    const transport::LargeCopy& copy() const { return transport_.copy(); }
    // Whether to push or pass large data that another rank reads piece by piece from shared memory
    // (no message is sent). The writer measures the time of the whole transfer. Null: no memory for
    // the measurements.
    OwnCopyMethods* writing_for(std::uint32_t peer_rank);

    // The call that the program is in, for WaitReason; set by the entry points.
    std::uint32_t current_call = 0;

  private:
    // A stream that is arriving from a peer: into a receive, or into an unexpected message, which
    // count what they have.
    struct Inbound {
        Request* receive = nullptr;
        Unexpected* message = nullptr;
        std::uint64_t left = 0;
        Trial trial = {};
    };

    struct Peer;

    // Messages of this rank and another that are under way, beside short ones.
    struct Bulk {
        Inbound inbound;
        std::unique_ptr<CopyMethods> methods; // made with the first message that has a choice
        std::unique_ptr<CopyMethodJudge> judge;
        std::unique_ptr<Asking> asking; // made with the first whose way this rank may choose
        std::unique_ptr<OwnCopyMethods> writing;
        std::uint32_t offers = 0;      // sends that it may be fetching with this rank's help
        std::uint32_t awaited = 0;     // of them, those that this rank waits for
        bool told = false;             // its word in the pair ring says that these are all
        Peer* next_offering = nullptr; // among the peers with such
    };

    // Messages under way with another rank.
    struct Peer : transport::Channel {
        Peer(const node::Segment& segment, std::uint32_t to) : Channel(segment, to) {}

        Outgoing* first = nullptr; // waiting for room, in order
        Outgoing* last = nullptr;
        Peer* next_waiting = nullptr; // among the peers with something waiting
        Peer* next_made = nullptr;    // among all
        std::unique_ptr<Bulk> bulk;   // made with the first message that needs it
    };
    // A rank may send one short message to each of thousands: a Peer takes at most two cache lines,
    // of which malloc takes 8 bytes.
    static_assert(sizeof(Peer) <= 2 * node::cache_line_bytes - 8);
    static Bulk& bulk_of(Peer& peer) {
        if (peer.bulk == nullptr) [[unlikely]] {
            peer.bulk = std::make_unique<Bulk>();
        }
        return *peer.bulk;
    }

    // An answer of the protocol that found no room.
    struct Answer : Outgoing {
        Answer() : Outgoing(true) {}

        transport::Header header;
        std::uint8_t length;
        std::byte payload[transport::inline_bytes];
    };

    Peer& peer_of(std::uint32_t world_rank) {
        Peer* peer = peers_[world_rank];
        return peer != nullptr ? *peer : make_peer(world_rank);
    }
    Peer& make_peer(std::uint32_t world_rank);

    // Sending (sending.cpp)
    enum class Step : std::uint8_t {
        no_room,
        gone, // nothing more to send; complete, or waiting for the receiver's answer
    };
    Error begin(Request& request);
    Error begin_send(Request& request);
    // send_now() but for the counting.
    bool leaves_now(const Buffer& buffer, std::uint32_t peer_rank, const Envelope& envelope) {
        if (peer_rank == rank_.index) [[unlikely]] {
            return false;
        }
        Peer& peer = peer_of(peer_rank);
        if (peer.first != nullptr) [[unlikely]] {
            return false;
        }
        if (!buffer.type->contiguous) [[unlikely]] {
            return send_gaps_at_once(peer, envelope, buffer);
        }
        const auto bytes = static_cast<std::uint64_t>(buffer.bytes());
        if (bytes <= transport::inline_bytes) [[likely]] {
            return transport_.send_inline(peer, header_of(kind::eager, envelope), buffer.base,
                                          bytes);
        }
        if (is_fetched(peer, bytes)) [[unlikely]] {
            return false;
        }
        return send_block_at_once(peer, envelope, buffer.base, bytes);
    }
    // Whether the receiver fetches or directly copies the next message of this size without gaps.
    bool is_fetched(const Peer& peer, std::uint64_t bytes) const {
        if (bytes <= direct_limit) {
            return false;
        }
        if (peer.same_space && !is_streamed(peer)) {
            return true;
        }
        return peer.pair_ring && CopyMethodClass::has(bytes) &&
               chosen_method(peer, bytes) == CopyMethod::fetch;
    }
    static CopyMethod chosen_method(const Peer& peer, std::uint64_t bytes);
    // As above, for a send with a request, which has no choice in some cases.
    bool has_choice(const Peer& peer, const Request& send) const;
    // `chosen`: its method if it has a choice, null otherwise.
    static bool is_fetched(const Peer& peer, const Request& send, const CopyMethod* chosen);
    // method_stamp(): the stamp of a message with a choice that is about to be sent by `method`.
    // method_used(): it has been sent.
    static std::uint64_t method_stamp(Peer& peer, std::uint64_t bytes, CopyMethod method);
    static void method_used(Peer& peer, std::uint64_t bytes);
    // Counts bytes per peer for the balancer (runtime/balance/load_table.hpp).
    void count(const Buffer& buffer, std::uint32_t peer) const {
        if (rank_.load != nullptr) {
            balance::count_message(*rank_.load, peer, static_cast<std::uint64_t>(buffer.bytes()));
        }
    }
    // Short messages through queues.
    bool send_queued(Peer& peer, const void* data, std::size_t bytes, const Envelope& envelope);
    bool receive_queued(void* buffer, std::size_t room, std::size_t unit, const Envelope& envelope,
                        std::uint32_t call, std::size_t& bytes);
    // Sends a message that fits one block, from contiguous memory. False: no room now, or it
    // doesn't fit.
    bool send_at_once(Peer& peer, const Envelope& envelope, const void* data, std::uint64_t bytes) {
        return bytes <= transport::inline_bytes
                   ? transport_.send_inline(peer, header_of(kind::eager, envelope), data, bytes)
                   : send_block_at_once(peer, envelope, data, bytes);
    }
    bool send_block_at_once(Peer& peer, const Envelope& envelope, const transport::Source& source,
                            std::uint64_t bytes);
    // As above, from a buffer whose type isn't contiguous.
    bool send_gaps_at_once(Peer& peer, const Envelope& envelope, const Buffer& buffer);
    // goes_direct(): whether a message is copied from buffer to buffer (direct.hpp).
    // streams_gaps(): whether one with gaps is streamed although it is large enough for that.
    bool goes_direct(const Peer& peer, const Request& send, const CopyMethod* chosen) const;
    bool streams_gaps(const Peer& peer, const Buffer& gaps) const;
    // Whether blocks can overlap on their way to a peer.
    bool is_streamed(const Peer& peer) const {
        return transport_.block_limit(peer) > transport_.whole_block_limit(peer);
    }
    static transport::Header header_of(transport::CellKind kind, const Envelope& envelope) {
        return {.kind = kind,
                .context = envelope.context,
                .source = envelope.source,
                .tag = envelope.tag};
    }
    Step advance(Peer& peer, Request& send);
    Step advance_push(Peer& peer, Request& send, const CopyMethod* chosen);
    static bool is_kept_waiting(const Peer& peer, Request& send);
    // `counts`: it has been chosen, and is measured if that is due.
    Step advance_offer(Peer& peer, Request& send, bool counts);
    Step advance_stream(Peer& peer, Request& send);
    // advance_direct(): announces a send to a rank of the same address space. run_direct(): helps
    // with announced ones and completes them.
    Step advance_direct(Peer& peer, Request& send, bool counts);
    bool run_direct();
    // Sends up to `limit` of the bytes that a receiver has asked for. False: no room now.
    bool send_part(Peer& peer, Request& send, std::uint64_t limit);
    // The data from there on, to be pushed or passed as the send is.
    static transport::Source pushed(const Request& send, std::uint64_t from);
    void enqueue(Peer& peer, Outgoing& outgoing);
    // Takes a send out of those that wait for room. False: it is not among them.
    bool take_back(Peer& peer, Request& send);
    // Copies the rest of a stream into the request's own memory. False: no memory.
    static bool keep_rest(Request& send);
    // False: the send has not ended, and may still be received.
    bool cancel_send(Request& send);
    void withdraw(Request& send);
    // end_withdrawal(): takes a send out of the withdrawn ones, if it is there. end_withdrawn():
    // completes one whose withdrawal has succeeded, as cancelled.
    void end_withdrawal(Request& send);
    void end_withdrawn(Request& send);
    // Ends those whose receiver has left MPI (arrival.cpp).
    bool look_for_left();
    // Whether anything waits for room that there may be yet.
    bool waits_for_room() const;
    // Nothing waits for it any more.
    void unlink_waiting(const Peer& peer);
    bool push_waiting();
    bool push_peer(Peer& peer);
    // Streams with gaps to one receiver send a part each by turns.
    static void put_last(Peer& peer);
    std::size_t part_limit(const Peer& peer, const Request& send) const;
    void answer(std::uint32_t to, transport::CellKind kind, const void* data, std::size_t bytes) {
        tell(to, {.kind = kind, .context = 0, .source = 0, .tag = 0}, data, bytes);
    }
    void tell(std::uint32_t to, const transport::Header& header, const void* data,
              std::size_t bytes);
    Error send_to_self(Request& request);
    // Makes a send's data ready to be fetched and describes it for a rendezvous (fetching.cpp).
    RendezvousData offer(const Peer& peer, Request& send);
    // From here on this rank helps the receiver of an offered send (stop_helping() ends that).
    void start_helping(Peer& peer, Request& send);
    void await_offered(const Request& send);
    // Tells the receiver when all that it has been offered is awaited.
    static void tell_awaited(Peer& peer);
    // Whether an offered message should be pushed instead of fetched. `trial` receives its trial,
    // if the receiver has the choice.
    bool is_asked_for(const Request& receive, std::uint32_t sender, const RendezvousData& offered,
                      Trial& trial);
    void stop_helping(Request& send);
    bool help_peers();
    // Waits a while for a short message from a peer, and helps those that may be fetching.
    bool await_helping(std::uint32_t peer_rank);
    void prepare_offer(const Peer& peer, Request& send);

    // Receiving (arrival.cpp)
    struct Arrivals; // handler for the transport's poll()
    void arrived(const transport::Arrival& arrival);
    void arrived_eager(const transport::Arrival& arrival);
    void arrived_unexpected(const transport::Arrival& arrival);
    void arrived_stream_head(const transport::Arrival& arrival);
    void arrived_stream_part(const transport::Arrival& arrival);
    // Records an unexpected message whose data its sender keeps.
    Unexpected& keep_announced(Unexpected::Form form, const Envelope& envelope,
                               std::uint32_t sender, std::uint64_t bytes);
    void arrived_rendezvous(const transport::Arrival& arrival);
    void arrived_direct(const transport::Arrival& arrival);
    void arrived_done(const transport::Arrival& arrival);
    void arrived_withdrawn(const transport::Arrival& arrival);
    void arrived_wanted(const transport::Arrival& arrival);
    void arrived_answer_head(const transport::Arrival& arrival);
    void take_inbound(Peer& peer, const std::byte* data, std::uint64_t bytes);
    void end_stream(const Inbound& inbound);
    // Asks the sender of a message, of which `there` bytes have come, for the rest of what the
    // receive has room for. False when nothing is missing (the sender is told so too).
    bool ask_for_rest(Request& receive, std::uint32_t sender, Token token, std::uint64_t there,
                      bool passes = false);

    void accept(Request& receive, const Envelope& envelope, std::uint64_t available);
    static void judge_length(Request& receive);
    // Completes a receive whose whole message is here. deliver() is inlined in arrival.cpp;
    // deliver_whole() is the out-of-line form.
    void deliver(Request& receive, const Envelope& envelope, const std::byte* data,
                 std::uint64_t bytes);
    void deliver_whole(Request& receive, const Envelope& envelope, const std::byte* data,
                       std::uint64_t bytes);
    // From a send of the rank to itself.
    void deliver_own(Request& receive, const Envelope& envelope, const Request& send);
    // Copies a message's bytes from `first` on to their place in the receive buffer.
    void place(const Request& receive, std::uint64_t first, const std::byte* data,
               std::uint64_t bytes);
    // `unexpected`: the message has waited for its receive.
    void fetch(Request& receive, const Envelope& envelope, std::uint32_t sender,
               const RendezvousData& offered, bool unexpected);
    // A message that carried a time has arrived.
    void judge(Peer& peer, std::uint64_t bytes, const Trial& trial);
    void receive_direct(Request& receive, const Envelope& envelope, std::uint32_t sender,
                        const DirectData& data, bool unexpected);
    transport::PeerCopy read_offered(const Request& receive, std::uint32_t sender,
                                     const RendezvousData& offered, std::uint64_t kept);
    void match_unexpected(Unexpected& message, Request& receive);

    void wait_long(Request& request);
    void end_unattended(Request& request);
    bool run_steps();
    void arrange_sleep();
    bool sleep_is_arranged() const;
    template <typename Watch = NoWatch>
    struct Arrangement {
        Engine& engine;
        Watch watch = {};
        void operator()() const { engine.arrange_sleep(); }
        bool changed() const { return watch(); }
        bool stands() const { return engine.sleep_is_arranged() && !changed(); }
    };
    WaitReason with_counts(WaitReason reason) const;
    WaitReason reason_of(const Request& request) const;
    Request* find(Token token) { return requests_.find(reinterpret_cast<const void*>(token)); }
    static Token token_of(const Request& request) {
        return reinterpret_cast<Token>(HandleTable<Request>::handle_of(request));
    }

    Rank& rank_;
    transport::NodeTransport transport_;
    SparseArray<Peer> peers_; // by world rank, made at first contact
    Peer* made_ = nullptr;    // the first of them
    Peer* waiting_ = nullptr; // peers with something waiting for room
    std::uint32_t waiting_sends_ = 0;
    bool takes_turns_ = false;             // some of them have sent a part, and could go on
    std::uint32_t unattended_ = 0;         // requests that flush() waits for
    std::uint32_t abandoned_receives_ = 0; // nothing has matched them yet
    PostedReceives posted_;
    UnexpectedMessages unexpected_;
    Request* stepping_ = nullptr;  // the newest first
    Request* direct_ = nullptr;    // sends that have been announced; the newest first
    Request* withdrawn_ = nullptr; // sends that are to be taken back; the newest first
    Peer* offering_ = nullptr;     // peers that may be fetching
    bool running_steps_ = false;
    HandleTable<Request> requests_;
    Request* sent_; // from requests_
    LateHandleTable<Matched> matched_;
};

} // namespace warren::message
