#include "mpi/transport/bridge/bridge.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi.h"
#include "mpi/job/endpoints.hpp"
#include "mpi/job/local_socket.hpp"

namespace warren::transport::bridge {

namespace {

Error no_descriptor(const char* what) {
    return fail(MPI_ERR_OTHER, "%s for processes of other worlds: %s", what,
                node::text_of_socket_error(errno).c_str());
}

} // namespace

Bridge::Bridge(Rank& rank, Above above, const Patience& patience)
    : rank_(rank),
      first_(rank.world_size),
      own_{.world = node::world_number(rank.segment), .rank = rank.world_rank},
      above_(std::move(above)),
      patience_(patience),
      next_endpoint_(first_) {}

Error Bridge::open(Rank& rank, Above above, std::unique_ptr<Bridge>& opened,
                   const Patience& patience) {
    if (rank.size != rank.world_size) {
        return fail(MPI_ERR_UNSUPPORTED_OPERATION,
                    "processes of other worlds can't be reached from a job of several nodes");
    }
    std::unique_ptr<Bridge> bridge(new Bridge(rank, std::move(above), patience));
    if (Error error = bridge->listen()) {
        return error;
    }
    if (Error error = rank.bootstrap().connecting_contexts().open()) {
        return error;
    }
    if (Error error = bridge->start_watcher()) {
        return error;
    }
    rank.meets_other_worlds = true;
    rank.segment.at(node::world_identity)->connected.store(1, std::memory_order_relaxed);
    opened = std::move(bridge);
    return {};
}

Error Bridge::listen() {
    events_ = epoll_create1(EPOLL_CLOEXEC);
    nudges_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events_ < 0 || nudges_ < 0) {
        return no_descriptor("no descriptor");
    }
    listener_ = node::listen_at(node::socket_of(own_), SOCK_STREAM, connections_waiting);
    if (listener_ < 0) {
        return no_descriptor("no socket");
    }
    add_event(events_, listener_, EPOLLIN, of_listener);
    return {};
}

