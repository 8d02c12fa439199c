/* A library in C that asks libwarren.so about the node. */
#include <stdio.h>
#include <warren/topology.h>

#include "asking.h"

int c_library_asks(unsigned questions, struct answers* answers) {
    warren_topology* topology = NULL;
    warren_topology_report report;
    if (warren_topology_load(&topology, &report) != WARREN_TOPOLOGY_SUCCESS) {
        fprintf(stderr, "the library in C: %s\n", report.problem);
        return 1;
    }
    uint32_t random = 1;
    uint64_t sum = 0;
    const uint32_t processors = warren_topology_count(topology, WARREN_OBJECT_PU);
    for (unsigned question = 0; question < questions; ++question) {
        const uint32_t cpu = next_random(&random) % processors;
        const warren_object one = warren_topology_by_os_index(topology, WARREN_OBJECT_PU, cpu);
        const warren_object other = warren_topology_by_os_index(topology, WARREN_OBJECT_PU,
                                                                next_random(&random) % processors);
        const warren_object memory = warren_topology_nearest_memory(topology, one);
        const uint32_t from = warren_topology_initiator_of_cpu(topology, cpu);
        uint64_t value = 0;
        sum = sum * 31 + warren_object_common_ancestor(topology, one, other);
        sum = sum * 31 + warren_object_os_index(topology, memory);
        sum = sum * 31 + warren_topology_best_target(topology, WARREN_ATTRIBUTE_BANDWIDTH, from, 0);
        warren_topology_value(topology, WARREN_ATTRIBUTE_LATENCY, from,
                              warren_object_os_index(topology, memory), &value, NULL);
        sum = sum * 31 + value;
    }
    answers->way = report.way;
    answers->sum = sum;
    answers->file = file_behind(warren_topology_image(topology, NULL));
    warren_topology_close(topology);
    return 0;
}
