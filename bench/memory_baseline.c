/*
 * The private dirty memory of a process of the same kind as `memory`, without MPI: what of a rank's
 * memory is not the MPI library's. Prints kB: everything, then by kind of mapping.
 */
#include "memory_map.h"

#include <stdio.h>

int main(void) {
    static MemoryMap map;
    if (!memory_read(&map))
        return 1;
    printf("%d", map.private_dirty_kb_all);
    for (int kind = 0; kind < memory_kinds; kind++)
        printf(" %d", map.private_dirty_kb[kind]);
    printf("\n");
    return 0;
}
