/* Memory by attribute: which memory of the node is best for something, by what it is wanted for.

   A node has several memories (NUMA nodes): near and far ones, fast and large ones. An attribute is
   a property of memory, often as seen from the processors that use it, the initiator: bandwidth,
   latency, capacity. Criteria say what somebody wants of memory; ordering the memories by them
   gives a list of targets, the best first. A target is a NUMA node, known by the number that the
   operating system gives it. The idea is that of Rubio Proaño, "Exposer les caractéristiques des
   architectures à mémoires hétérogènes aux applications parallèles" (COMPAS 2020).

   In libwarren.so, usable with and without MPI.

   Functions return WARREN_MEM_SUCCESS or one of the errors below; warren_mem_error has the
   sentence. Strings that are passed in are the caller's, and only looked at during the call. */
#ifndef WARREN_MEMORY_H
#define WARREN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "warren/topology.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WARREN_MEM_SUCCESS = 0,
    WARREN_MEM_ERR_ARG = 1,       /* an argument makes no sense */
    WARREN_MEM_ERR_ATTRIBUTE = 2, /* there is no such attribute */
    WARREN_MEM_ERR_NO_VALUE = 3,  /* nobody knows this value */
    WARREN_MEM_ERR_NO_TARGET = 4, /* no memory is as the criteria demand */
    WARREN_MEM_ERR_MACHINE = 5,   /* the machine's description can't be had, or is another's */
    WARREN_MEM_ERR_FILE = 6,      /* a file is not there, can't be read or is damaged */
    WARREN_MEM_ERR_FULL = 7,      /* the memory that the criteria allow is used up */
    WARREN_MEM_ERR_SYSTEM = 8     /* the operating system refuses something */
};

/* The sentence that says why the calling thread's last call that failed did so; valid until its
   next call. */
const char* warren_mem_error(void);

/* Attributes. Values are unsigned 64-bit integers in the unit given. The first eight are numbered
   as in warren/topology.h. */
enum {
    WARREN_MEM_CAPACITY = 0,        /* bytes; more is better */
    WARREN_MEM_LOCALITY = 1,        /* processors that it is local to; fewer is better */
    WARREN_MEM_BANDWIDTH = 2,       /* MiB/s, from an initiator; more is better */
    WARREN_MEM_LATENCY = 3,         /* ns, from an initiator; less is better */
    WARREN_MEM_READ_BANDWIDTH = 4,  /* the same of reads */
    WARREN_MEM_WRITE_BANDWIDTH = 5, /* … and of writes */
    WARREN_MEM_READ_LATENCY = 6,    /* … */
    WARREN_MEM_WRITE_LATENCY = 7,   /* … */
    WARREN_MEM_AVAILABLE = 8,       /* bytes that can be had now; more is better */
    WARREN_MEM_CACHE = 9,           /* bytes of memory-side caches before it; more is better */
    WARREN_MEM_FIRST_OTHER_ATTRIBUTE = 64 /* registered ones count from here */
};

/* The name of a predefined attribute, "read_bandwidth"; null if there is none of this number. */
const char* warren_mem_attribute_name(int attribute);
/* The predefined attribute of a name; -1 if there is none. */
int warren_mem_attribute_by_name(const char* name);

/* What is done when the best target is full. */
enum {
    WARREN_MEM_NEXT = 0,      /* the next one in order is taken */
    WARREN_MEM_STRICT = 1,    /* that is an error, and so is any page elsewhere */
    WARREN_MEM_INTERLEAVE = 2 /* pages go round among the targets that are equal to the best, so
                                 that they fill alike; then the next ones */
};

/* Which memories are considered, by where they are from the initiator. */
enum {
    WARREN_MEM_LOCAL = 1,      /* local to the initiator's processors, or some of them */
    WARREN_MEM_REMOTE = 2,     /* local to other processors */
    WARREN_MEM_CPULESS = 4,    /* local to no processor at all: behind a switch, in another machine.
                                  (High-bandwidth or non-volatile memory beside processors is theirs,
                                  although the operating system gives it a node without them.) */
    WARREN_MEM_DEVICE = 8,     /* of devices, such as graphics processors */
    WARREN_MEM_EVERYWHERE = 15 /* all of them */
};

/* Criteria: attributes in their order of importance, each with a tolerance; the initiator; what is
   done when memory is full; the size of pages; which memories are considered.

   Tolerance. Sorted by an attribute, the best value and all that differ from it by no more than the
   tolerance are equal: the best is not more than (1 + tolerance) times as good. The best of the
   others leads the next such group, and so on. Among equals the next attribute decides in the same
   way. So whether two targets are equal depends on which others are considered, but an ordering
   always exists, and does not depend on how targets are numbered. Among memories that are equal
   under criteria with a bandwidth or latency, the one behind the larger memory-side cache is
   better, as the values that firmware gives are the memory's alone. Where nothing tells targets
   apart they are equal; the nearer is named first.

   Local targets come before remote ones, these before memory without processors and devices'.

   Thread rule: one thread sets; any number may use criteria at once that nobody sets. */
