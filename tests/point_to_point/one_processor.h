/* For programs that show what ranks do when one processor has to do for all. To be included after
   _GNU_SOURCE is defined. */
#ifndef ONE_PROCESSOR_H
#define ONE_PROCESSOR_H

#include <sched.h>

#include "check.h"

static void share_one_processor(void) {
    const char* kind = getenv("WARREN_RANKS");
    if (kind != NULL && strcmp(kind, "fibres") == 0) {
        return; /* it would bind a worker, and with it whichever fibres it runs */
    }
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "refused");
    int processor = 0;
    while (!CPU_ISSET(processor, &set)) {
        processor++;
    }
    MPI_Bcast(&processor, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0, "refused");
}

#endif
