/* The node's hardware: packages, cores, caches, memories, devices, how far they are from each
   other, and what each memory is like as seen from each processor.

   The description of a node is one block of bytes, the topology image: it is made once, by hwloc,
   and then only read. mpiexec makes it for a job, and all ranks map the same memory; other programs
   open an image file or have one made from XML, a synthetic description, or the machine. Looking
   things up needs neither hwloc nor locks, and allocates nothing.

   Objects are numbers (warren_object) below warren_topology_objects(), the same in all processes
   that use the same image. The tree has the machine at its root (object 0) and processing units at
   its leaves. NUMA nodes, caches of memory, devices and others are attached to objects of the tree,
   as in hwloc: they are children of another kind.

   What a process may use (its affinity, its control group, the share of its job) is a mask over the
   image: see "What may be used".

   Thread rule: a topology may be used by any number of threads at once. Only closing it, and the
   functions that say so, must be alone. Nothing uses thread-local variables or global state.

   Arguments are checked. A function that returns int returns WARREN_TOPOLOGY_SUCCESS or an error;
   for arguments that are wrong as well as for what there isn't, one that returns an object returns
   WARREN_NO_OBJECT, one that returns an index WARREN_NO_INDEX, one that returns a type, depth or
   kind -1, one that returns a count, size or set 0 or an empty set, one that returns a string or a
   pointer null. */
#ifndef WARREN_TOPOLOGY_H
#define WARREN_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include "warren/topology_tables.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WARREN_TOPOLOGY_SUCCESS = 0,
    WARREN_TOPOLOGY_ERR_ARGUMENT = 1, /* an argument is wrong */
    WARREN_TOPOLOGY_ERR_FILE = 2,     /* a file or descriptor is not there or can't be read */
    WARREN_TOPOLOGY_ERR_DAMAGED = 3,  /* no image or no XML, or a damaged one, or another version */
    WARREN_TOPOLOGY_ERR_OWNER = 4,    /* it belongs neither to this user nor to root */
    WARREN_TOPOLOGY_ERR_DISCOVERY = 5, /* hwloc is not there, or fails */
    WARREN_TOPOLOGY_ERR_LIMIT = 6,     /* the node is larger than an image can describe */
    WARREN_TOPOLOGY_ERR_MEMORY = 7,
    WARREN_TOPOLOGY_ERR_NONE = 8 /* there is no such value */
};

/* warren/topology_tables.h has warren_topology, warren_object, a number, and WARREN_NO_OBJECT. */
/* An OS index of an object that has none, and "no number" elsewhere. */
#define WARREN_NO_INDEX UINT32_MAX

enum {
    WARREN_OBJECT_MACHINE = 0,
    WARREN_OBJECT_PACKAGE,
    WARREN_OBJECT_DIE,
    WARREN_OBJECT_CORE,
    WARREN_OBJECT_PU, /* processing unit: a hardware thread */
    WARREN_OBJECT_L1_CACHE,
    WARREN_OBJECT_L2_CACHE,
    WARREN_OBJECT_L3_CACHE,
    WARREN_OBJECT_L4_CACHE,
    WARREN_OBJECT_L5_CACHE,
    WARREN_OBJECT_L1I_CACHE, /* of instructions only */
    WARREN_OBJECT_L2I_CACHE,
    WARREN_OBJECT_L3I_CACHE,
    WARREN_OBJECT_GROUP,
    WARREN_OBJECT_NUMA_NODE,
    WARREN_OBJECT_MEMORY_CACHE, /* in front of a NUMA node */
    WARREN_OBJECT_BRIDGE,
    WARREN_OBJECT_PCI_DEVICE,
    WARREN_OBJECT_OS_DEVICE, /* as the system's programs know it: eth0, sda, mlx5_0 */
    WARREN_OBJECT_MISC,
    WARREN_OBJECT_TYPES
};

/* ---- Sets ------------------------------------------------------------------------------------ */

/* A set of numbers, such as OS indices of processors. Bit b of words[w] is 64 · (first + w) + b.
   What functions return are views of the image, valid as long as the topology. */
