// Pulse: finds out that another node can't be reached any more.
//
// Providers over TCP don't tell who only waits for messages that a connection is dead: nothing is
// sent on it, or the kernel goes on for a quarter of an hour. So each port listens at its address,
// and a process that talks to a node has one connection to a port there, on which nothing is ever
// sent: the kernels of both nodes ask each other whether they are there, also while the programs
// compute. Who listens accepts nothing, as the kernel answers for what it has not accepted, too.
// Providers with other addresses report lost connections themselves, and have no pulse.
//
// Thread rule: look() and descriptor() by the watcher; the rest under the port's lock.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "mpi/transport/fabric/port.hpp"

namespace warren::transport::fabric {

class Pulse {
  public:
    Pulse() = default;
    Pulse(const Pulse&) = delete;
    Pulse& operator=(const Pulse&) = delete;
    ~Pulse();

    // Listens at a port's address. Without a pulse (other addresses, no descriptor) place() is 0.
    void open(const Address& own);
    // Where others connect: the number of a TCP port.
    std::uint32_t place() const { return place_; }

    // Connects to a port of a node, unless the node is watched already.
    void watch(std::uint32_t node, const Address& address, std::uint32_t place);

    // Readable when look() may have something to say; -1: never.
    int descriptor() const { return events_; }
    // A node that can't be reached any more, and why. False: there is none.
    bool look(std::uint32_t& node, std::string& cause);

  private:
    struct Connection {
        int descriptor = -1; // none could be had, or it has ended
        bool stands = false; // else the other kernel has not answered yet
    };
    int connect_to(const Address& address, std::uint32_t place) const;
    // Why a connection has ended; null: it means nothing.
    static const char* meaning_of(const Connection& connection, int error);

    std::uint32_t place_ = 0;
    int listener_ = -1;
    int events_ = -1; // of epoll
    std::mutex mutex_;
    std::unordered_map<std::uint32_t, Connection> connections_; // by node
};

} // namespace warren::transport::fabric