Bridge::~Bridge() {
    if (watcher_.joinable()) {
        stops_.store(true);
        nudge_watcher();
        asleep_.store(1);
        kernel_wake(asleep_, 1);
        watcher_.join();
    }
    for (const auto& [endpoint, way] : ways_) {
        if (way->connection >= 0) {
            close(way->connection);
        }
    }
    for (const auto& [number, arriving] : arriving_) {
        close(arriving.connection);
    }
    for (const int descriptor : {listener_, events_, nudges_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

// --- Processes

std::uint32_t Bridge::endpoint_of(const node::ProcessName& process) {
    if (process.world == own_.world) {
        return node::Endpoints(rank_.segment).of(process.rank);
    }
    const auto found = endpoints_.find(process);
    if (found != endpoints_.end()) {
        return found->second;
    }
    if (ways_.size() >= most_ways_) {
        forget_ended();
        most_ways_ = std::max(ways_at_first, 2 * ways_.size());
    }
    const std::uint32_t endpoint = next_endpoint_++;
    above_.grow(endpoint + 1);
    ways_[endpoint] = std::make_unique<Way>();
    ways_[endpoint]->process = process;
    endpoints_.emplace(process, endpoint);
    return endpoint;
}

node::ProcessName Bridge::name_of(std::uint32_t endpoint) const {
    if (endpoint < first_) {
        return {.world = own_.world, .rank = node::Endpoints(rank_.segment).world_rank(endpoint)};
    }
    const auto found = ways_.find(endpoint);
    return found != ways_.end() ? found->second->process : node::ProcessName{};
}

// Who has left, and whom nobody finds any more: a process listens as long as it may be met.
bool Bridge::has_gone(std::uint32_t endpoint, const Way& way) const {
    if (way.users != 0 || !way.left || way.connection >= 0 || !way.backlog.empty() ||
        std::any_of(arriving_.begin(), arriving_.end(), [endpoint](const auto& arriving) {
            return arriving.second.endpoint == endpoint;
        })) {
        return false;
    }
    const int connection =
        way.ended ? -1 : node::connect_to(node::socket_of(way.process), SOCK_STREAM);
    if (connection >= 0) {
        close(connection);
    }
    return way.ended || (connection < 0 && errno == ECONNREFUSED);
}

void Bridge::forget_ended() {
    std::vector<std::uint32_t> ended;
    for (const auto& [endpoint, way] : ways_) {
        if (has_gone(endpoint, *way)) {
            ended.push_back(endpoint);
        }
    }
    above_.forget(ended);
    for (const std::uint32_t endpoint : ended) {
        endpoints_.erase(ways_.at(endpoint)->process);
        ways_.erase(endpoint);
    }
}

// A group may still name it, or a caller at a port.
Bridge::Way& Bridge::forgotten_way(std::uint32_t endpoint) {
    std::unique_ptr<Way>& made = ways_[endpoint];
    made = std::make_unique<Way>();
    made->left = true;
    made->ended = true;
    return *made;
}

int Bridge::reach(std::uint32_t endpoint) {
    if (endpoint < first_) {
        return 0;
    }
    Way& its = way(endpoint);
    its.left = false;
    its.closes = false; // a goodbye may be under way
    return its.connection >= 0 ? 0 : connect(its);
}

void Bridge::retain(std::uint32_t endpoint) {
    Way& its = way(endpoint);
    if (++its.users == 1) {
        its.left = false;
        its.closes = false;
    }
    if (its.ended) {
        lost(endpoint, "its process has ended");
    }
}

void Bridge::release(std::uint32_t endpoint) {
    if (--way(endpoint).users == 0) {
        say_goodbye(endpoint);
    }
}

void Bridge::say_goodbye(std::uint32_t endpoint) {
    Way& its = way(endpoint);
    its.closes = true;
    if (its.connection < 0 && its.backlog.empty()) {
        its.closes = false;
        return; // nobody has been reached
    }
    append(its,
           {.bytes = 0,
            .kind = 0,
            .flags = static_cast<std::uint16_t>(leaves_ ? goodbye | leaves : goodbye),
            .context = its.seen,
            .source = 0,
            .tag = 0},
           nullptr, nullptr);
    flush(endpoint);
}

void Bridge::leave() {
    leaves_ = true;
    // Who has only sent to this process learns of its end, too.
    for (const auto& [number, arriving] : arriving_) {
        if (arriving.endpoint != 0 && !arriving.goodbye && way(arriving.endpoint).connection < 0 &&
            way(arriving.endpoint).backlog.empty()) {
            connect(way(arriving.endpoint));
        }
    }
    for (const auto& [endpoint, its] : ways_) {
        if (its->connection >= 0) {
            say_goodbye(endpoint);
        }
    }
}

void Bridge::lost(std::uint32_t endpoint, const std::string& cause) {
    usleep(patience_.lost_us);
    const node::ProcessName name = name_of(endpoint);
    end_job(std::string(node::lost_world_text) + "the connection to " +
            (name.world != 0 ? "its rank " + std::to_string(name.rank) : "one of its ranks") +
            " was lost, because " + cause);
}

void Bridge::end_job(const std::string& text) {
    if (rank_.bootstrap().abort(node::JobEnd::fatal_error, 1, text.c_str()) ==
        node::Bootstrap::Told::nobody) {
        std::fprintf(stderr, "warren: rank %u: %s\n", rank_.world_rank, text.c_str());
    }
    std::_Exit(1);
}

// --- Sending

void Bridge::append(Way& way, const FrameHead& head, const Extra* extra, const Source* source) {
    if (way.backlog.empty()) {
        ++backlogs_;
        if (way.connection < 0 && way.give_up_ns == 0) {
            way.give_up_ns = monotonic_ns() + patience_.listen_ns;
            way.lacks_descriptors_since_ns = 0;
            unreached_.fetch_add(1);
            nudge_watcher();
        }
    }
    // A stream may never let the backlog run empty.
    if (way.sent >= backlog_limit) {
        way.backlog.erase(way.backlog.begin(),
                          way.backlog.begin() + static_cast<std::ptrdiff_t>(way.sent));
        way.sent = 0;
    }
    const std::size_t begin = way.backlog.size();
    const std::size_t extra_size = extra != nullptr ? extra_bytes : 0;
    way.backlog.resize(begin + sizeof head + extra_size + head.bytes);
    std::byte* to = way.backlog.data() + begin;
    std::memcpy(to, &head, sizeof head);
    to += sizeof head;
    if (extra != nullptr) {
        std::memcpy(to, *extra, extra_bytes);
        to += extra_bytes;
    }
    if (head.bytes != 0) {
        source->copy(head.bytes, to);
    }
}

bool Bridge::send(std::uint32_t endpoint, const Header& header, const Extra* extra,
                  const Source& source, std::size_t bytes) {
    Way& its = way(endpoint);
    if (its.left) {
        return true; // nobody takes it any more
    }
    if (its.backlog.size() - its.sent > backlog_limit) {
        return false;
    }
    its.closes = false;
    append(its,
           {.bytes = static_cast<std::uint32_t>(bytes),
            .kind = header.kind,
            .flags = extra != nullptr ? has_extra : std::uint16_t{0},
            .context = header.context,
            .source = header.source,
            .tag = header.tag},
           extra, &source);
    if (!its.waits) {
        flush(endpoint);
    }
    return true;
}

// 0, or an errno.
int Bridge::connect(Way& way) {
    way.connection = node::connect_to(node::socket_of(way.process), SOCK_STREAM);
    if (way.connection < 0) {
        return errno;
    }
    way.ended = false;
    way.broke = false;
    if (way.give_up_ns != 0) {
        way.give_up_ns = 0;
        unreached_.fetch_sub(1);
    }
    const Hello hello = {
        .magic = hello_magic, .world = own_.world, .rank = own_.rank, .connection = ++way.opened};
    if (way.backlog.empty()) {
        ++backlogs_;
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(&hello);
    way.backlog.insert(way.backlog.begin(), bytes, bytes + sizeof hello);
    // The other end's close is seen, whether anything is sent or not.
    add_event(events_, way.connection, EPOLLRDHUP, of_way | endpoints_.at(way.process));
    flush(endpoints_.at(way.process));
    // (Who only had this to say may have closed the connection already.)
    return way.broke ? ECONNREFUSED : 0;
}

// While its process does not listen yet, or its queue is full.
void Bridge::connect_again(std::uint32_t endpoint) {
    Way& its = way(endpoint);
    const int reason = connect(its);
    if (reason == 0 || its.give_up_ns == 0) {
        return; // or it has ended, and nobody is connected to it
    }
    const std::uint64_t now = monotonic_ns();
    if (node::lacks_descriptors(reason)) {
        if (its.lacks_descriptors_since_ns == 0) {
            its.lacks_descriptors_since_ns = now;
        } else if (now - its.lacks_descriptors_since_ns > patience_.descriptor_ns) {
            end_job("no connection to a process of another world: " +
                    node::text_of_socket_error(reason));
        }
        return;
    }
    its.lacks_descriptors_since_ns = 0;
    if (reason == ECONNREFUSED && (its.opened != 0 || its.newest != 0)) {
        connection_broke(endpoint); // it has listened before
        return;
    }
    if (reason == EPERM || now > its.give_up_ns) {
        lost(endpoint,
             reason == ECONNREFUSED ? "it does not listen" : node::text_of_socket_error(reason));
    }
}

// Sends what can leave. Returns whether anything has.
bool Bridge::flush(std::uint32_t endpoint) {
    Way& its = way(endpoint);
    if (its.connection < 0) {
        return connect(its) == 0; // or later: connect_again
    }
    bool moved = false;
    while (its.sent < its.backlog.size()) {
        const ssize_t done = ::send(its.connection, its.backlog.data() + its.sent,
                                    its.backlog.size() - its.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
            if (!std::exchange(its.waits, true)) {
                change_event(events_, its.connection, EPOLLRDHUP | EPOLLOUT, of_way | endpoint);
            }
            return moved;
        }
        if (done < 0) {
            connection_broke(endpoint);
            return moved;
        }
        its.sent += static_cast<std::size_t>(done);
        moved = true;
    }
    if (std::exchange(its.waits, false)) {
        change_event(events_, its.connection, EPOLLRDHUP, of_way | endpoint);
    }
    if (!its.backlog.empty()) {
        --backlogs_;
        its.backlog.clear();
        its.sent = 0;
        if (its.backlog.capacity() > backlog_kept) {
            its.backlog.shrink_to_fit();
        }
    }
    if (its.closes) {
        close_way(its);
    }
    return moved;
}

void Bridge::close_way(Way& way) {
    if (!way.backlog.empty()) {
        --backlogs_;
        way.backlog = {};
        way.sent = 0;
    }
    if (way.give_up_ns != 0) {
        way.give_up_ns = 0;
        unreached_.fetch_sub(1);
    }
    if (way.connection >= 0) {
        close(std::exchange(way.connection, -1)); // and its events
    }
    way.waits = false;
    way.closes = false;
}

// The process at the other end has gone, or closes connections.
void Bridge::connection_broke(std::uint32_t endpoint) {
    Way& its = way(endpoint);
    close_way(its);
    its.broke = true;
    if (its.users > 0 && !its.left && !leaves_) {
        lost(endpoint, "its process has ended");
    }
    its.ended = its.ended || !its.left;
    its.left = true;
}

} // namespace warren::transport::bridge
