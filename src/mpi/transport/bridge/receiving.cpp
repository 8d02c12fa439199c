// The bridge's second half: what arrives, and the thread that waits for it.

#include "mpi/transport/bridge/bridge.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "base/futex.hpp"
#include "mpi.h"
#include "mpi/job/local_socket.hpp"
#include "mpi/rank/doorbell.hpp"
#include "mpi/transport/bridge/wire.hpp"
#include "mpi/transport/fabric/frame.hpp"

namespace warren::transport::bridge {

namespace {

constexpr int events_at_once = 32;

// Why nothing more comes by a connection.
constexpr const char* has_ended = "its process has ended";
constexpr const char* is_damaged = "it has sent damaged data";

// Only blocks are longer than a cell.
bool is_sound(const FrameHead& head) {
    switch (head.flags) {
    case 0:
        return head.bytes <= inline_bytes;
    case has_extra:
        return head.bytes <= fabric::block_bytes_limit;
    case goodbye:
    case goodbye | leaves:
        return head.bytes == 0;
    default:
        return false;
    }
}

int milliseconds_until(std::uint64_t time_ns) {
    constexpr std::uint64_t ms = 1'000'000;
    const std::uint64_t now = monotonic_ns();
    return time_ns <= now
               ? 0
               : static_cast<int>(std::min<std::uint64_t>((time_ns - now) / ms + 1, 1'000'000));
}

} // namespace

// --- Receiving

bool Bridge::look(const Handler& handler) {
    bool moved = false;
    if (unreached_.load(std::memory_order_relaxed) != 0) {
        for (const auto& [endpoint, its] : ways_) {
            if (its->give_up_ns != 0) {
                connect_again(endpoint);
                moved |= its->give_up_ns == 0;
            }
        }
    }
    epoll_event events[events_at_once];
    const int count = epoll_wait(events_, events, events_at_once, 0);
    for (int index = 0; index < count; ++index) {
        const std::uint64_t origin = events[index].data.u64 >> 32 << 32;
        const auto number = static_cast<std::uint32_t>(events[index].data.u64);
        if (origin == of_listener) {
            take_connections();
            moved = true;
        } else if (origin == of_way) {
            if (way(number).connection >= 0) {
                moved |= flush(number);
            }
            if ((events[index].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
                moved = true;
                other_end_closed(number, handler);
            }
        } else if (origin == of_arriving) {
            const auto found = arriving_.find(number);
            if (found != arriving_.end()) {
                moved = true;
                if (const char* end = read(found->second, handler)) {
                    arriving_ended(number, end);
                }
            }
        } else {
            moved = true; // somebody else's, who is asked next
        }
    }
    return moved;
}

// Reads first what the process has sent before, a goodbye perhaps.
void Bridge::other_end_closed(std::uint32_t endpoint, const Handler& handler) {
    take_connections();
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, arriving] : arriving_) {
        if (arriving.endpoint == endpoint || arriving.endpoint == 0) {
            numbers.push_back(number);
        }
    }
    for (const std::uint32_t number : numbers) {
        if (const char* end = read(arriving_.at(number), handler)) {
            arriving_ended(number, end);
        }
    }
    if (way(endpoint).connection >= 0) {
        connection_broke(endpoint);
    }
}

void Bridge::take_connections() {
    for (int taken = 0; taken < connections_at_once; ++taken) {
        const int connection = node::accept_own(listener_);
        if (connection < 0) {
            if (!node::lacks_descriptors(errno)) {
                lacks_descriptors_since_ns_ = 0;
            } else if (lacks_descriptors_since_ns_ == 0) {
                lacks_descriptors_since_ns_ = monotonic_ns();
            } else if (monotonic_ns() - lacks_descriptors_since_ns_ > patience_.descriptor_ns) {
                end_job("a connection of another world can't be taken: " +
                        node::text_of_socket_error(errno));
            }
            return;
        }
        lacks_descriptors_since_ns_ = 0;
        const std::uint32_t number = ++last_arriving_;
        arriving_[number] = {.connection = connection, .number = number, .bytes = {}};
        add_event(events_, connection, EPOLLIN, of_arriving | number);
    }
}

// Null, or why nothing more comes.
const char* Bridge::read(Arriving& arriving, const Handler& handler) {
    constexpr std::size_t least_space = 16 * 1024;
    std::size_t total = 0;
    while (total < read_at_once) {
        if (arriving.begin == arriving.end) {
            arriving.begin = arriving.end = 0;
        }
        if (arriving.bytes.size() - arriving.end < least_space) {
            arriving.bytes.erase(arriving.bytes.begin(),
                                 arriving.bytes.begin() +
                                     static_cast<std::ptrdiff_t>(arriving.begin));
            arriving.end -= arriving.begin;
            arriving.begin = 0;
            if (arriving.bytes.size() - arriving.end < least_space) {
                arriving.bytes.resize(std::max(2 * arriving.bytes.size(), 2 * least_space));
            }
        }
        // (Receivers may read a whole cell's bytes of a shorter one: there is space behind.)
        const ssize_t got = recv(arriving.connection, arriving.bytes.data() + arriving.end,
                                 arriving.bytes.size() - arriving.end - inline_bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            return nullptr;
        }
        if (got <= 0) {
            return has_ended;
        }
        arriving.end += static_cast<std::size_t>(got);
        total += static_cast<std::size_t>(got);
        if (const char* end = take_frames(arriving, handler)) {
            return end;
        }
    }
    return nullptr;
}

