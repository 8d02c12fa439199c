#include "memory/heap/heap.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "memory/heap/short_hold.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

void abort_misuse(const char* what, const void* block) {
    char text[160];
    const int length =
        std::snprintf(text, sizeof text, "warren: warren_mem: %s: %p\n", what, block);
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {
        // Nobody reads it; the core tells.
    }
    std::abort();
}

namespace {

// The region of a block that came back, or of a span.
PageRegion& region_of(const void* block) {
    Region* region = find_region(block);
    if (region == nullptr) [[unlikely]] {
        abort_misuse("a block was written to when it was free: behind it is", block);
    }
    return static_cast<PageRegion&>(*region);
}

} // namespace

// A span with free blocks, listed. Threads get spans of their own, as far as that wastes little:
// when their blocks are neighbours, processors that fetch ahead take each other's cache lines away
// (blocks of 64 bytes took two threads twice as long). Under the lock of the class. Null: there is
// none, or a new one is better (then *other says which will do).
Span* Heap::find_span(unsigned size_class, const void* taker, Span** other) {
    Class& own = classes_[size_class];
    unsigned seen = 0;
    for (Span* span = own.spans; span != nullptr && seen < most_spans_seen;
         span = span->next, ++seen) {
        if (span->taker == taker || span->taker == nullptr || taker == nullptr) {
            return span;
        }
    }
    *other = own.spans;
    const bool any = seen == most_spans_seen || size_classes[size_class].blocks == 1;
    return any ? own.spans : nullptr;
}

// Adds blocks of listed spans to the batch, until it has what it wants. Under the lock of the
// class. `any`: of other threads' spans as well, where a new one would be better.
void Heap::take_listed(Batch& batch, bool any) {
    const SizeClass& sizes = size_classes[batch.size_class];
    while (batch.taken < batch.wanted) {
        Span* other = nullptr;
        Span* span = find_span(batch.size_class, batch.taker, &other);
        if (span == nullptr && (any || batch.taken != 0)) {
            span = other;
        }
        if (span == nullptr) {
            break;
        }
        span->taker = batch.taker;
        while (batch.taken < batch.wanted && span->used < sizes.blocks) {
            void* block = span->free;
            if (block != nullptr) {
                span->free = link_of(block);
            } else {
                block = span->begin + std::size_t{span->formed++} * sizes.bytes;
            }
            ++span->used;
            link_of(block) = batch.list;
            batch.list = block;
            ++batch.taken;
        }
        if (span->used == sizes.blocks) {
            unlink(classes_[batch.size_class].spans, *span);
            span->listed = false;
        }
    }
}

void* Heap::take_blocks(unsigned size_class, unsigned count, unsigned* taken, const void* taker) {
    Class& own = classes_[size_class];
    Batch batch{size_class, count, taker};
    std::uint64_t refusals = 0;
    {
        const ShortHold hold(own.mutex);
        take_listed(batch, false);
        refusals = own.refusals;
    }
    if (batch.taken == 0) {
        Growth::Turn turn(growth_);
        take_new(batch);
        if (turn.end() && batch.taken == 0 && errno == ENOMEM) {
            take_alone(batch, refusals);
        }
    }
    *taken = batch.taken;
    return batch.list;
}

// One new span per call: what is to be placed anew is placed as it is needed. Others allocate and
// free meanwhile. Without one another thread's has to do.
void Heap::take_new(Batch& batch) {
    Class& own = classes_[batch.size_class];
    Span* made = new_span(batch.size_class);
    const ShortHold hold(own.mutex);
    if (made != nullptr) {
        made->taker = batch.taker;
        push_front(own.spans, *made);
        made->listed = true;
    }
    take_listed(batch, true);
}

// For a thread that got no memory while others were adding some. `refusals` is the class's number
// from before that attempt.
void Heap::take_alone(Batch& batch, std::uint64_t refusals) {
    const std::lock_guard alone(growth_);
    Class& own = classes_[batch.size_class];
    {
        const ShortHold hold(own.mutex);
        take_listed(batch, true);
        if (batch.taken != 0) {
            return;
        }
        if (own.refusals != refusals) { // somebody has tried alone meanwhile
            errno = ENOMEM;
            return;
        }
    }
    take_new(batch);
    if (batch.taken == 0) {
        const ShortHold hold(own.mutex);
        ++own.refusals;
    }
}

void* Heap::give_blocks(unsigned size_class, void* list, unsigned count) {
    Class& own = classes_[size_class];
    const ShortHold hold(own.mutex);
    for (; count != 0; --count) {
        void* block = list;
        PageRegion& region = region_of(block);
        list = link_of(block);
        const std::size_t page =
            static_cast<std::size_t>(static_cast<char*>(block) - region.start()) / page_bytes;
        Span& span = region.spans[region.first_page[page]];
        if (span.used == 0) {
            abort_misuse("a block was freed twice", block);
        }
        if (static_cast<std::size_t>(static_cast<char*>(block) - span.begin) %
                size_classes[size_class].bytes !=
            0) {
            abort_misuse("what was freed is the middle of a block", block);
        }
        link_of(block) = span.free;
        span.free = block;
        --span.used;
        if (!span.listed) {
            push_front(own.spans, span);
            span.listed = true;
        }
        // The last span with free blocks stays, so that a single block that comes and goes is
        // cheap.
        const bool last = own.spans == &span && span.next == nullptr;
        if (span.used == 0 && (!last || size_classes[size_class].blocks == 1)) {
            unlink(own.spans, span);
            span.listed = false;
            end_span(region, span);
        } else if (span.used == 0) {
            // As at the beginning: threads get neighbours again, in runs. Blocks of several threads
            // between each other make their processors fetch each other's cache lines.
            span.free = nullptr;
            span.formed = 0;
            span.taker = nullptr;
        }
    }
    return list;
}

bool Heap::is_free(unsigned size_class, const void* block) {
    const PageRegion& region = region_of(block);
    const std::size_t page =
        static_cast<std::size_t>(static_cast<const char*>(block) - region.start()) / page_bytes;
    const std::lock_guard hold(classes_[size_class].mutex);
    const Span& span = region.spans[region.first_page[page]];
    const auto index = static_cast<std::size_t>(static_cast<const char*>(block) - span.begin) /
                       size_classes[size_class].bytes;
    if (index >= span.formed) {
        return true;
    }
    for (void* free = span.free; free != nullptr; free = link_of(free)) {
        if (free == block) {
            return true;
        }
    }
    return false;
}

bool Heap::trim() {
    // Spans that wait for their next block first.
    for (unsigned i = 0; i < class_count; ++i) {
        const std::lock_guard hold(classes_[i].mutex);
        for (Span* span = classes_[i].spans; span != nullptr;) {
            Span* next = span->next;
            if (span->used == 0) {
                unlink(classes_[i].spans, *span);
                span->listed = false;
                end_span(region_of(span->begin), *span);
            }
            span = next;
        }
    }
    const std::lock_guard hold(pages_mutex_);
    const std::size_t before = idle_pages_;
    more_idle_pages_ = 0;
    for (PageRegion* region = open_; region != nullptr; region = region->next) {
        displace_free_units(*region, 0, region_units - 1, 0);
    }
    return idle_pages_ < before;
}

void Heap::lock() {
    growth_.lock();
    for (Class& own : classes_) {
        own.mutex.lock();
    }
    pages_mutex_.lock();
}

void Heap::unlock() {
    pages_mutex_.unlock();
    for (Class& own : classes_) {
        own.mutex.unlock();
    }
    growth_.unlock();
}

} // namespace warren::memory
