// From criteria to the heap that serves them: the ordering of this node's memories as they ask for
// it, as a kind of memory. What was found is kept per thread, under the criteria's revision, until
// the machine's attributes change or, where the initiator is the caller, the caller runs on another
// processor. Thread rule: any thread at any time.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include <sched.h>

#include "memory/attributes/criteria.hpp"
#include "memory/attributes/machine.hpp"
#include "memory/heap/thread_cache.hpp"
#include "warren/memory.h"

namespace warren::memory {

// The memories that criteria mean on a machine, in order. Errors: see heap_for.
Error kind_of(const Machine& machine, const Criteria& criteria, Kind& kind);

// Whether this system has a reserve of the pages that criteria ask for, if they ask for such:
// ERR_ARG: no pages of that size; ERR_FULL: none are set apart; ERR_SYSTEM: the system is too old.
// Placing finds out when a node's reserve is used up.
Error check_reserve(const Criteria& criteria);

// Finds out. Errors: see heap_for.
Error find_heap(const warren_mem_criteria* criteria, Heap*& heap);

// 0, which no criteria have, for null.
inline std::uint64_t revision_of(const warren_mem_criteria* criteria) {
    return criteria != nullptr ? of(criteria).revision : 0;
}

// Where the caller keeps what it knows of the criteria; null: nowhere yet.
inline const KnownHeap* known_entry(const warren_mem_criteria* criteria) {
    const ThreadCaches* own = own_caches;
    return own != nullptr ? &own->known[revision_of(criteria) % known_heaps] : nullptr;
}

// The heap that the calling thread remembers for the criteria. Null: the caller has to find it, or
// depends on its processor.
inline const KnownHeap* known_heap(const warren_mem_criteria* criteria) {
    const KnownHeap* entry = known_entry(criteria);
    return entry != nullptr && entry->criteria == revision_of(criteria) &&
                   entry->machine == Machine::revision()
               ? entry
               : nullptr;
}

// The remembered heap of criteria that mean one heap wherever the caller runs. Null: none is known.
inline const KnownHeap* known_anywhere(const warren_mem_criteria* criteria) {
    const KnownHeap* entry = known_entry(criteria);
    return entry != nullptr && entry->anywhere == revision_of(criteria) &&
                   entry->machine == Machine::revision()
               ? entry
               : nullptr;
}

// Null criteria: the nearest memory. Errors: those of the machine and of orderings; ERR_NO_TARGET:
// the process may use none of the targets; ERR_ARG: pages of this size can't be had; ERR_FULL.
inline Error heap_for(const warren_mem_criteria* criteria, Heap*& heap) {
    const KnownHeap* known = known_heap(criteria);
    if (known != nullptr && (known->processor < 0 || known->processor == sched_getcpu())) {
        heap = known->heap;
        return {};
    }
    return find_heap(criteria, heap);
}

} // namespace warren::memory
