// Port: a process's way to the processes of other nodes, over libfabric.
//
// A process has one port: one endpoint for reliable messages (FI_EP_RDM, FI_MSG) of the provider
// and interface that provider.hpp chooses. To each process that it talks to it has a Link.
//
// Sending. Cells go into the link's open frame. The first one leaves at once. What follows soon,
// before the next poll(), lingers, so that many cells leave in one frame: at linger_bytes, or from
// poll(), as does what can't leave now (no credit, or the provider has no room). Who sends may not
// poll for long, so the port's owner looks after what lingers (network.hpp).
// Receiving. The provider puts frames into a few large buffers (FI_MULTI_RECV). poll() checks each
// frame and hands its cells to a function.
//
// Invariants
//  1. A link has at most credit_frames frames that its peer has not consumed, so a process that is
//     away holds at most so many frames of each sender. Frames without cells, which only say what
//     has been consumed, may exceed that by credit_reserve: two processes whose links are both full
//     can still tell each other, each once per credit_told_after frames.
//  2. Frames of a link are handed over in the order of their numbers. A provider may complete a
//     small frame before a large one that was sent earlier (ofi_rxm does): the small one is kept.
//     A frame with a number that was there is refused.
//  3. A frame buffer is open in one link, being sent, or in the stock.
//  4. Each receive buffer is posted once: again when the provider says that it has given it back,
//     be it with a message or with an error.
// Thread rule: under the port's lock, which callers take. What handlers of poll() send is sent
// under the same lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "mpi/transport/fabric/frame.hpp"
#include "mpi/transport/fabric/libfabric.hpp"
#include "mpi/transport/fabric/provider.hpp"
#include "mpi/transport/fabric/tuning.hpp"
#include "mpi/transport/source.hpp"

namespace warren::transport::fabric {

// A port's address, as others need it. Long enough for the addresses of all providers that
// provider.hpp knows; it starts with the provider's name, since both ends need the same one.
inline constexpr std::size_t address_limit = 128;
using Address = std::vector<std::byte>;

// A buffer of one frame that is sent; what the provider knows of a send is in its head.
struct SendFrame {
    fi_context2 context;
    SendFrame* next_free;
    std::uint32_t process; // to whom, for messages of errors
    std::uint32_t number;  // among the port's frames
    std::uint32_t bytes;   // so far
    std::uint32_t cells;
    alignas(8) std::byte data[frame_bytes_limit];
};

// The order of frames' numbers, which are close to each other, modulo 2^32.
struct EarlierFrame {
    bool operator()(std::uint32_t one, std::uint32_t other) const {
        return static_cast<std::int32_t>(one - other) < 0;
    }
};

// The way to one other process.
struct Link {
    fi_addr_t address = FI_ADDR_UNSPEC; // until this process sends to it
    SendFrame* open = nullptr;
    std::uint64_t sent_at = 0; // the last frame, in ticks
    std::uint64_t sent_in = 0; // the last frame: the port's polls before it
    std::uint32_t process = 0;
    std::uint32_t sent = 0;     // frames, modulo 2^32, as all counts
    std::uint32_t consumed = 0; // of them, by the peer, as far as it has told
    std::uint32_t received = 0; // frames from it
    std::uint32_t told = 0;     // of them, what the peer has been told
    std::map<std::uint32_t, std::vector<std::byte>, EarlierFrame> early; // frames before their turn
    Link* next_waiting = nullptr; // among those that have something to send
    bool waits = false;
    bool failed = false;
};

class Port {
  public:
    struct Identity {
        std::uint64_t secret = 0;  // of the job
        std::uint32_t process = 0; // the world rank of this process's first rank
        std::uint32_t ranks = 0;   // of the world: frames name senders below it
    };
    // The address of a process; asked once for each that is talked to.
    using Resolve = std::function<Error(std::uint32_t process, Address& address)>;
    // A process can't be reached any more, or sends what it may not.
    using Fail = std::function<void(std::uint32_t process, const std::string& cause)>;

    static Error open(const Identity& identity, const Wish& wish, Resolve resolve, Fail fail,
                      std::unique_ptr<Port>& opened);
    ~Port();
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    std::recursive_mutex& lock() { return lock_; }
    const Address& address() const { return address_; }
    // A line for -v that names the provider and says why it was chosen.
    const std::string& why() const { return why_; }

    // The link to a process. An error: it has no address, or one that means nothing here.
    Error link_to(std::uint32_t process, Link*& link);

    // Sends a cell with up to inline_bytes of data (`extra` null), or a block of up to
    // block_bytes_limit. False: no room now; nothing has been done.
    bool send(Link& link, const CellHeader& header, const Extra* extra, const Source& source);
    // Nothing waits to leave, and the provider has sent all it was given. Else some cells may leave
    // only if somebody polls: they linger or wait, or the provider still has them, because a
    // connection is not there yet or takes no more for now.
    bool is_idle() const { return waiting_ == nullptr && under_way_ == 0; }
    // Polls up to now.
    std::uint64_t polls() const { return polls_; }