typedef struct warren_mem_criteria warren_mem_criteria;

/* New criteria: no attribute (the nearest memory is best), from where the caller runs, NEXT, pages
   of the default size, LOCAL and REMOTE. To be freed. */
int warren_mem_criteria_create(warren_mem_criteria** criteria);

/* New criteria from a text: attributes, the best first, and settings, in any order, separated by
   blanks or semicolons, as "latency,capacity" or "bandwidth~10%,capacity full=strict from=core:3".

   An attribute may have a tolerance behind it (~10%), may have been registered by name, and there
   may be none ("" is allowed). Settings are from= (here, the default; cpus:0-3,8; or an object of
   the machine, TYPE:INDEX), full= (next, strict or interleave), page= (default, or bytes, with k, M
   or G for powers of 1024; from the system's reserve with hugetlb: before them) and targets=
   (local, remote, cpuless and device, joined by +, or all).
 */
int warren_mem_criteria_parse(const char* text, warren_mem_criteria** criteria);

/* Another object with equal contents. */
int warren_mem_criteria_copy(const warren_mem_criteria* criteria, warren_mem_criteria** copy);
void warren_mem_criteria_free(warren_mem_criteria* criteria); /* null does nothing */

/* Adds a predefined attribute, less important than those before. `tolerance` is a ratio, 0 to 10
   (0.1 is 10 %); a negative one stands for the default: 0.25 for bandwidths and latencies, else 0.
   At most 16 attributes. */
int warren_mem_criteria_add(warren_mem_criteria* criteria, int attribute, double tolerance);
/* The same by name, also of attributes that are registered until the criteria are used. */
int warren_mem_criteria_add_named(warren_mem_criteria* criteria, const char* name,
                                  double tolerance);

/* Who uses the memory, as after "from=": "here" is the processor on which the caller runs when
   the criteria are used. */
int warren_mem_criteria_set_initiator(warren_mem_criteria* criteria, const char* initiator);
/* The same by a bitmap of processors, of `bytes` bytes, as sched_setaffinity takes it. */
int warren_mem_criteria_set_initiator_cpus(warren_mem_criteria* criteria, const void* mask,
                                           size_t bytes);

int warren_mem_criteria_set_policy(warren_mem_criteria* criteria, int policy);

/* A power of two in bytes; 0 is the default size. Allocations know 4096 and 2 MiB; the latter is a
   wish, as the system makes such pages of what is free (transparent huge pages). */
int warren_mem_criteria_set_page_size(warren_mem_criteria* criteria, size_t page_bytes);

/* Pages of this size, a power of two above 4096, from those that the system's administrator has set
   apart (hugetlbfs), and no others. */
int warren_mem_criteria_set_reserved_pages(warren_mem_criteria* criteria, size_t page_bytes);

/* Any of WARREN_MEM_LOCAL, REMOTE, CPULESS and DEVICE, at least one. */
int warren_mem_criteria_set_targets(warren_mem_criteria* criteria, unsigned targets);

/* The criteria as a text that _parse understands, with a null at its end, cut off if it has more
   than `bytes` bytes with that. `length` gets its whole length without the null; may be null. */
int warren_mem_criteria_text(const warren_mem_criteria* criteria, char* text, size_t bytes,
                             size_t* length);

/* ---- A machine's memories ----------------------------------------------------------------------
 */

/* The memories of a machine with their attributes. Where a function takes one, null is this node's:
   found at the first call, by warren_topology_load, and kept to the end of the process.

   Thread rule: any number of threads at once; closing must be alone. */
typedef struct warren_memory warren_memory;

/* Origins of values besides WARREN_ORIGIN_FIRMWARE, MEASURED and GUESSED of warren/topology.h. */
enum {
    WARREN_MEM_ORIGIN_SYSTEM = 16, /* the operating system says it now */
    WARREN_MEM_ORIGIN_PROGRAM = 17 /* the program: warren_mem_set_value */
};

/* The memories of the machine that a topology describes, which must live as long. */
int warren_mem_open(const warren_topology* topology, warren_memory** memory);
void warren_mem_close(warren_memory* memory); /* null does nothing */

/* The numbers of all targets, the first `capacity` of them; `count` gets how many there are. */
int warren_mem_get_targets(warren_memory* memory, size_t capacity, unsigned* nodes, size_t* count);

/* The value of an attribute for a target, as seen from an initiator (a text as after "from=", null:
   "here"). From several processors that see it differently: the worst. `origin` may be null. */
int warren_mem_get_value(warren_memory* memory, int attribute, const char* initiator, unsigned node,
                         uint64_t* value, int* origin);

/* The best target under the criteria (null: the nearest). */
int warren_mem_get_best_target(warren_memory* memory, const warren_mem_criteria* criteria,
                               unsigned* node);

/* All targets that the criteria allow, the best first; the first `capacity` of them. Those with the
   same tier are equal; tiers count from 0 without gaps. `tiers` may be null. `count` gets how many
   there are, at least 1. */
