#include "mpi/entry/ports.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sys/random.h>
#include <utility>

#include "mpi.h"
#include "mpi/job/local_socket.hpp"
#include "mpi/message/other_worlds.hpp"
#include "mpi/message/payload.hpp"

namespace warren::mpi {

namespace {

struct PortRequest {
    std::uint64_t port;
    std::uint32_t token;
    std::uint32_t context;
    std::uint32_t what;
};
constexpr std::uint32_t asks = 0;
constexpr std::uint32_t withdraws = 1;
constexpr std::uint32_t confirms = 2;

struct PortAnswer {
    std::uint32_t token;
    std::uint32_t what;
};
constexpr std::uint32_t refuses = 0;
constexpr std::uint32_t offers = 1;
constexpr std::uint32_t connects = 2;
static_assert(sizeof(PortRequest) <= transport::inline_bytes);

constexpr transport::Header header_of_port(transport::CellKind kind) {
    return {.kind = kind, .context = 0, .source = 0, .tag = 0};
}

} // namespace

std::string PortName::text() const {
    char text[64];
    std::snprintf(text, sizeof text, "%" PRIu32 ":%016" PRIx64, process.rank, number);
    return node::port_name_start(process.world) + text;
}

Error PortName::parse(const char* text, PortName& made) {
    int end = 0;
    if (std::sscanf(text, "warren:%16" SCNx64 ":%10" SCNu32 ":%16" SCNx64 "%n", &made.process.world,
                    &made.process.rank, &made.number, &end) != 3 ||
        text[end] != '\0' || made.text() != text) {
        return fail(MPI_ERR_PORT,
                    "port_name \"%.80s\" is not the name of a port: "
                    "MPI_Open_port makes such names",
                    text);
    }
    return {};
}

Ports::Ports(message::Engine& engine) : engine_(engine) {
    engine.register_kind(message::kind::port_request, this,
                         [](void* self, const transport::Arrival& arrival) {
                             static_cast<Ports*>(self)->request_arrived(arrival);
                         });
    engine.register_kind(message::kind::port_answer, this,
                         [](void* self, const transport::Arrival& arrival) {
                             static_cast<Ports*>(self)->answer_arrived(arrival);
                         });
}

Error Ports::open(std::uint64_t& number) {
    if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
        return fail(MPI_ERR_OTHER, "no random number for a port: %s", std::strerror(errno));
    }
    ports_[number];
    return {};
}

bool Ports::close(std::uint64_t number) {
    const auto found = ports_.find(number);
    if (found == ports_.end()) {
        return false;
    }
    const std::deque<Caller> callers = std::move(found->second);
    ports_.erase(found);
    for (const Caller& caller : callers) {
        answer(caller, refuses);
    }
    return true;
}

void Ports::close_all() {
    while (!ports_.empty()) {
        close(ports_.begin()->first);
    }
}

const Ports::Caller* Ports::first_caller(std::uint64_t number) {
    const auto found = ports_.find(number);
    if (found == ports_.end()) {
        return nullptr;
    }
    std::deque<Caller>& callers = found->second;
    while (!callers.empty() && has_ended(callers.front().endpoint)) {
        callers.pop_front();
    }
    return !callers.empty() ? &callers.front() : nullptr;
}

Ports::Caller Ports::accept(std::uint64_t number) {
    std::deque<Caller>& callers = ports_.at(number);
    const Caller caller = callers.front();
    callers.pop_front();
    accepted_[{caller.endpoint, caller.token}] = Word::none;
    answer(caller, offers);
    return caller;
}

Ports::Word Ports::word_of(const Caller& caller) const {
    const auto found = accepted_.find({caller.endpoint, caller.token});
    const Word word = found != accepted_.end() ? found->second : Word::withdrawn;
    return word == Word::none && has_ended(caller.endpoint) ? Word::withdrawn : word;
}

