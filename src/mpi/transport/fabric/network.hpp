// Network: the way to other nodes: the port (port.hpp), where each rank's cells wait for it, and a
// thread that looks after the port while ranks sleep. The fibres of a process share one; a rank
// that is a process or a thread has its own (mpi/entry/enrolment.cpp).
//
// A rank that makes progress polls the port. It hands its own cells on at once, and puts those of
// other ranks of its process into their mail, and rings. While at least one rank of the process
// sleeps, the watcher thread does the same, and waits for the port's descriptor in between. So
// ranks that wait need no time of the processor, whether they are processes, threads or fibres.
//
// Cells may stay in the port until a poll: they linger, or the other process has not accepted the
// connection yet. A rank may compute after its send. So from such a send on the watcher patrols: it
// polls the port now and then, if nobody else has, until all has left.
//
// A rank of another node is named by its endpoint (mpi/job/endpoints.hpp). Frames name the sender
// by its rank in the world, and the receiver by its slot.
//
// Invariants
//  1. Mail is added under the port's lock only. Who hands cells on from the port has taken the
//     rank's mail before, under the same lock: cells of one sender stay in order.
//  2. A rank that is marked asleep has been counted in watched_; the watcher rests only while that
//     is 0. A rank marks itself between the doorbell's prepare() and its sleep, so what the watcher
//     brings afterwards rings.
//  3. While something that was sent has not left, watched_ has the patrol's bit, which changes
//     under the port's lock.
// Thread rule: each rank's functions under that rank's lock; the rest says its own. The port's lock
// is taken after the rank's.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "mpi/job/bootstrap.hpp"
#include "mpi/job/endpoints.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/transport/fabric/port.hpp"
#include "mpi/transport/fabric/pulse.hpp"
#include "mpi/transport/transport.hpp"

namespace warren::transport::fabric {

class Network {
  public:
    // Opens the port of the process whose ranks have these slots. Asks `names`, which lives as
    // long, for other processes' addresses, and has it abort the job when a connection is lost.
    static Error open(const node::Segment& segment, std::uint32_t first_slot, std::uint32_t ranks,
                      std::unique_ptr<node::Bootstrap> names, std::unique_ptr<Network>& opened);
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    // Puts the port's address on the card of the process's first rank, whose bootstrap this is.
    // Others can send to the process after the next fence.
    Error publish(node::Bootstrap& of_first_rank) const;
    // For processes that share their launcher's connection with their rank: from now on this one
    // is asked for addresses. Null: nobody is asked any more.
    void ask(node::Bootstrap* names);

    const node::Endpoints& endpoints() const { return endpoints_; }
    // A line for -v.
    const std::string& why() const { return port_->why(); }

    // --- For the rank with a slot

    // Sends a cell, or a block if `extra` isn't null. False: no space now.
    bool send(std::uint32_t slot, std::uint32_t endpoint, const Header& header, const Extra* extra,
              const Source& source, std::size_t bytes);
    static constexpr std::size_t block_limit = block_bytes_limit;
    static constexpr std::uint32_t looks_per_poll = 8;

    // Hands over what has come for the rank. Returns whether anything has come or left. `awake`: no
    // thread of the rank sleeps. `often`: the rank gives its processor away between its looks.
    template <typename Handler>
    bool poll(std::uint32_t slot, bool awake, bool often, Handler&& handler) {
        Member& member = member_of(slot);
        if (member.asleep && awake) {
            wakes(member);
        }
        bool moved = take_mail(member, handler);
        // To look at the port takes as long as many looks at the queues of the node.
        if (!often && ++member.looks % looks_per_poll != 0) {
            return moved;
        }
        const std::unique_lock guard(port_->lock(), std::try_to_lock);
        if (!guard.owns_lock()) {
            return moved; // who has it brings what comes
        }
        moved |= take_mail(member, handler);
        const bool any = port_->poll([&](const FrameCell& cell) {
            if (cell.header.slot == slot && is_sound(cell)) [[likely]] {
                Readable readable;
                handler(arrival_of(cell.header, cell.extra, cell.data, readable));
            } else {
                deliver(cell);
            }
        });
        if (any && space_wanted_.load(std::memory_order_relaxed) != 0) {
            ring_for_space();
        }
        return moved || any;
    }

    // The rank sleeps until its doorbell rings, or poll() is called again.
    void falls_asleep(std::uint32_t slot);
    // A send of the rank has found no space: it is rung when something has left or come.
    void want_space(std::uint32_t slot);
    // The rank leaves, with all others of the world: connections may end from now on. All that the
    // port was given has left.
    void leave();
    bool is_idle() const;

