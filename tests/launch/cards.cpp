// A rank that exchanges cards with all others, twice, as MPI_Init does, but without MPI.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mpi/job/mpiexec_bootstrap.hpp"
#include "mpi/job/node_map.hpp"

using namespace warren;

namespace {

void check(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "cards: %s\n", what);
        std::exit(1);
    }
}

int number(const char* name) {
    const char* text = std::getenv(name);
    check(text != nullptr, name);
    return std::atoi(text);
}

std::string card_of(std::uint32_t rank) {
    // Those of a few ranks are alike.
    return "card of " + std::to_string(rank / 2 * 2) + std::string(rank / 2 * 100, '.');
}

} // namespace

int main() {
    node::Segment segment;
    check(!node::Segment::attach(number("WARREN_SEGMENT"), segment), "attach");
    const auto rank = static_cast<std::uint32_t>(number("WARREN_RANK"));
    const auto size = static_cast<std::uint32_t>(number("WARREN_SIZE"));
    node::MpiexecBootstrap own(segment, node::NodeMap::of(segment).slot_of(rank),
                               number("WARREN_LIFELINE"), number("WARREN_BOOK"));
    check(own.numbers().world_rank == rank && own.numbers().world_size == size, "numbers");
    check(own.node_of(rank) == own.numbers().node && own.secret() != 0, "place");
    check(!own.name_of_node(own.numbers().nodes - 1).empty(), "names");
    const std::uint64_t secret = own.secret();
    for (const char* key : {"port", "again"}) {
        const std::string card = card_of(rank) + key;
        check(!own.put(key, std::as_bytes(std::span(card))), "put");
        check(!own.put(std::string(key) + "secret", std::as_bytes(std::span(&secret, 1))), "put");
        check(!own.fence(), "fence");
        for (std::uint32_t other = 0; other < size; ++other) {
            const std::string expected = card_of(other) + key;
            std::vector<std::byte> value;
            check(!own.get(other, key, value), "get");
            check(value.size() == expected.size() &&
                      std::memcmp(value.data(), expected.data(), value.size()) == 0,
                  "value");
            check(!own.get(other, std::string(key) + "secret", value), "get");
            check(std::memcmp(value.data(), &secret, sizeof secret) == 0, "secret");
        }
    }
    std::puts("all right");
    return 0;
}
