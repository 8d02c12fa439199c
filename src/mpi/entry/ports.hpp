// Ports: where processes of other worlds, or of this one, knock to be connected (MPI chapter 11.4).
//
// A port belongs to the process that has opened it, and is known by its name: the process and a
// random number, by which nobody finds it who has not been told. Who connects sends a request with
// the context for the messages by which the two roots then agree (Introduction in
// intercommunicators.cpp); the request waits until the port's process accepts. The time of who
// connects may be over just then, so it has the last word: it confirms, or has withdrawn.
//
// Invariant: a request is answered once: accepted, or refused because there is no such port. An
// accepted one is confirmed or withdrawn, unless its process ends.
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

    // The same for all ports.
    void close_all();

    // Who has come first, and is still there; null: nobody.
    const Caller* first_caller(std::uint64_t number);
    // Accepts that one. Its word comes soon: it waits in a call.
    Caller accept(std::uint64_t number);
    enum class Word : std::uint8_t { none, confirmed, withdrawn };
    Word word_of(const Caller& caller);
    // The word has been heard, or is no longer awaited.
    void forget(const Caller& caller);

    // Asks at a port; waits for the answer by state().
    enum class State : std::uint8_t { waits, accepted, refused };
    std::uint32_t ask(std::uint32_t endpoint, std::uint64_t number, std::uint32_t context);
    State state(std::uint32_t token) const { return asked_.at(token).state; }
    // The request is over; one that still waits is withdrawn.
    void end(std::uint32_t token);

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
    void answer(const Caller& caller, bool accepted);

    message::Engine& engine_;
    std::map<std::uint64_t, std::deque<Caller>> ports_;
    std::map<Request, Word> accepted_; // whose word is awaited
    std::map<std::uint32_t, Asked> asked_;
    std::uint32_t last_token_ = 0;
};

} // namespace warren::mpi
