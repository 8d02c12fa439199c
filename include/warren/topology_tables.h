/* What look-ups look at: tables of the image, which each warren_topology has at its beginning. Part
   of warren/topology.h, which has the look-ups that programs do most often, for compilers to put
   where they are used; src/topology/format.hpp explains the tables. Where these don't have the
   answer, and for other languages, there are the same as calls: warren_topology_find_…

   So tables are part of the binary interface. Their version is that of images, which is also the
   version of the library's symbols warren_topology_…: a program or library that was compiled for
   others and calls any of these, or has any look-up compiled in, is not started but told by the
   dynamic linker that libwarren.so lacks WARREN_TOPOLOGY_ and the number, and an image of another
   version is refused by whoever maps it. (So each look-up of topology.h that is compiled in has a
   call, too. What is declared here has none, and is not for programs to use themselves.) */
#ifndef WARREN_TOPOLOGY_TABLES_H
#define WARREN_TOPOLOGY_TABLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As in warren/topology.h. */
typedef struct warren_topology warren_topology;
typedef uint32_t warren_object;
#define WARREN_NO_OBJECT UINT32_MAX

typedef struct {
    /* Where its cells begin, and its values, in bytes from the first attribute. There is a cell for
       each initiator (or once) and target: the number of a value. A value has a byte of origin and
       one or more of its own; eight can be read. */
    uint32_t cells;
    uint32_t values;
    uint16_t order;       /* number of its order */
    uint16_t name;        /* offset of its name; 0: the predefined one */
    uint8_t flags;        /* WARREN_ATTRIBUTE_…; and four for the format */
    uint8_t row;          /* cells from an initiator to the next, 0: all the same; if short */
    uint8_t value_stride; /* bytes from a value to the next: 2, 3, 5 or 9 */
    uint8_t unused;
} warren_topology_attribute;

/* The values of a predefined attribute all of which are short: of one byte for a cell and for a
   row, and none lacking. */
typedef struct {
    const uint8_t* cells;
    const uint8_t* values;
    uint64_t mask; /* the bits of a value, of the eight bytes behind its origin */
    uint32_t row;
    uint32_t value_stride;
} warren_topology_short_values;

typedef struct {
    const void* joins;        /* uint8_t: pairs; or uint16_t */
    const uint16_t* places;   /* with pairs: where the object's row begins */
    const uint16_t* partings; /* null: joins are pairs */
    const uint8_t* nearest;
    const uint16_t* pu_by_cpu;       /* UINT16_MAX: none */
    const int16_t* initiator_by_cpu; /* -1: none; also below */
    const int16_t* target_by_node;
    const uint16_t* target_os_indices;
    const warren_topology_attribute* attributes;
    const uint8_t* orders;
    uint32_t objects;
    uint32_t joined_objects; /* those of the tree, which have the smallest numbers; or 0 */
    uint32_t joined_others;  /* the same: to one limit compilers compare the larger of two */
    uint32_t cpus;           /* tables by OS index have so many elements */
    uint32_t nodes;
    uint32_t attribute_count;
    uint32_t initiators;
    uint32_t short_initiators; /* the same if all predefined attributes have short values; or 0 */
    uint32_t targets;
    uint32_t first_target; /* object */
    warren_topology_short_values short_values[8];
} warren_topology_index;

typedef struct {
    uint64_t value;
    int origin;
    int error; /* WARREN_TOPOLOGY_SUCCESS, _ERR_ARGUMENT or _ERR_NONE */
} warren_topology_found;

/* They only read. */
#define WARREN_TOPOLOGY_PURE __attribute__((pure))
WARREN_TOPOLOGY_PURE warren_object warren_topology_find_by_os_index(const warren_topology* topology,
                                                                    int type, uint32_t os_index);
WARREN_TOPOLOGY_PURE warren_object warren_topology_find_common_ancestor(
    const warren_topology* topology, warren_object one, warren_object other);
WARREN_TOPOLOGY_PURE warren_object
warren_topology_find_nearest_memory(const warren_topology* topology, warren_object object);
WARREN_TOPOLOGY_PURE uint32_t warren_topology_find_initiator_of_cpu(const warren_topology* topology,
                                                                    uint32_t cpu);
WARREN_TOPOLOGY_PURE warren_topology_found warren_topology_find_value(
    const warren_topology* topology, uint32_t attribute, uint32_t initiator, uint32_t node);
WARREN_TOPOLOGY_PURE uint32_t warren_topology_find_best_target(const warren_topology* topology,
                                                               uint32_t attribute,
                                                               uint32_t initiator, uint32_t place);

/* The tables of a topology; of a null one such as have nothing. There are always some, so that a
   loop's compiler reads before the loop what all look-ups in it need. (Constant ones it would know,
   and make two ways of it again.) */
static inline const warren_topology_index* warren_topology_tables(const warren_topology* topology) {
    static warren_topology_index nothing; /* never changed */
    return __builtin_expect(topology != NULL, 1) ? (const warren_topology_index*)topology
                                                 : &nothing;
}

/* The lowest object that has both below it, or is one of them; or WARREN_NO_OBJECT, when these
   tables don't have it. What is needed nearly always is read first. */
static inline warren_object warren_topology_join(const warren_topology_index* index,
                                                 warren_object one, warren_object other) {
    const void* const joins = index->joins;
    const uint16_t* const places = index->places;
    const uint16_t* const partings = index->partings;
    const uint32_t joined = index->joined_objects;
    const uint32_t joined_others = index->joined_others;
    if (__builtin_expect(one < joined, 1) && __builtin_expect(other < joined_others, 1)) {
        uint32_t place = places[one];
        if (partings == NULL) {
            return ((const uint8_t*)joins)[(size_t)place + other];
        }
        /* Empty, and has to stay so: g++ 12 and clang 14 only don't know any longer that 16 bits
           would do. In these they would widen the exclusive or again, before the next load. */
        __asm__("" : "+r"(place));
        /* Without a branch of the program: who is above whom is anybody's guess. */
        const size_t column = partings[place ^ places[other]];
        const uint32_t parting = ((const uint16_t*)joins)[column + one];
        return parting < other ? parting : other;
    }
    return WARREN_NO_OBJECT;
}

#ifdef __cplusplus
}
#endif

#endif