typedef struct {
    const uint64_t* words; /* may be null when count is 0 */
    uint32_t first;
    uint32_t count;
} warren_set;

static inline int warren_set_has(warren_set set, uint32_t number) {
    const uint32_t word = number / 64 - set.first; /* below the first: wraps to a large number */
    return number / 64 >= set.first && word < set.count &&
           (set.words[word] >> (number % 64) & 1) != 0;
}

/* The smallest member from `from` on, WARREN_NO_INDEX behind the last. All members:
       for (i = warren_set_next(set, 0); i != WARREN_NO_INDEX; i = warren_set_next(set, i + 1)) */
static inline uint32_t warren_set_next(warren_set set, uint32_t from) {
    uint32_t word = from / 64 > set.first ? from / 64 - set.first : 0;
    for (; word < set.count; ++word) {
        uint64_t bits = set.words[word];
        if (set.first + word == from / 64) {
            bits = bits >> (from % 64) << (from % 64);
        }
        if (bits != 0) {
            return (set.first + word) * 64 + (uint32_t)__builtin_ctzll(bits);
        }
    }
    return WARREN_NO_INDEX;
}

static inline uint32_t warren_set_count(warren_set set) {
    uint32_t members = 0;
    for (uint32_t word = 0; word < set.count; ++word) {
        members += (uint32_t)__builtin_popcountll(set.words[word]);
    }
    return members;
}

