// A library in C++ that has the functions of libwarren.so in itself: its own copy of them.
#include <cstdio>
#include <warren/topology.hpp>

#include "asking.h"

int cpp_library_asks(unsigned questions, answers* answers) {
    try {
        const warren::Topology node;
        const std::uint32_t processors = warren_topology_count(node.get(), WARREN_OBJECT_PU);
        std::uint32_t random = 1;
        std::uint64_t sum = 0;
        for (unsigned question = 0; question < questions; ++question) {
            const std::uint32_t cpu = next_random(&random) % processors;
            const warren::Object one = node.by_os_index(WARREN_OBJECT_PU, cpu).value();
            const warren::Object other =
                node.by_os_index(WARREN_OBJECT_PU, next_random(&random) % processors).value();
            const std::uint32_t memory = one.nearest_memory().value().os_index();
            const std::uint32_t from = warren_topology_initiator_of_cpu(node.get(), cpu);
            std::uint64_t value = 0;
            sum = sum * 31 + one.common_ancestor(other).value().number();
            sum = sum * 31 + memory;
            sum = sum * 31 +
                  warren_topology_best_target(node.get(), WARREN_ATTRIBUTE_BANDWIDTH, from, 0);
            warren_topology_value(node.get(), WARREN_ATTRIBUTE_LATENCY, from, memory, &value,
                                  nullptr);
            sum = sum * 31 + value;
        }
        answers->way = node.way();
        answers->sum = sum;
        answers->file = file_behind(warren_topology_image(node.get(), nullptr));
        return 0;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "the library in C++: %s\n", problem.what());
        return 1;
    }
}
