// Bridge: a rank's way to processes of other worlds on its node: those that it has spawned, that
// have spawned it, or that it has connected to.
//
// Each process listens at the socket that its name leads to (mpi/job/local_socket.hpp). A process
// has one connection for what it sends to another one (Way), and takes what that one sends from
// another (Arriving), so that two that connect at once do not get into each other's way. A
// connection is a stream of frames: a head, a block's extra, data.
//
// A process of another world gets an endpoint when it is first heard of, from world_size on, in the
// order of that; each rank numbers for itself. Endpoints are never used again. Of processes that
// have ended nothing is kept but that their numbers are taken.
//
// A process is connected while communicators have it as a member (retain, release). The end of a
// connected process ends the job. When the last communicator has gone, a frame says goodbye, and
// the connection is closed. Two processes may meet again at once, so a goodbye names the newest
// connection that its sender has seen: it means nothing if a newer one has been opened since.
//
// While the rank sleeps, a thread waits for the sockets, and rings the rank's doorbell, which then
// looks by itself. Thread rule: under the rank's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "mpi/job/world_identity.hpp"
#include "mpi/rank/rank.hpp"
#include "mpi/transport/bridge/tuning.hpp"
#include "mpi/transport/bridge/wire.hpp"
#include "mpi/transport/transport.hpp"

namespace warren::transport::bridge {

// Above: the room above's state by endpoint.
struct Above {
    // Makes room for endpoints below `endpoints`.
    std::function<void(std::uint32_t endpoints)> grow;
    // Forgets these, in order, and takes those out of the list that it can't.
    std::function<void(std::vector<std::uint32_t>& ended)> forget;
};

class Bridge {
  public:
    // Listens. Errors: class MPI_ERR_OTHER.
    static Error open(Rank& rank, Above above, std::unique_ptr<Bridge>& opened,
                      const Patience& patience = {});
    ~Bridge();
    Bridge(const Bridge&) = delete;
    Bridge& operator=(const Bridge&) = delete;

    // --- Processes
    node::ProcessName own_name() const { return own_; }
    // The endpoint of a process, of this world or another one; and back.
    std::uint32_t endpoint_of(const node::ProcessName& process);
    node::ProcessName name_of(std::uint32_t endpoint) const;
    // Connects to a process that listens already. 0, or an errno as connect_to's.
    int reach(std::uint32_t endpoint);

    // Whether the process has ended, or said goodbye.
    bool has_left(std::uint32_t endpoint) { return endpoint >= first_ && way(endpoint).left; }

    // A communicator has the process as a member, or no longer.
    void retain(std::uint32_t endpoint);
    void release(std::uint32_t endpoint);

    // --- Messages, as NodeTransport's
    bool send(std::uint32_t endpoint, const Header& header, const Extra* extra,
              const Source& source, std::size_t bytes);
    // The handler returns false when what has arrived can't be right: its sender is lost then.
    template <typename Handler>
    bool poll(Handler&& handler) {
        const bool news = news_.load(std::memory_order_relaxed) &&
                          news_.exchange(false, std::memory_order_relaxed);
        if (!news && ++looks_ % looks_per_poll != 0) {
            return false;
        }
        return look([&handler](const Arrival& arrival) { return handler(arrival); });
    }
    void falls_asleep();
    // All that was sent is with the kernel.
    bool is_idle() const { return backlogs_ == 0; }
    // The rank leaves MPI: says goodbye to all. Connections may end from now on.
    void leave();
    // The rank is in MPI again, by another session.
    void come_back() { leaves_ = false; }

    // Has the rank look again at this time if it sleeps then; or no longer. Each thread that waits
    // has a time of its own.
    void wake_at(std::uint64_t time_ns);
    void forget_wake(std::uint64_t time_ns);
    // --- Descriptors of others, which end a rank's sleep when they are readable
    void watch(int descriptor);
    void forget(int descriptor);

  private:
    using Handler = std::function<bool(const Arrival&)>;