/* Whether all members of `part` are in `set`. */
static inline int warren_set_includes(warren_set set, warren_set part) {
    for (uint32_t word = 0; word < part.count; ++word) {
        const uint32_t place = part.first + word;
        const uint64_t bits =
            place >= set.first && place - set.first < set.count ? set.words[place - set.first] : 0;
        if ((part.words[word] & ~bits) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Whether the sets have a member in common. */
static inline int warren_set_intersects(warren_set one, warren_set other) {
    for (uint32_t word = 0; word < one.count; ++word) {
        const uint32_t place = one.first + word;
        if (place >= other.first && place - other.first < other.count &&
            (one.words[word] & other.words[place - other.first]) != 0) {
            return 1;
        }
    }
    return 0;
}

/* ---- Getting a topology ------------------------------------------------------------------------
 */

/* Where a topology comes from. */
enum {
    WARREN_TOPOLOGY_NODE = 1,      /* the image that mpiexec made for this node's ranks */
    WARREN_TOPOLOGY_FILE = 2,      /* an image file */
    WARREN_TOPOLOGY_XML = 3,       /* hwloc's XML */
    WARREN_TOPOLOGY_SYNTHETIC = 4, /* a description such as "package:2 core:8 pu:2" */
    WARREN_TOPOLOGY_NATIVE = 5     /* this machine, by hwloc */
};

/* What happened; the caller's. */
typedef struct {
    int way;           /* WARREN_TOPOLOGY_NODE …; 0: none */
    char problem[500]; /* why the call failed; or why a better way was not gone; or "" */
} warren_topology_report;

/* The topology of this node by the best way that there is: the image that the environment variable
   WARREN_TOPOLOGY names, in one of the forms of warren_topology_open, which is what mpiexec gives
   its ranks (and makes when the first of them asks, which the others wait for); where there is none
   or it is refused, the machine natively. WARREN_TOPOLOGY_WAY in the environment forces one of the
   two, "image" (which fails then rather than discover, also where WARREN_TOPOLOGY is no image but
   xml:, synthetic: or native) or "native". `report` may be null. */
int warren_topology_load(warren_topology** topology, warren_topology_report* report);

/* The topology that `source` says:
       NUMBER              the image in this open descriptor: a memory file sealed against writing,
                           shrinking and growing, mapped as it is
       image:PATH          an image file, copied to memory
       xml:PATH            hwloc's XML
       synthetic:TEXT      hwloc's synthetic description
       native              this machine
   The last three need hwloc (libhwloc.so.15, 2.9 or newer), which is loaded for the call. Files and
   descriptors that belong neither to the calling user nor to root are refused. `report` may be
   null. */
int warren_topology_open(const char* source, warren_topology** topology,
                         warren_topology_report* report);

/* Returns everything that belongs to the topology. Null is nothing. */
void warren_topology_close(warren_topology* topology);

/* How it was got: WARREN_TOPOLOGY_NODE … */
int warren_topology_way(const warren_topology* topology);

/* The image's bytes, as they are in an image file or a descriptor. */
const void* warren_topology_image(const warren_topology* topology, size_t* bytes);

/* Writes the image to a file, whole or not at all, which only its owner may change. */
int warren_topology_save(const warren_topology* topology, const char* path);

/* ---- Objects ----------------------------------------------------------------------------------
 */

uint32_t warren_topology_objects(const warren_topology* topology);

/* How many objects of a type there are, at all depths, and the one with a logical index (its place
   among them). */
uint32_t warren_topology_count(const warren_topology* topology, int type);
warren_object warren_topology_object(const warren_topology* topology, int type, uint32_t index);

/* The object with an OS index: for processing units and NUMA nodes at once, else by looking at all
   objects of the type; the first one where several have it. */
static inline warren_object warren_topology_by_os_index(const warren_topology* topology, int type,
                                                        uint32_t os_index) {
    const warren_topology_index* index = warren_topology_tables(topology);
    if (type == WARREN_OBJECT_PU && os_index < index->cpus) {
        const uint32_t object = index->pu_by_cpu[os_index];
        return object != UINT16_MAX ? object : WARREN_NO_OBJECT;
    }
    if (type == WARREN_OBJECT_NUMA_NODE && os_index < index->nodes) {
        const int32_t target = index->target_by_node[os_index];
        return target >= 0 ? index->first_target + (uint32_t)target : WARREN_NO_OBJECT;
    }
    return warren_topology_find_by_os_index(topology, type, os_index);
}

/* The next object of a type behind `object` (WARREN_NO_OBJECT: the first). */
warren_object warren_topology_next(const warren_topology* topology, int type, warren_object object);

/* Levels: level d < warren_topology_depth() holds all objects at depth d of the tree, which are of
   one type and have consecutive numbers, `count` ones from `first` on. */
uint32_t warren_topology_depth(const warren_topology* topology);
int warren_topology_level(const warren_topology* topology, uint32_t depth, int* type,
                          warren_object* first, uint32_t* count);

int warren_object_type(const warren_topology* topology, warren_object object); /* -1: no object */
/* "Package", "L2Cache" …, and back (-1), in any case. */
const char* warren_object_type_name(int type);
int warren_object_type_by_name(const char* name);
/* Its depth in the tree; -1 for what is beside the tree. */
int warren_object_depth(const warren_topology* topology, warren_object object);
/* Its place among the objects of its level. */
uint32_t warren_object_logical_index(const warren_topology* topology, warren_object object);
uint32_t warren_object_os_index(const warren_topology* topology, warren_object object);

/* The processors below an object, or the NUMA nodes that are local to it, by OS index. For devices
   and others: of what they are attached to. The complete sets have also those that are offline. */
warren_set warren_object_cpus(const warren_topology* topology, warren_object object);
warren_set warren_object_nodes(const warren_topology* topology, warren_object object);
warren_set warren_object_complete_cpus(const warren_topology* topology, warren_object object);
warren_set warren_object_complete_nodes(const warren_topology* topology, warren_object object);

/* The kinds of children. */
enum { WARREN_CHILD_TREE = 0, WARREN_CHILD_MEMORY = 1, WARREN_CHILD_IO = 2, WARREN_CHILD_MISC = 3 };

warren_object warren_object_parent(const warren_topology* topology, warren_object object);
uint32_t warren_object_child_count(const warren_topology* topology, warren_object object, int kind);
warren_object warren_object_child(const warren_topology* topology, warren_object object, int kind,
                                  uint32_t index);
/* The closest object of a type above an object, not itself. */
warren_object warren_object_ancestor(const warren_topology* topology, warren_object object,
                                     int type);

/* The lowest object that has both below it, or is one of them. */
static inline warren_object warren_object_common_ancestor(const warren_topology* topology,
                                                          warren_object one, warren_object other) {
    const warren_object common = warren_topology_join(warren_topology_tables(topology), one, other);
    return __builtin_expect(common != WARREN_NO_OBJECT, 1)
               ? common
               : warren_topology_find_common_ancestor(topology, one, other);
}
/* Whether `object` is `ancestor` or below it. */
int warren_object_is_below(const warren_topology* topology, warren_object object,
                           warren_object ancestor);

/* The lowest object of the tree that has all these processors. None when the set is empty or has
   others than the topology's. */
warren_object warren_topology_covering(const warren_topology* topology, warren_set cpus);
/* The next object of a type, behind `object` (WARREN_NO_OBJECT: the first), that has processors,
   and only such of the set. */
warren_object warren_topology_next_inside(const warren_topology* topology, warren_set cpus,
                                          int type, warren_object object);

/* Name (of devices), subtype ("MCDRAM", "NVSwitch"), both null when there is none; other
   information by name, or one after the other: the count, and the index-th. With WARREN_NO_OBJECT:
   of the topology. Warren adds to hwloc's names, where the kernel's account of NUMA nodes lacks
   memory of the machine: "NodeAccountBytes", of a node that has all of the machine's memory, is
   what that account says of it; "BytesOutsideNodes", of the machine, is what is in no node's
   account. */
const char* warren_object_name(const warren_topology* topology, warren_object object);
const char* warren_object_subtype(const warren_topology* topology, warren_object object);
const char* warren_object_info(const warren_topology* topology, warren_object object,
                               const char* name);
uint32_t warren_object_info_count(const warren_topology* topology, warren_object object);
int warren_object_info_at(const warren_topology* topology, warren_object object, uint32_t index,
                          const char** name, const char** value);

/* Whether all that is below the object is alike. */
int warren_object_is_symmetric(const warren_topology* topology, warren_object object);

/* ---- What may be used
 * ---------------------------------------------------------------------------- */

/* The processors and NUMA nodes that may be used: those that the image says are allowed, and of
   these, when the topology describes the machine that the process runs on (WARREN_TOPOLOGY_NODE and
   _NATIVE), those that the thread which opened it was bound to and that the process's control group
   has. */
warren_set warren_topology_available_cpus(const warren_topology* topology);
warren_set warren_topology_available_nodes(const warren_topology* topology);

/* Makes them fewer: only such as are in the sets, too (null: no change). Must be alone; sets and
   filters that were got before are no longer valid. */
int warren_topology_restrict(warren_topology* topology, const warren_set* cpus,
                             const warren_set* nodes);

/* A filter shows a part of a topology: objects of which something may be used, on certain levels.
   The image stays as it is, and objects keep their numbers. The caller's; valid as long as the
   topology and its sets; the sets may be replaced by others. */
typedef struct {
    warren_set cpus;    /* objects of the tree are shown that have one of these */
    warren_set nodes;   /* NUMA nodes that are one of these; what is attached to others isn't */
    uint64_t levels[4]; /* bits: the levels that are shown */
} warren_filter;

#define WARREN_ALL_TYPES ((UINT32_C(1) << WARREN_OBJECT_TYPES) - 1)

/* A filter that shows what may be used, of the types whose bits (1 << type) are set, and always the
   machine and its processing units. Of `structure_types` (a part of `types`) those levels are left
   out that bring no structure: each object is all that one of the level above it has, or has no
   more than one of the level below. */
int warren_filter_make(const warren_topology* topology, uint32_t types, uint32_t structure_types,
                       warren_filter* filter);

/* Whether an object is shown; the next that is (WARREN_NO_OBJECT: the first) of a type; their
 * count. */
int warren_filter_shows(const warren_topology* topology, const warren_filter* filter,
                        warren_object object);
warren_object warren_filter_next(const warren_topology* topology, const warren_filter* filter,
                                 int type, warren_object object);
uint32_t warren_filter_count(const warren_topology* topology, const warren_filter* filter,
                             int type);
/* The closest object above that is shown. */
warren_object warren_filter_parent(const warren_topology* topology, const warren_filter* filter,
                                   warren_object object);
/* The next (behind `child`; WARREN_NO_OBJECT: the first) of the objects whose closest object above
   that is shown is `parent`: WARREN_CHILD_TREE in the tree's order; other kinds by number. */
warren_object warren_filter_next_child(const warren_topology* topology, const warren_filter* filter,
                                       warren_object parent, int kind, warren_object child);

/* ---- Details of some types: WARREN_TOPOLOGY_ERR_NONE for objects of others
 * ------------------------ */

enum { WARREN_CACHE_UNIFIED = 0, WARREN_CACHE_DATA = 1, WARREN_CACHE_INSTRUCTIONS = 2 };

typedef struct {
    uint64_t bytes;
    uint32_t line_bytes;   /* 0: not known */
    int32_t associativity; /* ways; -1: full, 0: not known */
    uint32_t depth;        /* 1: level 1 */
    uint32_t kind;         /* WARREN_CACHE_UNIFIED … */
} warren_cache;

/* Caches of processors and of memory. */
int warren_object_cache(const warren_topology* topology, warren_object object, warren_cache* cache);

/* Bytes of a NUMA node; of other objects, of all NUMA nodes at or below them. */
uint64_t warren_object_memory_bytes(const warren_topology* topology, warren_object object);
/* A NUMA node's sizes of pages: their number, and the index-th with how many there are of it. */
uint32_t warren_object_page_sizes(const warren_topology* topology, warren_object object);
int warren_object_page_size(const warren_topology* topology, warren_object object, uint32_t index,
                            uint64_t* page_bytes, uint64_t* pages);

typedef struct {
    uint32_t domain;
    uint8_t bus, device, function, revision;
    uint16_t class_id, vendor_id, device_id, subvendor_id, subdevice_id;
    float link_gigabytes_per_second; /* 0: not known */
} warren_pci_device;

/* PCI devices, and bridges on the PCI bus. */
int warren_object_pci_device(const warren_topology* topology, warren_object object,
                             warren_pci_device* device);

typedef struct {
    uint32_t is_host; /* the bridge between the machine and a bus; not a PCI device itself */
    uint32_t depth;
    uint32_t domain;                        /* of the bus below */
    uint8_t secondary_bus, subordinate_bus; /* first and last bus below */
} warren_bridge;

int warren_object_bridge(const warren_topology* topology, warren_object object,
                         warren_bridge* bridge);

typedef struct {
    uint32_t depth; /* among groups */
    uint32_t kind;  /* as hwloc numbers them */
    uint32_t subkind;
} warren_group;

int warren_object_group(const warren_topology* topology, warren_object object, warren_group* group);

enum {
    WARREN_DEVICE_BLOCK = 0, /* disks, memory as disks */
    WARREN_DEVICE_GPU = 1,
    WARREN_DEVICE_NETWORK = 2,
    WARREN_DEVICE_OPENFABRICS = 3,
    WARREN_DEVICE_DMA = 4,
    WARREN_DEVICE_COPROCESSOR = 5,
    WARREN_DEVICE_MEMORY = 6
};

/* What an OS device is; -1 for other objects. */
int warren_object_device_kind(const warren_topology* topology, warren_object object);

/* ---- What is near
 * --------------------------------------------------------------------------------- */

/* The NUMA node that is nearest to the processors of an object (to the first of them, where they
   have different ones). */
static inline warren_object warren_topology_nearest_memory(const warren_topology* topology,
                                                           warren_object object) {
    const warren_topology_index* index = warren_topology_tables(topology);
    return object < index->objects && index->nearest[object] != UINT8_MAX
               ? index->first_target + index->nearest[object]
               : warren_topology_find_nearest_memory(topology, object);
}
/* The same for the processor with an OS index. */
warren_object warren_topology_nearest_memory_of_cpu(const warren_topology* topology, uint32_t cpu);

/* The index-th nearest OS device of a kind, by the lowest common ancestor; those that are equally
   near in their order. */
warren_object warren_topology_nearest_device(const warren_topology* topology, warren_object object,
                                             int kind, uint32_t index);

/* ---- Distances
 * ------------------------------------------------------------------------------------ */

enum {
    WARREN_DISTANCES_FROM_OS = 1,   /* the operating system has told them */
    WARREN_DISTANCES_FROM_USER = 2, /* the user has given them to hwloc */
    WARREN_DISTANCES_LATENCY = 4,   /* latencies: of NUMA nodes relative, 10 is a node's own */
    WARREN_DISTANCES_BANDWIDTH = 8, /* bandwidths; hwloc's sources say in which unit, mostly MB/s */
    WARREN_DISTANCES_MIXED_TYPES = 16 /* between objects of several types */
};

/* A matrix; name and objects are the topology's, valid until it is closed. */
typedef struct {
    const char* name; /* "NUMALatency" …, or null */
    uint32_t kind;    /* bits of those above */
    uint32_t count;   /* objects */
    const warren_object* objects;
} warren_distances;

uint32_t warren_topology_distances_count(const warren_topology* topology);
int warren_topology_distances(const warren_topology* topology, uint32_t matrix,
                              warren_distances* distances);
/* Between the objects with these places in the matrix. */
int warren_topology_distance(const warren_topology* topology, uint32_t matrix, uint32_t from,
                             uint32_t to, uint64_t* value);

/* ---- Kinds of processors
 * ---------------------------------------------------------------------------- */

/* Sorted from the slowest to the fastest. */
uint32_t warren_topology_cpu_kinds(const warren_topology* topology);
/* The processors of a kind, and how fast they are among the kinds (-1: not known). Null is allowed.
 */
int warren_topology_cpu_kind(const warren_topology* topology, uint32_t kind, warren_set* cpus,
                             int* efficiency);
uint32_t warren_topology_cpu_kind_info_count(const warren_topology* topology, uint32_t kind);
int warren_topology_cpu_kind_info(const warren_topology* topology, uint32_t kind, uint32_t index,
                                  const char** name, const char** value);

/* ---- Attributes of memory
 * ------------------------------------------------------------------------------ */

/* What each memory (target: a NUMA node) is like as seen from each place (initiator). Initiators
   are the classes of processors from which all memory looks alike, and devices about which
   something is known. The first eight attributes are always there; others come with a name. */
enum {
    WARREN_ATTRIBUTE_CAPACITY = 0,  /* bytes */
    WARREN_ATTRIBUTE_LOCALITY = 1,  /* number of processors that it is local to */
    WARREN_ATTRIBUTE_BANDWIDTH = 2, /* MiB/s */
    WARREN_ATTRIBUTE_LATENCY = 3,   /* ns */
    WARREN_ATTRIBUTE_READ_BANDWIDTH = 4,
    WARREN_ATTRIBUTE_WRITE_BANDWIDTH = 5,
    WARREN_ATTRIBUTE_READ_LATENCY = 6,
    WARREN_ATTRIBUTE_WRITE_LATENCY = 7,
    WARREN_ATTRIBUTE_FIRST_OTHER = 8
};

/* Bits of an attribute. */
enum {
    WARREN_ATTRIBUTE_HIGHER_IS_BETTER = 1,
    WARREN_ATTRIBUTE_LOWER_IS_BETTER = 2,
    WARREN_ATTRIBUTE_NEEDS_INITIATOR = 4 /* else its value is the same from everywhere */
};

/* Where a value comes from. */
enum {
    WARREN_ORIGIN_FIRMWARE = 1, /* the machine's tables, as hwloc has them */
    WARREN_ORIGIN_MEASURED = 2,
    WARREN_ORIGIN_GUESSED =
        3 /* from distances, kinds of memory, and what is known of other pairs */
};

uint32_t warren_topology_attributes(const warren_topology* topology);
/* WARREN_NO_INDEX when there is none of this name ("Bandwidth", in any case). */
uint32_t warren_topology_attribute_by_name(const warren_topology* topology, const char* name);
const char* warren_topology_attribute_name(const warren_topology* topology, uint32_t attribute);
uint32_t warren_topology_attribute_flags(const warren_topology* topology, uint32_t attribute);

/* The initiators: their number; the one that a processor belongs to, or that all processors of a
   set belong to; the one that an object is: a device that is one, or else by its processors.
   WARREN_NO_INDEX: none. */
uint32_t warren_topology_initiators(const warren_topology* topology);
static inline uint32_t warren_topology_initiator_of_cpu(const warren_topology* topology,
                                                        uint32_t cpu) {
    const warren_topology_index* index = warren_topology_tables(topology);
    return __builtin_expect(cpu < index->cpus, 1)
               ? (uint32_t)(int32_t)index->initiator_by_cpu[cpu]
               : warren_topology_find_initiator_of_cpu(topology, cpu);
}
uint32_t warren_topology_initiator_of_cpus(const warren_topology* topology, warren_set cpus);
uint32_t warren_topology_initiator_of_object(const warren_topology* topology, warren_object object);
/* Its processors (a device's: those that it is attached to), and the device, or WARREN_NO_OBJECT.
 */
int warren_topology_initiator(const warren_topology* topology, uint32_t initiator, warren_set* cpus,
                              warren_object* device);

/* The value for a pair. `node` is the target's OS index; `initiator` is not looked at for
   attributes that don't need one. `origin` may be null. ERR_NONE when there is no value: only
   attributes behind the first eight lack some. */
static inline int warren_topology_value(const warren_topology* topology, uint32_t attribute,
                                        uint32_t initiator, uint32_t node, uint64_t* value,
                                        int* origin) {
    const warren_topology_index* index = warren_topology_tables(topology);
    warren_topology_found found;
    if (value == NULL) {
        return WARREN_TOPOLOGY_ERR_ARGUMENT;
    }
    if (attribute < WARREN_ATTRIBUTE_FIRST_OTHER &&
        __builtin_expect(initiator < index->short_initiators, 1) &&
        __builtin_expect(node < index->nodes, 1)) {
        const warren_topology_short_values* values = &index->short_values[attribute];
        const int32_t target = index->target_by_node[node];
        if (__builtin_expect(target >= 0, 1)) {
            const size_t cell = values->cells[(size_t)initiator * values->row + (size_t)target];
            const uint8_t* at = values->values + cell * values->value_stride;
            __builtin_memcpy(value, at + 1, sizeof *value);
            *value &= values->mask;
            if (origin != NULL) {
                *origin = at[0];
            }
            return WARREN_TOPOLOGY_SUCCESS;
        }
    }
    found = warren_topology_find_value(topology, attribute, initiator, node);
    if (found.error == WARREN_TOPOLOGY_SUCCESS) {
        *value = found.value;
        if (origin != NULL) {
            *origin = found.origin;
        }
    }
    return found.error;
}
/* The targets in their order for an initiator, the best first (place 0): the OS index of a node, or
   WARREN_NO_INDEX behind the last. Equal ones: local before remote ones, nearer before farther
   ones, else by logical index. Targets without a value come last. The order of
   WARREN_ATTRIBUTE_LOCALITY is that of nearness: local ones first, then by distance. */
static inline uint32_t warren_topology_best_target(const warren_topology* topology,
                                                   uint32_t attribute, uint32_t initiator,
                                                   uint32_t place) {
    const warren_topology_index* index = warren_topology_tables(topology);
    /* Orders have a byte for each target as long as that is enough. */
    if (attribute < index->attribute_count && initiator < index->initiators &&
        place < index->targets && index->targets <= 256) {
        const size_t row =
            (size_t)index->attributes[attribute].order * index->initiators + initiator;
        const uint32_t node = index->target_os_indices[index->orders[row * index->targets + place]];
        if (node < 0xfffe) { /* else there are none, or more bits */
            return node;
        }
    }
    return warren_topology_find_best_target(topology, attribute, initiator, place);
}

#ifdef __cplusplus
}
#endif

#endif
