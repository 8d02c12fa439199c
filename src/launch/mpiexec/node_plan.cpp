#include "launch/mpiexec/node_plan.hpp"

#include <algorithm>

#include "launch/mpiexec/link.hpp"

namespace warren::launch {

namespace {

void add_numbers(Packer& packer, const std::vector<std::uint32_t>& numbers) {
    packer.add(std::uint64_t{numbers.size()});
    for (const std::uint32_t number : numbers) {
        packer.add(std::uint64_t{number});
    }
}

std::vector<std::uint32_t> take_numbers(Unpacker& unpacker, std::string_view bytes) {
    const std::uint64_t count = unpacker.number();
    std::vector<std::uint32_t> numbers;
    for (std::uint64_t index = 0; index < count && index < bytes.size(); ++index) {
        numbers.push_back(static_cast<std::uint32_t>(unpacker.number()));
    }
    return numbers;
}

} // namespace

std::uint32_t NodePlan::ranks_here(std::uint32_t program) const {
    std::uint32_t begin = 0;
    for (std::uint32_t before = 0; before < program; ++before) {
        begin += ranks[before];
    }
    const std::uint32_t end = begin + ranks[program];
    if (dealt) {
        // Ranks below a number that are of this node.
        const auto below = [&](std::uint32_t rank) {
            return rank / nodes() + (rank % nodes() > node ? 1 : 0);
        };
        return below(end) - below(begin);
    }
    const std::uint32_t from = std::max(begin, first_ranks[node]);
    const std::uint32_t to = std::min(end, first_ranks[node + 1]);
    return from < to ? to - from : 0;
}

std::uint32_t NodePlan::world_rank(std::uint32_t slot) const {
    return dealt ? slot * nodes() + node : first_ranks[node] + slot;
}

std::string NodePlan::pack() const {
    Packer packer;
    for (const std::uint64_t number : {std::uint64_t{node}, std::uint64_t{world_size},
                                       std::uint64_t{dealt}, std::uint64_t{sharers}, secret}) {
        packer.add(number);
    }
    add_numbers(packer, first_ranks);
    packer.add(names);
    add_numbers(packer, ranks);
    packer.add(words);
    packer.add(environment);
    packer.add(std::string_view(directory));
    return packer.bytes();
}

bool NodePlan::unpack(std::string_view bytes, NodePlan& plan) {
    Unpacker unpacker(bytes);
    plan.node = static_cast<std::uint32_t>(unpacker.number());
    plan.world_size = static_cast<std::uint32_t>(unpacker.number());
    plan.dealt = unpacker.number() != 0;
    plan.sharers = static_cast<std::uint32_t>(unpacker.number());
    plan.secret = unpacker.number();
    plan.first_ranks = take_numbers(unpacker, bytes);
    plan.names = unpacker.texts();
    plan.ranks = take_numbers(unpacker, bytes);
    plan.words = unpacker.texts();
    plan.environment = unpacker.texts();
    plan.directory = unpacker.text();
    return unpacker.sound() && plan.node < plan.nodes() && plan.sharers != 0 &&
           plan.first_ranks.size() == plan.names.size() + 1;
}

} // namespace warren::launch