void Ports::forget(const Caller& caller) {
    const auto found = accepted_.find({caller.endpoint, caller.token});
    if (found == accepted_.end()) {
        return;
    }
    const bool is_late = found->second == Word::none && !has_ended(caller.endpoint);
    accepted_.erase(found);
    if (is_late) {
        answer(caller, refuses);
    }
}

bool Ports::has_ended(std::uint32_t endpoint) const {
    const Rank& rank = engine_.rank();
    if (endpoint >= rank.size) {
        return message::OtherWorlds::bridge(engine_)->has_left(endpoint);
    }
    return rank.has_ended(endpoint);
}

bool Ports::knows(const Caller& caller) const {
    return accepted_.contains({caller.endpoint, caller.token}) ||
           std::any_of(ports_.begin(), ports_.end(), [&](const auto& port) {
               return std::any_of(port.second.begin(), port.second.end(), [&](const Caller& its) {
                   return its.endpoint == caller.endpoint && its.token == caller.token;
               });
           });
}

void Ports::answer(const Caller& caller, std::uint32_t what) {
    const PortAnswer data = {.token = caller.token, .what = what};
    engine_.tell(caller.endpoint, header_of_port(message::kind::port_answer), &data, sizeof data);
}

std::uint32_t Ports::ask(std::uint32_t endpoint, std::uint64_t number, std::uint32_t context) {
    const std::uint32_t token = ++last_token_;
    asked_[token] = {.endpoint = endpoint, .port = number, .state = State::waits};
    tell(endpoint, asks, number, token, context);
    return token;
}

void Ports::tell(std::uint32_t endpoint, std::uint32_t what, std::uint64_t port,
                 std::uint32_t token, std::uint32_t context) {
    const PortRequest data = {.port = port, .token = token, .context = context, .what = what};
    engine_.tell(endpoint, header_of_port(message::kind::port_request), &data, sizeof data);
}

void Ports::end(std::uint32_t token) {
    const auto found = asked_.find(token);
    if (found->second.state == State::waits) {
        tell(found->second.endpoint, withdraws, found->second.port, token, 0);
    }
    asked_.erase(found);
}

void Ports::request_arrived(const transport::Arrival& arrival) {
    const auto request = message::payload_of<PortRequest>(arrival);
    const Caller caller = {
        .endpoint = arrival.sender, .token = request.token, .context = request.context};
    const auto its = accepted_.find({caller.endpoint, caller.token});
    if (request.what == confirms) {
        const bool stands = its != accepted_.end() && its->second != Word::withdrawn;
        if (stands) {
            its->second = Word::confirmed;
        }
        answer(caller, stands ? connects : refuses);
        return;
    }
    const auto found = ports_.find(request.port);
    if (request.what == withdraws) {
        if (its != accepted_.end() && its->second == Word::none) {
            its->second = Word::withdrawn;
        }
        if (found != ports_.end()) {
            std::erase_if(found->second, [&](const Caller& waiting) {
                return waiting.endpoint == caller.endpoint && waiting.token == caller.token;
            });
        }
        return;
    }
    if (found == ports_.end()) {
        answer(caller, refuses);
    } else if (!knows(caller)) { // else its process is not sound
        found->second.push_back(caller);
    }
}

void Ports::answer_arrived(const transport::Arrival& arrival) {
    const auto data = message::payload_of<PortAnswer>(arrival);
    const auto found = asked_.find(data.token);
    if (found == asked_.end() || found->second.endpoint != arrival.sender) {
        return; // it was withdrawn
    }
    State& state = found->second.state;
    if (data.what == offers && state == State::waits) {
        state = State::confirmed;
        tell(arrival.sender, confirms, found->second.port, data.token, 0);
    } else if (data.what == connects && state == State::confirmed) {
        state = State::accepted;
    } else if (data.what == refuses && state != State::accepted) {
        state = State::refused;
    }
}

} // namespace warren::mpi
