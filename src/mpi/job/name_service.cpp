#include "mpi/job/name_service.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/blocked_signals.hpp"
#include "mpi.h"
#include "mpi/job/local_socket.hpp"

namespace warren::node {

namespace {

// A socket's name has room for so many characters, beside its beginning.
constexpr std::size_t service_limit = 80;
constexpr int look_up_patience_ms = 5000;
// For the thread of a process that has unpublished a name to let go of its socket.
constexpr int let_go_patience_ms = 1000;
// Between two attempts of a process that has no descriptor left to answer with.
constexpr unsigned retry_us = 10'000;

// Long names have a hash instead of their end.
std::string socket_of_service(const std::string& service) {
    std::string name = "warren.name." + std::to_string(geteuid()) + "." + service;
    if (service.size() > service_limit) {
        std::uint64_t hash = 14695981039346656037ULL; // FNV-1a
        for (const char letter : service) {
            hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
        }
        name.resize(name.size() - service.size() + service_limit - 20);
        name += std::to_string(hash);
    }
    return name;
}

// Whether nobody listens any more at a name that is taken: it has been unpublished, and will be
// free.
bool has_been_left(const std::string& socket_name) {
    const int connection = connect_to(socket_name, SOCK_SEQPACKET);
    const bool refused = connection < 0 && errno == ECONNREFUSED;
    if (connection >= 0) {
        close(connection);
    }
    errno = EADDRINUSE;
    return refused;
}

} // namespace

NameService::~NameService() {
    if (thread_.joinable()) {
        {
            const std::lock_guard guard(mutex_);
            stops_ = true;
        }
        nudge();
        thread_.join();
    }
    for (const auto& [service, name] : names_) {
        close(name.listener);
    }
    if (nudges_ >= 0) {
        close(std::exchange(nudges_, -1));
    }
}

Error NameService::start() {
    if (thread_.joinable()) {
        return {};
    }
    nudges_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (nudges_ < 0) {
        return fail(MPI_ERR_OTHER, "no descriptor for published names: %s", std::strerror(errno));
    }
    const BlockedSignals blocked; // signals are the program's
    Error error;
    try {
        thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error& reason) {
        close(std::exchange(nudges_, -1));
        error = fail(MPI_ERR_OTHER, "no thread for published names: %s", reason.what());
    }
    return error;
}

void NameService::nudge() const {
    const std::uint64_t one = 1;
    if (write(nudges_, &one, sizeof one) < 0) {
        // It has been nudged often enough.
    }
}

Error NameService::publish(const std::string& service, const std::string& port_name) {
    if (Error error = start()) {
        return error;
    }
    const std::string name = socket_of_service(service);
    int listener = listen_at(name, SOCK_SEQPACKET, 64);
    for (int waited_ms = 0; listener < 0 && errno == EADDRINUSE && waited_ms < let_go_patience_ms &&
                            has_been_left(name);
         ++waited_ms) {
        usleep(1000);
        listener = listen_at(name, SOCK_SEQPACKET, 64);
    }
    if (listener < 0) {
        return errno == EADDRINUSE
                   ? fail(MPI_ERR_SERVICE, "service_name \"%.80s\" is published already",
                          service.c_str())
                   : fail(MPI_ERR_OTHER, "no socket for service_name \"%.80s\": %s",
                          service.c_str(), text_of_socket_error(errno).c_str());
    }
    {
        const std::lock_guard guard(mutex_);
        names_[service] = {.listener = listener, .port_name = port_name};
    }
    nudge();
    return {};
}

Error NameService::unpublish(const std::string& service) {
    {
        const std::lock_guard guard(mutex_);
        const auto found = names_.find(service);
        if (found == names_.end()) {
            return fail(MPI_ERR_SERVICE,
                        "service_name \"%.80s\" has not been published by this process",
                        service.c_str());
        }
        // The kernel keeps the socket's name while the thread polls it (NameService::publish).
        shutdown(found->second.listener, SHUT_RDWR);
        close(found->second.listener);
        names_.erase(found);
    }
    nudge();
    return {};
}

Error NameService::look_up(const std::string& service, std::string& port_name) {
    const auto unknown = [&] {
        return fail(MPI_ERR_NAME, "nobody has published service_name \"%.80s\"", service.c_str());
    };
    const int connection =
        connect_patiently(socket_of_service(service), SOCK_SEQPACKET, look_up_patience_ms);
    if (connection < 0 && (errno == ECONNREFUSED || errno == EPERM)) {
        return unknown(); // other users' names are none
    }
    if (connection < 0) {
        return fail(MPI_ERR_SERVICE, "service_name \"%.80s\" can't be looked up: %s",
                    service.c_str(), text_of_socket_error(errno).c_str());
    }
    pollfd place = {.fd = connection, .events = POLLIN, .revents = 0};
    int ready;
    do {
        ready = poll(&place, 1, look_up_patience_ms);
    } while (ready < 0 && errno == EINTR);
    char text[MPI_MAX_PORT_NAME];
    const ssize_t got = recv(connection, text, sizeof text - 1, MSG_DONTWAIT);
    close(connection);
    if (got <= 0) {
        return unknown(); // it has just been unpublished
    }
    port_name.assign(text, static_cast<std::size_t>(got));
    return {};
}

void NameService::serve() {
    bool lacks = false;
    while (true) {
        std::vector<pollfd> places{{.fd = nudges_, .events = POLLIN, .revents = 0}};
        {
            const std::lock_guard guard(mutex_);
            if (stops_) {
                return;
            }
            for (const auto& [service, name] : names_) {
                places.push_back({.fd = name.listener, .events = POLLIN, .revents = 0});
            }
        }
        ::poll(places.data(), places.size(), -1);
        if (lacks) {
            usleep(retry_us); // who asks is still there
        }
        lacks = false;
        std::uint64_t count;
        if (read(nudges_, &count, sizeof count) < 0) {
            // It was somebody who asks.
        }
        const std::lock_guard guard(mutex_);
        for (const auto& [service, name] : names_) {
            for (int asking = accept_own(name.listener); asking >= 0;
                 asking = accept_own(name.listener)) {
                // It fits the socket's buffer.
                send(asking, name.port_name.data(), name.port_name.size(),
                     MSG_NOSIGNAL | MSG_DONTWAIT);
                close(asking);
            }
            lacks = lacks || lacks_descriptors(errno);
        }
    }
}

} // namespace warren::node
