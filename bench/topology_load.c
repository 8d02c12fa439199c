/*
 * A rank of a job that initialises MPI, takes the node's topology, and ends: as the program with
 * which Goglin (2018) measured launch times. With the word "cost", rank 0 prints one JSON line:
 * what taking it cost the rank that paid most, in bytes of malloc, kB of private dirty memory, and
 * µs, and, of the kB, each for itself, the stack (calls as deep as the rank had none before, which
 * later ones use as well), the heap, variables of program and libraries, and other mappings. (To
 * look at one's own memory takes the kernel longer than all the rest, so it is no part of a
 * launch.)
 *
 * Built three times: with -DWITH_HWLOC by hwloc_topology_load, with -DWITH_IMAGE by
 * warren_topology_load, and with neither for the job without any topology.
 *
 * The heap's next pages are touched before, so that private dirty memory counts what taking the
 * topology needs, and not that the rank is the first to touch the page that it lands in.
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory_map.h"

#if defined(WITH_HWLOC)
#include <hwloc.h>
#elif defined(WITH_IMAGE)
#include <warren/topology.h>
#endif

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* Processing units, for the reader to see that it is the topology that was meant; -1: a failure. */
static int take_topology(void) {
#if defined(WITH_HWLOC)
    static hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0 || hwloc_topology_load(topology) != 0)
        return -1;
    return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
#elif defined(WITH_IMAGE)
    static warren_topology* topology;
    warren_topology_report report;
    if (warren_topology_load(&topology, &report) != WARREN_TOPOLOGY_SUCCESS ||
        report.way != WARREN_TOPOLOGY_NODE)
        return -1;
    return (int)warren_topology_count(topology, WARREN_OBJECT_PU);
#else
    return 0;
#endif
}

static int own_dirty_kb(const MemoryMap* map) {
    return map->private_dirty_kb_all - map->private_dirty_kb[memory_shared];
}

static int variables_dirty_kb(const MemoryMap* map) {
    return map->private_dirty_kb[memory_program] + map->private_dirty_kb[memory_libc] +
           map->private_dirty_kb[memory_library];
}

/* The processing units of the topology, or -1; what it costs is printed by rank 0. */
static int take_and_measure(int rank) {
    enum { warm_bytes = 16 * 1024 };
    /* Taken from the top of the heap, touched, and given back. */
    char* warm = malloc(warm_bytes);
    if (warm != NULL)
        memset(warm, 1, warm_bytes);
    free(warm);
    MemoryMap map;
    memory_read(&map);
    MPI_Barrier(MPI_COMM_WORLD);
    memory_read(&map);
    const MemoryMap before = map;
    const size_t heap_before = mallinfo2().uordblks;
    const double start = now_us();
    const int units = take_topology();
    enum { figures = 7 };
    double cost[figures] = {0, 0, now_us() - start};
    cost[0] = (double)(mallinfo2().uordblks - heap_before);
    /* When all ranks have it: a shared page that one rank has touched so far counts as its own. */
    MPI_Barrier(MPI_COMM_WORLD);
    memory_read(&map);
    cost[1] = own_dirty_kb(&map) - own_dirty_kb(&before);
    cost[3] = map.private_dirty_kb[memory_stack] - before.private_dirty_kb[memory_stack];
    cost[4] = map.private_dirty_kb[memory_heap] - before.private_dirty_kb[memory_heap];
    cost[5] = variables_dirty_kb(&map) - variables_dirty_kb(&before);
    cost[6] = map.private_dirty_kb[memory_anonymous] - before.private_dirty_kb[memory_anonymous];
    double most[figures];
    MPI_Reduce(cost, most, figures, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"units\": %d, \"malloc_bytes\": %.0f, \"private_dirty_kb\": %.0f, \"us\": %.1f, "
               "\"stack_kb\": %.0f, \"heap_kb\": %.0f, \"variables_kb\": %.0f, \"other_kb\": "
               "%.0f}\n",
               units, most[0], most[1], most[2], most[3], most[4], most[5], most[6]);
    return units;
}

int main(int count, char** words) {
    int rank = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int measures = count == 2 && strcmp(words[1], "cost") == 0;
    const int units = measures ? take_and_measure(rank) : take_topology();
    if (units < 0) {
        fprintf(stderr, "rank %d has no topology\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