int warren_mem_get_ordering(warren_memory* memory, const warren_mem_criteria* criteria,
                            size_t capacity, unsigned* nodes, unsigned* tiers, size_t* count);

/* The index-th best initiator of a target by an attribute that depends on initiators: its
   processors as a bitmap of `mask_bytes` bytes (those beyond are cut off; may be 0), and the value
   from there. Each initiator is a class of processors that see all memory alike, so several may
   have the same value; they come one after the other, and their masks joined are all processors
   that have it. `value` and `origin` may be null. ERR_NO_VALUE behind the last. */
int warren_mem_get_initiator(warren_memory* memory, int attribute, unsigned node, size_t index,
                             void* mask, size_t mask_bytes, uint64_t* value, int* origin);

/* Registers an attribute: a name that no other has (letters, digits and _, a letter first, less
   than 64) and flags of WARREN_ATTRIBUTE_… in warren/topology.h, one direction and perhaps
   NEEDS_INITIATOR. It is this process's, and can be used in criteria by its name. */
int warren_mem_register_attribute(warren_memory* memory, const char* name, unsigned flags,
                                  int* attribute);
/* Sets a value of a registered attribute; without NEEDS_INITIATOR `initiator` is not looked at. */
int warren_mem_set_value(warren_memory* memory, int attribute, const char* initiator, unsigned node,
                         uint64_t value);
/* An attribute by name: predefined, of the topology, or registered. */
int warren_mem_find_attribute(warren_memory* memory, const char* name, int* attribute);

/* ---- Allocation
   ----------------------------------------------------------------------------------

   Blocks of memory on the targets that criteria order, null standing for the nearest memory of this
   node. Pages are placed when a block is allocated, not at their first touch, and the system is
   asked where they came to be: so a full target is seen then, the next one takes the rest (or what
   the policy says), and nothing fails later. Blocks of up to 1 MiB share pages with others of the
   same criteria.

   Ranks of a job share each memory fairly: a process gets as much of a NUMA node as could be had
   there when the job first used it, divided by the ranks near it; then the node counts as full for
   it. With WARREN_MEMORY_SHARE=first in the environment it is first come, first served.

   Functions that return memory return null on failure and set errno too: ENOMEM, EINVAL, EPERM.
   Blocks are aligned to 16 bytes or more. After fork, pages of blocks are copied as they are
   written, like all memory. What a program may not do (free a block twice, or what is no block)
   ends it with a message where that is seen.

   Thread rule: any number of threads at once; any of them may free or move a block that nobody else
   uses. */

/* A block of `bytes`; 0 is allowed. Fails with ERR_FULL when the targets that the criteria allow
   are full, ERR_SYSTEM when the system forbids to place memory (which only matters to STRICT and
   INTERLEAVE), ERR_ARG for page sizes other than the default, 4 KiB and 2 MiB, and as
   warren_mem_get_ordering does. Pages of 2 MiB are wishes: where the kernel finds none, 4 KiB pages
   serve.

   Pages from the system's reserve are had or the allocation fails: ERR_FULL when the targets have
   none left or none are set apart, ERR_ARG when the machine has none of that size, ERR_SYSTEM
   before Linux 5.16. They are shared by nobody's rule: first come, first served. Pages larger than
   2 MiB are not shared by blocks: each block has some of its own. After fork, a child that
   touches such a block, or allocates or frees by such criteria, when the reserve is used up is
   ended by the system. */
void* warren_mem_alloc(size_t bytes, const warren_mem_criteria* criteria);

/* The same at a multiple of `alignment`, a power of two. */
void* warren_mem_alloc_aligned(size_t alignment, size_t bytes, const warren_mem_criteria* criteria);

/* The block with a new size, in the memory in which it is; on failure it is as it was. Null is
   allocated, by the criteria, which are not looked at else. ERR_ARG: it is no block. */
void* warren_mem_realloc(void* block, size_t bytes, const warren_mem_criteria* criteria);

void warren_mem_free(void* block); /* null does nothing */

/* Bytes that the block has, at least as many as were asked for; 0 for what is no block. */
size_t warren_mem_usable_size(const void* block);

/* The NUMA node of each page that [address, address + bytes) touches, of any memory, asked of the
   system: the first `capacity` of them in `nodes`, -1 where there is no page yet, where it has been
   written out, and where the system is just moving it. The memory is not touched. Pages are of 4096
   bytes. `count` gets how many there are; may be null. */
int warren_mem_where(const void* address, size_t bytes, size_t capacity, int* nodes, size_t* count);

/* Brings a block to where other criteria say, and returns it. A block of more than 1 MiB keeps its
   address, and its pages migrate. A smaller one gets a new address, and the old one is gone; so
   does one that has or gets pages of the system's reserve. On
   failure (null) it is as it was. */
void* warren_mem_move(void* block, const warren_mem_criteria* criteria);

/* Gives the memory that this library keeps in reserve for the calling thread, and for all, back to
   the system. */
void warren_mem_trim(void);

#ifdef __cplusplus
}
#endif

#endif
