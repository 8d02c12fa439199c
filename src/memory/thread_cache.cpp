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

void flush(ThreadCaches& caches) {
    const unsigned heaps = heaps_made();
    for (unsigned heap = 0; heap < heaps; ++heap) {
        ThreadCache* cache = caches.of[heap];
        for (unsigned i = 0; cache != nullptr && i < class_count; ++i) {
            give_back(*cache, i, cache->lists[i].count);
        }
    }
}

// The thread has given its caches away: what comes behind goes to the heaps itself.
[[gnu::tls_model("initial-exec")]] thread_local constinit bool has_ended = false;

// Runs when a thread ends. What the C library itself allocates and frees behind that can leave
// caches to the next thread on the same stack, which has others then.
void end_of_thread(void* data) {
    has_ended = true;
    auto* caches = static_cast<ThreadCaches*>(data);
    flush(*caches);
    if (own_caches == caches) {
        own_caches = nullptr;
    }
    const std::lock_guard hold(spare_mutex);
    caches->next = spares;
    spares = caches;
}

// Without a key, of which there are 1024, a thread's blocks are lost when it ends.
constinit pthread_key_t end_key = pthread_key_t(-1);
constinit pthread_once_t end_key_made = PTHREAD_ONCE_INIT;

void make_end_key() {
    pthread_key_t made{};
    end_key = pthread_key_create(&made, end_of_thread) == 0 ? made : pthread_key_t(-1);
}

} // namespace

void lock_spares() {
    spare_mutex.lock();
}

void unlock_spares() {
    spare_mutex.unlock();
}

ThreadCaches* make_caches() {
    if (own_caches != nullptr || has_ended) {
        return own_caches;
    }
    pthread_once(&end_key_made, make_end_key);
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
    pthread_setspecific(end_key, made);
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
    if (own_caches != nullptr) {
        flush(*own_caches);
    }
}

} // namespace warren::memory
