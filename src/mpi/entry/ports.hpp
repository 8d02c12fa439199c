// Ports: where processes of other worlds, or of this one, knock to be connected (MPI chapter 11.4).
//
// A port belongs to the process that has opened it, and is known by its name: the process and a
// random number, by which nobody finds it who has not been told. Who connects sends a request with
// the context for the messages by which the two roots then agree (Introduction in
// intercommunicators.cpp); the request waits until the port's process accepts. The time of either
// may be over just then. So who connects is only offered the connection, and confirms unless it has
// withdrawn; the port's process then says that it stands, unless it has given up.
//
// Invariant: a connection stands for both sides or for none, unless a process ends. Who has
// confirmed waits for the other's word, which comes soon: that one waits in a call.
// Thread rule: under the rank's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "mpi/job/world_identity.hpp"
#include "mpi/message/engine.hpp"

namespace warren::mpi {

// A port as its name says it.
struct PortName {
    node::ProcessName process = {};
    std::uint64_t number = 0;

    std::string text() const;
    // MPI_ERR_PORT: it is no name of a port.
    static Error parse(const char* text, PortName& made);
};

class Ports {
  public:
    // A process that waits at a port.
    struct Caller {
        std::uint32_t endpoint;
        std::uint32_t token; // its own number for the request
        std::uint32_t context;
    };

    explicit Ports(message::Engine& engine);
    Ports(const Ports&) = delete;
    Ports& operator=(const Ports&) = delete;

    // The new port's number. Error: no random number is to be had.
    Error open(std::uint64_t& number);
    bool is_open(std::uint64_t number) const { return ports_.contains(number); }
    // Callers that wait are refused. False: there is no such port.
    bool close(std::uint64_t number);

    // Closes all ports.
    void close_all();

    // Who has come first, and is still there; null: nobody.
    const Caller* first_caller(std::uint64_t number);
    // Offers that one the connection. Its word comes soon if it is not stopped: it waits in a call.
    Caller accept(std::uint64_t number);
    enum class Word : std::uint8_t { none, confirmed, withdrawn };
    Word word_of(const Caller& caller) const;
    // The word has been heard, or is no longer awaited: it is refused if it comes later.
    void forget(const Caller& caller);

    // Asks at a port; waits for the answer by state().
    enum class State : std::uint8_t { waits, confirmed, accepted, refused };
    std::uint32_t ask(std::uint32_t endpoint, std::uint64_t number, std::uint32_t context);
    State state(std::uint32_t token) const { return asked_.at(token).state; }
    // The request is over; one that still waits is withdrawn.
    void end(std::uint32_t token);

    // Whether the process has ended, or left MPI. Of this world: only the former.
    bool has_ended(std::uint32_t endpoint) const;

  private:
    struct Asked {
        std::uint32_t endpoint;
        std::uint64_t port;
        State state;
    };

    using Request = std::pair<std::uint32_t, std::uint32_t>; // endpoint and token

    void tell(std::uint32_t endpoint, std::uint32_t what, std::uint64_t port, std::uint32_t token,
              std::uint32_t context);
    void request_arrived(const transport::Arrival& arrival);
    void answer_arrived(const transport::Arrival& arrival);
    void answer(const Caller& caller, std::uint32_t what);
    bool knows(const Caller& caller) const;

    message::Engine& engine_;
    std::map<std::uint64_t, std::deque<Caller>> ports_;
    std::map<Request, Word> accepted_; // whose word is awaited
    std::map<std::uint32_t, Asked> asked_;
    std::uint32_t last_token_ = 0;
};

} // namespace warren::mpi
