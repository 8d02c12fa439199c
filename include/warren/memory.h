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

/* Attributes. Values are unsigned 64-bit integers in the unit given. */
enum {
    WARREN_MEM_CAPACITY = 0,        /* bytes; more is better */
    WARREN_MEM_AVAILABLE = 1,       /* bytes that can be had now; more is better */
    WARREN_MEM_LOCALITY = 2,        /* processors that the memory is local to; fewer is better */
    WARREN_MEM_BANDWIDTH = 3,       /* MB/s, 10^6 bytes, from an initiator; more is better */
    WARREN_MEM_READ_BANDWIDTH = 4,  /* the same, of reads */
    WARREN_MEM_WRITE_BANDWIDTH = 5, /* the same, of writes */
    WARREN_MEM_LATENCY = 6,         /* ns, from an initiator; less is better */
    WARREN_MEM_READ_LATENCY = 7,    /* the same, of reads */
    WARREN_MEM_WRITE_LATENCY = 8,   /* the same, of writes */
    WARREN_MEM_FIRST_USER_ATTRIBUTE = 64 /* registered ones count from here */
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
   always exists, and does not depend on how targets are numbered. Where no attribute tells targets
   apart they are equal; the nearer is named first.

   Local targets come before remote ones, these before memory without processors and devices'.

   Thread rule: one thread sets; any number may use criteria at once that nobody sets. */
typedef struct warren_mem_criteria warren_mem_criteria;

/* New criteria: no attribute (the nearest memory is best), from where the caller runs, NEXT, pages
   of the default size, LOCAL and REMOTE. To be freed. */
int warren_mem_criteria_create(warren_mem_criteria** criteria);

/* New criteria from a text: attributes with their tolerances, best first, and settings, in any
   order, separated by blanks or semicolons: latency,capacity bandwidth~10%,capacity full=strict
   page=2M latency from=core:3 targets=local+remote+cpuless from=   here (the default), cpus:0-3,8,
   or an object of the machine, TYPE:INDEX full=   next, strict, interleave page=   default, or a
   size in bytes, with k, M or G for powers of 1024 targets= local, remote, cpuless, device, joined
   by +, or all Attributes may have been registered by name, and may be none (the text "" is
   allowed). */
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

/* A power of two in bytes that the machine has pages of; 0 is the default size. */
int warren_mem_criteria_set_page_size(warren_mem_criteria* criteria, size_t page_bytes);

/* Any of WARREN_MEM_LOCAL, REMOTE, CPULESS and DEVICE, at least one. */
int warren_mem_criteria_set_targets(warren_mem_criteria* criteria, unsigned targets);

/* The criteria as a text that _parse understands, with a null at its end, cut off if it has more
   than `bytes` bytes with that. `length` gets its whole length without the null; may be null. */
int warren_mem_criteria_text(const warren_mem_criteria* criteria, char* text, size_t bytes,
                             size_t* length);

#ifdef __cplusplus
}
#endif

#endif