  private:
    // A copy of a cell from the network: handlers read the cell's fixed part, and what is
    // beside a block, whatever has come.
    struct Readable {
        alignas(8) std::byte data[inline_bytes] = {};
        Extra extra = {};
    };
    struct Mail {
        CellHeader header;
        Extra extra;
        std::vector<std::byte> data;
    };
    struct Member {
        std::mutex mutex; // of the mail
        std::deque<Mail> mail;
        std::atomic<bool> has_mail = false;
        std::atomic<bool> wants_space = false;
        // Under the rank's lock.
        bool asleep = false;
        std::uint32_t looks = 0;
    };
    // The way to a rank of another node.
    struct Way {
        Link* link;
        std::uint32_t slot;
    };
    // A process of another node: its first rank, and how many it has.
    struct Process {
        std::uint32_t first_slot;
        std::uint32_t ranks;
    };

    Network(const node::Segment& segment, std::uint32_t first_slot, std::uint32_t ranks,
            std::unique_ptr<node::Bootstrap> names);

    Member& member_of(std::uint32_t slot) { return *members_[slot - first_slot_]; }
    // Under the port's lock: the network is not trusted.
    bool is_sound(const FrameCell& cell) const {
        return cell.header.sender < endpoints_.world_size() &&
               endpoints_.map().node_of(cell.header.sender) != node_;
    }
    Arrival arrival_of(const CellHeader& header, const std::byte* extra, const std::byte* data,
                       Readable& readable) const {
        if (header.bytes < inline_bytes) {
            if (header.bytes > 0) {
                std::memcpy(readable.data, data, header.bytes);
            }
            data = readable.data;
        }
        return {.header = {.kind = header.kind,
                           .context = header.context,
                           .source = header.source,
                           .tag = header.tag},
                .sender = endpoints_.of(header.sender),
                .bytes = header.bytes,
                .block_bytes = header.bytes,
                .data = data,
                .extra = extra != nullptr ? extra : readable.extra};
    }
    template <typename Handler>
    bool take_mail(Member& member, Handler& handler) {
        if (!member.has_mail.load(std::memory_order_acquire)) [[likely]] {
            return false;
        }
        std::deque<Mail> mail;
        {
            const std::lock_guard guard(member.mutex);
            mail.swap(member.mail);
            member.has_mail.store(false, std::memory_order_relaxed);
        }
        for (const Mail& cell : mail) {
            Readable readable;
            handler(arrival_of(cell.header, cell.header.block != 0 ? cell.extra : nullptr,
                               cell.data.data(), readable));
        }
        return !mail.empty();
    }
    // Puts a cell into the mail of its rank.
    void deliver(const FrameCell& cell);
    void ring(std::uint32_t slot) const;
    void ring_for_space();
    void wakes(Member& member);

    Error way_to(std::uint32_t endpoint, Way& way);
    Error find_process(std::uint32_t node, std::uint32_t slot, Process& found);
    Error resolve(std::uint32_t process, Address& address);
    [[noreturn]] void give_up(const std::string& text);
    // A node with its ranks, for messages.
    std::string described(std::uint32_t node) const;
    void lost(std::uint32_t process, const std::string& cause);
    void look_after_nodes();

    void start_watcher();
    void watch();
    // Brings what has come to the ranks. `may_wait`: the descriptor tells of what comes next.
    bool poll_for_all(bool& may_wait);
    // Waits until something has come, or should be looked for.
    void wait_for_port(bool by_descriptor) const;
    void begin_patrol();
    void patrol();
    timespec patrol_time() const;
    bool patrols() const { return (watched_.load() & patrol_bit) != 0; }

    const node::Segment segment_;
    const node::Endpoints endpoints_;
    const std::uint32_t node_;
    const std::uint32_t first_slot_;
    std::vector<std::unique_ptr<Member>> members_;
    const std::unique_ptr<node::Bootstrap> own_names_;
    node::Bootstrap* names_;                      // under the port's lock, as the next four
    std::unordered_map<std::uint32_t, Way> ways_; // by endpoint
    std::unordered_map<std::uint32_t, std::vector<Process>> processes_; // by node
    std::uint32_t left_ = 0;                                            // ranks that have left
    bool ends_ = false;                                                 // all ranks have left
    std::atomic<std::uint32_t> space_wanted_{0};
    std::unique_ptr<Port> port_;
    Pulse pulse_;

    static constexpr std::uint32_t patrol_bit = std::uint32_t{1} << 31;
    std::atomic<std::uint32_t> watched_{0};   // ranks that sleep, and the patrol's bit
    std::atomic<std::uint32_t> patrol_us_{0}; // from one look of the patrol to the next
    std::uint64_t polls_at_patrol_ = 0;       // the port's, under its lock
    std::atomic<bool> stops_{false};
    int stop_event_ = -1;
    std::thread watcher_;
};

} // namespace warren::transport::fabric