bool Bridge::take_hello(Arriving& arriving) {
    Hello hello;
    std::memcpy(&hello, arriving.bytes.data() + arriving.begin, sizeof hello);
    arriving.begin += sizeof hello;
    if (hello.magic != hello_magic || hello.world == own_.world) {
        return false;
    }
    arriving.endpoint = endpoint_of({.world = hello.world, .rank = hello.rank});
    Way& its = way(arriving.endpoint);
    if (arriving.number > its.newest) {
        its.left = false;
        its.newest = arriving.number;
        its.seen = hello.connection;
    }
    return true;
}

void Bridge::take_goodbye(Arriving& arriving, const FrameHead& head) {
    arriving.goodbye = true;
    Way& its = way(arriving.endpoint);
    // (An older connection may be read after a newer one.)
    if (its.newest == arriving.number &&
        ((head.flags & leaves) != 0 || head.context == its.opened)) {
        its.left = true;
    }
}

// Null, or why nothing more is taken.
const char* Bridge::take_frames(Arriving& arriving, const Handler& handler) {
    if (arriving.endpoint == 0) {
        if (arriving.end - arriving.begin < sizeof(Hello)) {
            return nullptr;
        }
        if (!take_hello(arriving)) {
            return is_damaged;
        }
    }
    while (arriving.end - arriving.begin >= sizeof(FrameHead)) {
        const std::byte* at = arriving.bytes.data() + arriving.begin;
        FrameHead head;
        std::memcpy(&head, at, sizeof head);
        if (!is_sound(head)) {
            return is_damaged;
        }
        const std::size_t extra = (head.flags & has_extra) != 0 ? extra_bytes : 0;
        const std::size_t bytes = sizeof head + extra + head.bytes;
        if (arriving.end - arriving.begin < bytes) {
            return nullptr;
        }
        arriving.begin += bytes;
        if ((head.flags & goodbye) != 0) {
            take_goodbye(arriving, head);
            continue;
        }
        arriving.goodbye = false;
        if (Way& its = way(arriving.endpoint); its.newest == arriving.number) {
            its.left = false;
        }
        const bool right = handler({.header = {.kind = head.kind,
                                               .context = head.context,
                                               .source = head.source,
                                               .tag = head.tag},
                                    .sender = arriving.endpoint,
                                    .bytes = head.bytes,
                                    .block_bytes = head.bytes,
                                    .data = at + sizeof head + extra,
                                    .extra = extra != 0 ? at + sizeof head : nullptr});
        if (!right) {
            return is_damaged;
        }
    }
    return nullptr;
}

void Bridge::arriving_ended(std::uint32_t number, const char* reason) {
    Arriving& arriving = arriving_.at(number);
    close(arriving.connection);
    const std::uint32_t endpoint = arriving.endpoint;
    const bool expected = (arriving.goodbye && reason == has_ended) || endpoint == 0;
    arriving_.erase(number);
    if (!expected) {
        if (way(endpoint).users > 0 && !leaves_) {
            if (reason == is_damaged) {
                end_job("rank " + std::to_string(name_of(endpoint).rank) +
                        " of another world has sent damaged data");
            }
            lost(endpoint, reason);
        }
        Way& its = way(endpoint);
        its.left = true;
        its.ended = true;
        if (its.connection < 0) {
            close_way(its); // nobody takes what waits
        }
    }
}

// --- The watcher

void Bridge::falls_asleep() {
    if (asleep_.exchange(1) == 0) {
        kernel_wake(asleep_, 1);
    }
}

void Bridge::nudge_watcher() const {
    const std::uint64_t one = 1;
    if (::write(nudges_, &one, sizeof one) < 0) {
        // It has been nudged often enough.
    }
}

void Bridge::wake_at(std::uint64_t time_ns) {
    wakes_.insert(time_ns);
    wake_at_ns_.store(*wakes_.begin());
    nudge_watcher();
}

void Bridge::forget_wake(std::uint64_t time_ns) {
    wakes_.erase(wakes_.find(time_ns));
    wake_at_ns_.store(wakes_.empty() ? 0 : *wakes_.begin());
}

void Bridge::watch(int descriptor) {
    add_event(events_, descriptor, EPOLLIN, of_other);
}

void Bridge::forget(int descriptor) {
    epoll_ctl(events_, EPOLL_CTL_DEL, descriptor, nullptr);
}

Error Bridge::start_watcher() {
    const BlockedSignals blocked; // signals are the program's
    Error error;
    try {
        watcher_ = std::thread([this] { watcher(); });
    } catch (const std::system_error& reason) {
        error = fail(MPI_ERR_OTHER, "no thread that watches the sockets of other worlds: %s",
                     reason.what());
    }
    return error;
}

void Bridge::watcher() {
    while (!stops_.load()) {
        if (asleep_.load() == 0) {
            kernel_wait(asleep_, 0, nullptr);
            continue;
        }
        pollfd places[] = {{.fd = nudges_, .events = POLLIN, .revents = 0},
                           {.fd = events_, .events = POLLIN, .revents = 0}};
        int limit_ms = unreached_.load() != 0 ? retry_ms : -1;
        if (const std::uint64_t at = wake_at_ns_.load(); at != 0) {
            limit_ms = unreached_.load() != 0 ? retry_ms : milliseconds_until(at);
        }
        ::poll(places, 2, limit_ms);
        std::uint64_t count;
        if (::read(nudges_, &count, sizeof count) < 0) {
            // It was something else.
        }
        // The rank looks by itself, and says when it sleeps again.
        asleep_.store(0);
        news_.store(true);
        Doorbell::ring(rank_.header(), rank_.slot.doorbell);
    }
}

} // namespace warren::transport::bridge
