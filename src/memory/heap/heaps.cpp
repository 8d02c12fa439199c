#include "memory/heap/heaps.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <pthread.h>

#include "memory/heap/numa.hpp"
#include "memory/heap/thread_cache.hpp"

namespace warren::memory {

namespace {

constinit std::mutex registry_mutex;
constinit std::atomic<Heap*> heaps[heap_limit];
constinit std::atomic<unsigned> heap_count{0};
constinit bool guards_forks = false; // under the mutex

void lock_heaps() {
    registry_mutex.lock();
    const unsigned count = heap_count.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < count; ++i) {
        heaps[i].load(std::memory_order_relaxed)->lock();
    }
    Heap::lock_large();
    lock_spares();
}

void unlock_heaps() {
    unlock_spares();
    Heap::unlock_large();
    const unsigned count = heap_count.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < count; ++i) {
        heaps[i].load(std::memory_order_relaxed)->unlock();
    }
    registry_mutex.unlock();
}

// Other threads don't exist in the child: their cached blocks are lost, and their loans end.
void unlock_heaps_of_child() {
    const unsigned count = heap_count.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < count; ++i) {
        heaps[i].load(std::memory_order_relaxed)->keep_loan(own_loan(i));
    }
    unlock_heaps();
}

// Under the mutex. A child of fork has whole heaps, whatever other threads were doing.
bool guard_forks_once() {
    guards_forks =
        guards_forks || pthread_atfork(lock_heaps, unlock_heaps, unlock_heaps_of_child) == 0;
    return guards_forks;
}

bool makes_sense(const Kind& kind) {
    return kind.count >= 1 && kind.count <= target_limit && kind.equals >= 1 &&
           kind.equals <= kind.count &&
           std::all_of(kind.targets, kind.targets + kind.count,
                       [](int target) { return target >= 0 && target < node_limit; });
}

// Whether the process may use one of the targets that have to serve.
bool can_serve(const Kind& kind) {
    const NodeSet allowed = allowed_nodes();
    const std::size_t count = kind.policy == Policy::strict ? kind.equals : kind.count;
    return std::any_of(kind.targets, kind.targets + count,
                       [&](int target) { return allowed.has(target); });
}

Heap* known_heap(const Kind& kind) {
    const unsigned count = heap_count.load(std::memory_order_acquire);
    for (unsigned i = 0; i < count; ++i) {
        Heap* heap = heaps[i].load(std::memory_order_relaxed);
        if (heap->kind() == kind) {
            return heap;
        }
    }
    return nullptr;
}

} // namespace

Heap* heap_of_kind(const Kind& kind) {
    if (!makes_sense(kind)) {
        errno = EINVAL;
        return nullptr;
    }
    if (Heap* known = known_heap(kind)) {
        return known;
    }
    if (!can_serve(kind)) {
        errno = EINVAL;
        return nullptr;
    }
    const std::lock_guard hold(registry_mutex);
    if (Heap* known = known_heap(kind)) {
        return known;
    }
    const unsigned index = heap_count.load(std::memory_order_relaxed);
    if (index == heap_limit) {
        errno = EAGAIN;
        return nullptr;
    }
    void* memory = take_metadata(sizeof(Heap));
    if (memory == nullptr) {
        return nullptr;
    }
    if (!guard_forks_once()) {
        errno = ENOMEM;
        return nullptr;
    }
    auto* heap = new (memory) Heap(kind, index);
    heaps[index].store(heap, std::memory_order_relaxed);
    heap_count.store(index + 1, std::memory_order_release); // with the heap
    return heap;
}

bool guard_forks() {
    const std::lock_guard hold(registry_mutex);
    return guard_forks_once();
}

unsigned heaps_made() {
    return heap_count.load(std::memory_order_acquire);
}

bool trim_heaps() {
    bool any = false;
    const unsigned count = heap_count.load(std::memory_order_acquire);
    for (unsigned i = 0; i < count; ++i) {
        any = heaps[i].load(std::memory_order_relaxed)->trim() || any;
    }
    return any;
}

} // namespace warren::memory
