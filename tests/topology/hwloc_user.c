/* A program that knows hwloc and nothing of Warren. Prints a line per load:
     PUS  THIS_SYSTEM  NAMES_OF_ATTRIBUTES_WITH_A_VALUE  HEAP_BYTES
   hwloc_user [loads N] [taken] [devices] [smaller] [restrict] [userdata] [disallowed] [own] */
#include <hwloc.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { most = 16 };

static int has(int count, char** words, const char* word) {
    for (int index = 1; index < count; ++index) {
        if (strcmp(words[index], word) == 0) {
            return index;
        }
    }
    return 0;
}

/* What attribute queries give; on an adopted topology they crash in plain hwloc. */
static int valued_attributes(hwloc_topology_t topology) {
    int valued = 0;
    unsigned long flags = 0;
    struct hwloc_location all = {.type = HWLOC_LOCATION_TYPE_CPUSET,
                                 .location = {.cpuset = hwloc_get_root_obj(topology)->cpuset}};
    for (unsigned attribute = 0; hwloc_memattr_get_flags(topology, attribute, &flags) == 0;
         ++attribute) {
        hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, 0);
        hwloc_obj_t best = NULL;
        hwloc_uint64_t value = 0;
        unsigned targets = 0;
        valued += hwloc_memattr_get_value(topology, attribute, node, &all, 0, &value) == 0;
        hwloc_memattr_get_best_target(topology, attribute, &all, 0, &best, &value);
        hwloc_memattr_get_targets(topology, attribute, NULL, 0, &targets, NULL, NULL);
    }
    return valued;
}

static int load(int count, char** words, hwloc_topology_t* topology) {
    const size_t before = mallinfo2().uordblks;
    int mark = 0;
    if (hwloc_topology_init(topology) != 0) {
        return 1;
    }
    hwloc_topology_set_userdata(*topology, &mark);
    if (has(count, words, "devices")) {
        hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    if (has(count, words, "smaller")) {
        hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_NONE);
    }
    if (has(count, words, "disallowed")) {
        hwloc_topology_set_flags(*topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    }
    if (has(count, words, "own")) {
        hwloc_topology_set_synthetic(*topology, "pu:3");
    }
    if (hwloc_topology_load(*topology) != 0) {
        perror("hwloc_topology_load");
        hwloc_topology_destroy(*topology);
        return 1;
    }
    const size_t heap = mallinfo2().uordblks - before;
    if (hwloc_topology_get_userdata(*topology) != &mark || hwloc_topology_load(*topology) == 0) {
        fputs("userdata is lost, or a topology loads twice\n", stderr);
        return 1;
    }
    printf("%d %d %d %zu\n", hwloc_get_nbobjs_by_type(*topology, HWLOC_OBJ_PU),
           hwloc_topology_is_thissystem(*topology), valued_attributes(*topology), heap);
    if (has(count, words, "smaller") && hwloc_get_nbobjs_by_type(*topology, HWLOC_OBJ_CORE) != 0) {
        fputs("a filter is forgotten\n", stderr);
        return 1;
    }
    return 0;
}

int main(int count, char** words) {
    hwloc_topology_t topologies[most];
    const int at = has(count, words, "loads");
    const int loads = at != 0 ? atoi(words[at + 1]) : 1;
    if (has(count, words, "taken")) {
        unsigned long long address = 0;
        sscanf(getenv("WARREN_HWLOC_SHMEM"), "%*d:%llx", &address);
        mmap((void*)(size_t)address, 1 << 24, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    for (int index = 0; index < loads && index < most; ++index) {
        if (load(count, words, &topologies[index]) != 0) {
            return 1;
        }
    }
    if (has(count, words, "userdata")) {
        /* Another rank must not see it. */
        hwloc_obj_t root = hwloc_get_root_obj(topologies[0]);
        if (root->userdata != NULL) {
            return 1;
        }
        root->userdata = topologies;
    }
    if (has(count, words, "restrict")) {
        hwloc_obj_t root = hwloc_get_root_obj(topologies[0]);
        hwloc_bitmap_t first = hwloc_bitmap_dup(root->cpuset);
        hwloc_bitmap_singlify(first);
        if (hwloc_topology_restrict(topologies[0], first, 0) != 0 ||
            hwloc_get_nbobjs_by_type(topologies[0], HWLOC_OBJ_PU) != 1) {
            perror("hwloc_topology_restrict");
            return 1;
        }
        hwloc_bitmap_free(first);
        if (root->cpuset == NULL) { /* a pointer from before */
            return 1;
        }
    }
    for (int index = 0; index < loads && index < most; ++index) {
        hwloc_topology_destroy(topologies[index]);
    }
    return 0;
}
