#include "memory/thread_cache.hpp"

#include <algorithm>
#include <mutex>
#include <pthread.h>

namespace warren::memory {

thread_local constinit ThreadCaches* own_caches = nullptr;

namespace {

// Blocks that go from or to the heap at once.
constexpr std::uint32_t batch_limit = 32;

// Caches of threads that have ended, for those to come: with all their lists, empty.
constinit std::mutex spare_mutex;
constinit ThreadCaches* spares = nullptr;

void give_back(ThreadCache& cache, unsigned size_class, std::uint32_t count) {
    ThreadCache::List& list = cache.lists[size_class];
    void* first = list.head;
    void* after = first;
    for (std::uint32_t i = 0; i < count; ++i) {
        after = link_of(after);
    }
    list.head = after;
    list.count -= count;
    cache.heap->give_blocks(size_class, first, count);
}

// Runs when a thread ends. Another destructor may allocate afterwards: then it runs once more.
void end_of_thread(void*) {
    flush_caches();
    ThreadCaches* caches = own_caches;
    own_caches = nullptr;
    const std::lock_guard hold(spare_mutex);
    caches->next = spares;
    spares = caches;
}

pthread_key_t end_key() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        // Without a key, of which there are 1024, a thread's blocks are lost when it ends.
        return pthread_key_create(&made, end_of_thread) == 0 ? made : pthread_key_t(-1);
    }();
    return key;
}

} // namespace

void lock_spares() {
    spare_mutex.lock();
}

void unlock_spares() {
    spare_mutex.unlock();
}

ThreadCaches* make_caches() {
    if (own_caches != nullptr) {
        return own_caches;
    }
    ThreadCaches* made = nullptr;
    {
        const std::lock_guard hold(spare_mutex);
        made = spares;
        if (made != nullptr) {
            spares = made->next;
        }
    }
    if (made == nullptr) {
        made = static_cast<ThreadCaches*>(take_metadata(sizeof(ThreadCaches)));
        if (made == nullptr) {
            return nullptr;
        }
    }
    own_caches = made;
    pthread_setspecific(end_key(), made);
    return made;
}

ThreadCache* make_cache(Heap& heap) {
    ThreadCaches* own = make_caches();
    if (own == nullptr) {
        return nullptr;
    }
    ThreadCache*& cache = own->of[heap.index()];
    if (cache == nullptr) {
        cache = static_cast<ThreadCache*>(take_metadata(sizeof(ThreadCache)));
        if (cache != nullptr) {
            cache->heap = &heap;
        }
    }
    return cache;
}

void* refill(ThreadCache& cache, unsigned size_class) {
    unsigned taken = 0;
    void* list = cache.heap->take_blocks(
        size_class, std::clamp(size_classes[size_class].kept / 2, 1U, batch_limit), &taken);
    if (list == nullptr) {
        return nullptr;
    }
    cache.lists[size_class] = {link_of(list), taken - 1};
    return list;
}

void shorten(ThreadCache& cache, unsigned size_class) {
    give_back(cache, size_class, (cache.lists[size_class].count + 1) / 2);
}

void flush_caches() {
    ThreadCaches* own = own_caches;
    if (own == nullptr) {
        return;
    }
    for (ThreadCache* cache : own->of) {
        for (unsigned i = 0; cache != nullptr && i < class_count; ++i) {
            give_back(*cache, i, cache->lists[i].count);
        }
    }
}

} // namespace warren::memory