    struct Way {
        node::ProcessName process;
        int connection = -1;
        std::uint32_t users = 0;      // communicators
        std::uint32_t opened = 0;     // connections to it so far
        std::uint32_t seen = 0;       // the newest of its own that has been heard of
        std::uint64_t give_up_ns = 0; // while it does not listen; 0: it does
        std::uint64_t lacks_descriptors_since_ns = 0; // to connect to it; 0: it doesn't
        std::vector<std::byte> backlog;
        std::size_t sent = 0;     // of the backlog
        bool waits = false;       // for space, by the kernel's word
        bool closes = false;      // once the backlog has left
        bool broke = false;       // the connection, since it was made
        bool left = false;        // the process has said goodbye
        bool ended = false;       // or has ended without
        std::uint32_t newest = 0; // of its connections to this one, by number
    };
    struct Arriving {
        int connection = -1;
        std::uint32_t number = 0;
        std::uint32_t endpoint = 0; // 0: it has not said hello
        std::vector<std::byte> bytes;
        std::size_t begin = 0; // of those that are not taken
        std::size_t end = 0;
        bool goodbye = false;
    };

    Bridge(Rank& rank, Above above, const Patience& patience);

    Error listen();
    Error start_watcher();
    void watcher();
    void nudge_watcher() const;

    Way& way(std::uint32_t endpoint) {
        const auto found = ways_.find(endpoint);
        return found != ways_.end() ? *found->second : forgotten_way(endpoint);
    }
    Way& forgotten_way(std::uint32_t endpoint);
    void forget_ended();
    bool has_gone(std::uint32_t endpoint, const Way& way) const;
    bool look(const Handler& handler);
    void other_end_closed(std::uint32_t endpoint, const Handler& handler);
    void take_connections();
    const char* read(Arriving& arriving, const Handler& handler);
    const char* take_frames(Arriving& arriving, const Handler& handler);
    bool take_hello(Arriving& arriving);
    void arriving_ended(std::uint32_t number, const char* reason);
    void take_goodbye(Arriving& arriving, const FrameHead& head);
    void connect_again(std::uint32_t endpoint);

    void append(Way& way, const FrameHead& head, const Extra* extra, const Source* source);
    bool flush(std::uint32_t endpoint);
    int connect(Way& way);
    void close_way(Way& way);
    void connection_broke(std::uint32_t endpoint);
    void say_goodbye(std::uint32_t endpoint);
    [[noreturn]] void lost(std::uint32_t endpoint, const std::string& cause);
    [[noreturn]] void end_job(const std::string& text);

    Rank& rank_;
    const std::uint32_t first_; // endpoint of another world
    const node::ProcessName own_;
    const Above above_;
    const Patience patience_;
    std::map<std::uint32_t, std::unique_ptr<Way>> ways_; // by endpoint
    std::uint32_t next_endpoint_;
    std::size_t most_ways_ = ways_at_first; // before the ended ones are looked for
    std::map<node::ProcessName, std::uint32_t> endpoints_;
    std::map<std::uint32_t, Arriving> arriving_; // by a number of their own
    std::uint32_t last_arriving_ = 0;
    std::uint32_t backlogs_ = 0; // ways with a backlog
    std::uint32_t looks_ = 0;
    bool leaves_ = false;
    std::uint64_t lacks_descriptors_since_ns_ = 0; // to take a connection; 0: it doesn't
    std::multiset<std::uint64_t> wakes_;           // times

    int listener_ = -1;
    int events_ = -1;
    int nudges_ = -1; // has the watcher ask again how long it may wait
    std::atomic<bool> news_{false};
    std::atomic<std::uint32_t> unreached_{0};  // ways that are to be connected
    std::atomic<std::uint32_t> asleep_{0};     // the watcher's word
    std::atomic<std::uint64_t> wake_at_ns_{0}; // the first of the times; 0: none
    std::atomic<bool> stops_{false};
    std::thread watcher_;
};

} // namespace warren::transport::bridge
