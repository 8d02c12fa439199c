#include "mpi/transport/fabric/pulse.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi/transport/fabric/tuning.hpp"

namespace warren::transport::fabric {

namespace {

struct SocketAddress {
    sockaddr_storage storage = {};
    socklen_t bytes = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    void set_port(std::uint32_t port) {
        const auto number = htons(static_cast<std::uint16_t>(port));
        if (storage.ss_family == AF_INET) {
            reinterpret_cast<sockaddr_in&>(storage).sin_port = number;
        } else {
            reinterpret_cast<sockaddr_in6&>(storage).sin6_port = number;
        }
    }
    std::uint32_t port() const {
        return ntohs(storage.ss_family == AF_INET
                         ? reinterpret_cast<const sockaddr_in&>(storage).sin_port
                         : reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
    }
};

// Behind the provider's name. False: an address of another kind.
bool socket_address(const Address& address, SocketAddress& made) {
    const auto end = std::find(address.begin(), address.end(), std::byte{0});
    if (end == address.end()) {
        return false;
    }
    const auto bytes = static_cast<std::size_t>(address.end() - end) - 1;
    if (bytes < sizeof(sa_family_t) || bytes > sizeof made.storage) {
        return false;
    }
    std::memcpy(&made.storage, &*end + 1, bytes);
    made.bytes = static_cast<socklen_t>(bytes);
    return (made.storage.ss_family == AF_INET && bytes == sizeof(sockaddr_in)) ||
           (made.storage.ss_family == AF_INET6 && bytes == sizeof(sockaddr_in6));
}

void set_option(int descriptor, int level, int option, int value) {
    setsockopt(descriptor, level, option, &value, sizeof value);
}

// Has the kernel ask for the other one, and give up in time.
void ask_often(int descriptor) {
    set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, pulse_period_s);
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, pulse_period_s);
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, pulse_patience_s / pulse_period_s);
    set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, pulse_patience_s * 1000);
}

} // namespace

Pulse::~Pulse() {
    for (const auto& [node, connection] : connections_) {
        if (connection.descriptor >= 0) {
            close(connection.descriptor);
        }
    }
    for (const int descriptor : {listener_, events_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

void Pulse::open(const Address& own) {
    SocketAddress address;
    if (!socket_address(own, address)) {
        return;
    }
    listener_ = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    events_ = epoll_create1(EPOLL_CLOEXEC);
    address.set_port(0);
    if (listener_ < 0 || events_ < 0 || bind(listener_, address.get(), address.bytes) != 0 ||
        listen(listener_, SOMAXCONN) != 0) {
        return;
    }
    socklen_t bytes = sizeof address.storage;
    if (getsockname(listener_, reinterpret_cast<sockaddr*>(&address.storage), &bytes) == 0) {
        place_ = address.port();
    }
}

int Pulse::connect_to(const Address& address, std::uint32_t place) const {
    SocketAddress there;
    if (events_ < 0 || place == 0 || !socket_address(address, there)) {
        return -1;
    }
    const int descriptor =
        socket(there.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) {
        return -1;
    }
    ask_often(descriptor);
    there.set_port(place);
    if (connect(descriptor, there.get(), there.bytes) != 0 && errno != EINPROGRESS) {
        close(descriptor); // the provider will find the same
        return -1;
    }
    return descriptor;
}

void Pulse::watch(std::uint32_t node, const Address& address, std::uint32_t place) {
    const std::lock_guard guard(mutex_);
    const auto [entry, is_new] = connections_.try_emplace(node);
    if (!is_new) {
        return;
    }
    Connection& connection = entry->second;
    connection.descriptor = connect_to(address, place);
    epoll_event event = {.events = EPOLLOUT | EPOLLRDHUP, .data = {.u64 = node}};
    if (connection.descriptor >= 0 &&
        epoll_ctl(events_, EPOLL_CTL_ADD, connection.descriptor, &event) != 0) {
        close(connection.descriptor);
        connection.descriptor = -1;
    }
}

const char* Pulse::meaning_of(const Connection& connection, int error) {
    switch (error) {
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
        return std::strerror(error);
    case ETIMEDOUT:
        // (A listener whose list of connections is full does not answer either.)
        return connection.stands ? "it has not answered for seconds" : nullptr;
    default:
        return connection.stands ? "its process has ended" : nullptr;
    }
}

bool Pulse::look(std::uint32_t& node, std::string& cause) {
    epoll_event event;
    while (events_ >= 0 && epoll_wait(events_, &event, 1, 0) == 1) {
        node = static_cast<std::uint32_t>(event.data.u64);
        const std::lock_guard guard(mutex_);
        Connection& connection = connections_[node];
        if ((event.events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) == 0) {
            connection.stands = true;
            event.events = EPOLLRDHUP;
            if (epoll_ctl(events_, EPOLL_CTL_MOD, connection.descriptor, &event) == 0) {
                continue;
            }
        }
        int error = 0;
        socklen_t bytes = sizeof error;
        getsockopt(connection.descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes);
        const char* const meaning = meaning_of(connection, error);
        close(connection.descriptor); // leaves epoll
        connection.descriptor = -1;
        if (meaning != nullptr) {
            cause = meaning;
            return true;
        }
    }
    return false;
}

} // namespace warren::transport::fabric
