#include "memory/heap/thread_cache.hpp"

#include <algorithm>
#include <mutex>
#include <pthread.h>

#include "memory/heap/tuning.hpp"

namespace warren::memory {

thread_local constinit ThreadCaches* own_caches = nullptr;

namespace {

// Caches of threads that have ended, for those to come: with all their lists, empty.
constinit std::mutex spare_mutex;
constinit ThreadCaches* spares = nullptr;

void give_back(ThreadCache& cache, unsigned size_class, std::uint32_t count) {
    ThreadCache::List& list = cache.lists[size_class];
    if (count != 0) {
        list.head = cache.heap->give_blocks(size_class, list.head, count);
        list.room += static_cast<std::int32_t>(count);
    }
}

// Gives what is on loan back, but for one class's part of it.
void end_loans(ThreadCache& cache, unsigned but_for) {
    for (unsigned i = 0; i < class_count && cache.on_loan != 0; ++i) {
        ThreadCache::List& list = cache.lists[i];
        const std::uint32_t usual = size_classes[i].kept;
        if (i == but_for || list.limit == usual) {
            continue;
        }
        const std::size_t bytes = std::size_t{list.limit - usual} * size_classes[i].bytes;
        list.room -= static_cast<std::int32_t>(list.limit - usual);
        list.limit = usual;
        if (list.room < 0) {
            give_back(cache, i, static_cast<std::uint32_t>(-list.room));
        }
        cache.on_loan -= bytes;
        cache.heap->take_loan_back(bytes);
    }
}

// One more large block for the list to keep. What other classes have on loan ends first: a program
// that goes on to blocks of another size leaves those of the size before.
bool raise_limit(ThreadCache& cache, unsigned size_class) {
    const std::size_t bytes = size_classes[size_class].bytes;
    if (bytes < large_block_bytes) {
        return false;
    }
    if (cache.on_loan + bytes > large_kept_bytes) {
        end_loans(cache, size_class);
        if (cache.on_loan + bytes > large_kept_bytes) {
            return false;
        }
    }
    if (!cache.heap->lend(bytes)) {
        return false;
    }
    cache.on_loan += bytes;
    ++cache.lists[size_class].limit;
    ++cache.lists[size_class].room;
    return true;
}

void flush(ThreadCaches& caches) {
    const unsigned heaps = heaps_made();
    for (unsigned heap = 0; heap < heaps; ++heap) {
        ThreadCache* cache = caches.of[heap];
        for (unsigned i = 0; cache != nullptr && i < class_count; ++i) {
            give_back(*cache, i, cache->lists[i].count());
        }
        if (cache != nullptr) {
            end_loans(*cache, class_count);
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

std::size_t own_loan(unsigned heap) {
    const ThreadCache* cache = own_caches != nullptr ? own_caches->of[heap] : nullptr;
    return cache != nullptr ? cache->on_loan : 0;
}

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
        for (KnownHeap& known : made->known) {
            known.criteria = known.anywhere = no_criteria;
        }
        made->leaf_number = UINTPTR_MAX; // of no address
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
            for (unsigned i = 0; i < class_count; ++i) {
                cache->lists[i].limit = size_classes[i].kept;
                cache->lists[i].room = static_cast<std::int32_t>(size_classes[i].kept);
            }
        }
    }
    return cache;
}

void* refill(ThreadCache& cache, unsigned size_class) {
    unsigned taken = 0;
    void* list = cache.heap->take_blocks(
        size_class, std::clamp(cache.lists[size_class].limit / 2, 1U, batch_limit), &taken, &cache);
    if (list == nullptr) {
        return nullptr;
    }
    cache.lists[size_class].head = link_of(list);
    cache.lists[size_class].room -= static_cast<std::int32_t>(taken - 1);
    return list;
}

void shorten(ThreadCache& cache, unsigned size_class) {
    if (!raise_limit(cache, size_class)) {
        give_back(cache, size_class, (cache.lists[size_class].count() + 1) / 2);
    }
}

void flush_caches() {
    if (own_caches != nullptr) {
        flush(*own_caches);
    }
}

} // namespace warren::memory
