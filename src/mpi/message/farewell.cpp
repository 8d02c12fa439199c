#include "mpi/message/farewell.hpp"

#include "mpi/message/payload.hpp"

namespace warren::message {

void Farewell::register_kinds(KindTable& kinds) {
    kinds.add<&Farewell::arrived>(kind::farewell, *this);
}

void Farewell::arrived(const transport::Arrival& arrival) {
    const auto round = payload_of<std::uint32_t>(arrival);
    if (round < round_limit) {
        ++heard_[round];
    }
}

std::uint32_t Farewell::begin() {
    ++farewells_;
    std::uint32_t rounds = 0;
    while (rounds < round_limit && (std::uint64_t{1} << rounds) < core_.rank.world_size) {
        ++rounds;
    }
    return rounds;
}

void Farewell::say(std::uint32_t round) {
    const std::uint64_t to =
        (core_.rank.world_rank + (std::uint64_t{1} << round)) % core_.rank.world_size;
    const node::Endpoints& endpoints = core_.transport.network()->endpoints();
    core_.answer(endpoints.of(static_cast<std::uint32_t>(to)), kind::farewell, &round,
                 sizeof round);
}

} // namespace warren::message
