/* Takes the node's topology from Warren and prints: way, objects, processing units, the kind of the
   memory that is nearest to processor 0. With "closed" it has closed what it inherited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warren/topology.h>

int main(int count, char** words) {
    warren_topology* topology = NULL;
    warren_topology* again = NULL;
    warren_topology_report report;
    if (count > 1 && strcmp(words[1], "closed") == 0) {
        close(atoi(getenv("WARREN_TOPOLOGY")));
        close(atoi(getenv("WARREN_TOPOLOGY_SOCKET")));
    }
    if (warren_topology_load(&topology, &report) != WARREN_TOPOLOGY_SUCCESS) {
        fprintf(stderr, "%s\n", report.problem);
        return 1;
    }
    /* Another library of the same process. */
    if (warren_topology_load(&again, NULL) != WARREN_TOPOLOGY_SUCCESS ||
        warren_topology_objects(again) != warren_topology_objects(topology)) {
        return 1;
    }
    const warren_object memory = warren_topology_nearest_memory_of_cpu(topology, 0);
    const char* kind = warren_object_subtype(topology, memory);
    printf("%d %u %u %s\n", report.way, warren_topology_objects(topology),
           warren_topology_count(topology, WARREN_OBJECT_PU), kind != NULL ? kind : "-");
    warren_topology_close(again);
    warren_topology_close(topology);
    return 0;
}