    // Hands the cells of what has come to handler(const FrameCell&), and sends what waits. Returns
    // whether anything had come or left.
    template <typename Handler>
    bool poll(Handler&& handler) {
        ++polls_;
        std::array<fi_cq_data_entry, entries_at_once> entries;
        const std::size_t count = read_completions(entries);
        for (std::size_t number = 0; number < count; ++number) {
            const fi_cq_data_entry& entry = entries[number];
            if ((entry.flags & (FI_RECV | FI_MULTI_RECV)) == 0) {
                end_send(entry.op_context);
                continue;
            }
            // (The end of a buffer may be told without a message.)
            if ((entry.flags & FI_RECV) != 0) {
                take({static_cast<const std::byte*>(entry.buf), entry.len}, handler);
            }
            if ((entry.flags & FI_MULTI_RECV) != 0) {
                repost_buffer(entry.op_context);
            }
        }
        return send_waiting() || count != 0;
    }

    // Hands over the cells of a frame that has come, and of those that came before their turn.
    template <typename Handler>
    void take(std::span<const std::byte> bytes, Handler& handler) {
        FrameReader frame(bytes, identity_.secret);
        Link* const link = accept(frame, bytes);
        if (link == nullptr) {
            return;
        }
        hand_over(frame, handler);
        consume(*link);
        while (has_early(*link)) {
            const std::vector<std::byte> early = std::move(link->early.begin()->second);
            link->early.erase(link->early.begin());
            FrameReader next(early, identity_.secret);
            hand_over(next, handler);
            consume(*link);
        }
    }

    // The descriptor that becomes readable when something has come; -1: the provider has none.
    int wait_descriptor() const { return wait_descriptor_; }
    // Whether a thread may wait for the descriptor now: nothing has come yet.
    bool may_wait();

    // Frames that were refused: of no sender of the job, damaged or sent twice.
    std::uint64_t refused() const { return refused_; }
    std::size_t buffers_posted() const { return buffers_posted_; }
    std::uint64_t frames_sent() const { return frames_sent_; }

  private:
    struct ReceiveBuffer {
        fi_context2 context;
        std::byte* data;
        fid_mr* registration;
    };
    static constexpr std::size_t entries_at_once = 16;

    Port(const Identity& identity, Resolve resolve, Fail fail)
        : identity_(identity), resolve_(std::move(resolve)), fail_(std::move(fail)) {}

    Error choose_offer(const Wish& wish);
    Error open_endpoint();
    Error read_address();
    Error post_buffers();
    Error failed(const char* what, ssize_t code) const;
    void* descriptor_of(const void* memory, std::size_t bytes, fid_mr*& registration, Error& error);

    std::size_t read_completions(std::array<fi_cq_data_entry, entries_at_once>& entries);
    void read_error();
    void discard_arrivals();
    // The link of a frame that is its next one. Null: it is refused, or kept for later.
    Link* accept(const FrameReader& frame, std::span<const std::byte> bytes);
    // Whether the frame after the last has come early.
    static bool has_early(const Link& link) {
        return !link.early.empty() && link.early.begin()->first == link.received;
    }
    template <typename Handler>
    static void hand_over(FrameReader& frame, Handler& handler) {
        FrameCell cell;
        while (frame.next(cell)) {
            handler(static_cast<const FrameCell&>(cell));
        }
    }
    void consume(Link& link);
    void post_buffer(void* context);
    void repost_buffer(void* context) {
        --buffers_posted_;
        post_buffer(context);
    }
    // Only a frame from its peer lets a link that waits go on.
    bool waits_for_credit(const Link& link) const {
        return link.open != nullptr && !has_credit(link) && !owes_credit(link);
    }
    void end_send(void* context);

    Link& link_of(std::uint32_t process);
    SendFrame* take_frame();
    void give_frame(SendFrame& frame);
    static bool has_credit(const Link& link) { return link.sent - link.consumed < credit_frames; }
    // The peer should learn what has been consumed.
    static bool owes_credit(const Link& link) {
        return link.received - link.told >= credit_told_after;
    }
    bool post_credit(Link& link);
    FrameHeader header_of(const Link& link, std::uint32_t bytes, std::uint32_t cells) const;
    void count_sent(Link& link);
    bool open_frame(Link& link);
    // Sends the open frame; a frame that only gives credits. False: not now.
    bool post(Link& link);
    // Whether the open frame waits for more cells.
    bool lingers(const Link& link) const;
    void wait_to_send(Link& link);
    bool send_waiting();
    void fail_link(Link& link, const std::string& cause);

    const Identity identity_;
    const Resolve resolve_;
    const Fail fail_;
    std::recursive_mutex lock_;
    Libfabric library_;
    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_cq* completions_ = nullptr;
    fid_ep* endpoint_ = nullptr;
    int wait_descriptor_ = -1;
    Address address_;
    std::string why_;

    std::vector<std::unique_ptr<ReceiveBuffer>> buffers_;
    std::unordered_map<std::uint32_t, Link> links_;
    Link* waiting_ = nullptr; // links with something to send
    std::vector<std::unique_ptr<SendFrame>> frames_;
    std::vector<fid_mr*> registrations_; // of frames, if the provider wants them
    SendFrame* free_frames_ = nullptr;
    std::uint32_t under_way_ = 0;
    std::size_t inject_bytes_ = 0;
    std::size_t buffers_posted_ = 0;
    std::uint64_t refused_ = 0;
    std::uint64_t frames_sent_ = 0;
    std::uint64_t polls_ = 0;
};

} // namespace warren::transport::fabric
