#include "memory/heap.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "memory/numa.hpp"
#include "memory/placement.hpp"
#include "memory/reserve.hpp"

namespace warren::memory {

namespace {

// Placed memory that a heap keeps although it is free: so much and a part of what is in use.
// Placing costs as much as a hundred allocations, so what programs free to allocate it again at
// once is worth keeping.
constexpr std::size_t idle_pages_kept = 16 * 1024 * 1024 / page_bytes;
constexpr std::size_t idle_part_kept = 16;

// What is given back and needed again within so long would better have been kept: so the heap keeps
// more, up to so much (eight threads that each make and free 8 MiB), until it was too much for so
// long.
constexpr std::uint64_t again_within_ns = 100'000'000;
constexpr std::size_t most_more_idle_pages = 112 * 1024 * 1024 / page_bytes;
constexpr std::uint64_t more_idle_for_ns = 1'000'000'000;

// Large blocks that all threads together may keep to themselves, of the above; so much is the
// heap's.
constexpr std::size_t most_lent_bytes = 16 * 1024 * 1024;
constexpr std::size_t least_idle_pages_kept = 4 * 1024 * 1024 / page_bytes;

// A reserve that was found used up is not asked again for so long, or until this process gives some
// of it back: each try costs several calls of the system, and all free memory of the process.
constexpr std::uint64_t refused_for_ns = 50'000'000;

constexpr std::size_t no_page = region_pages;

// Holds a mutex that others hold for a tenth of a microsecond: to sleep and be woken takes ten
// times as long as to wait a little.
class ShortHold {
  public:
    explicit ShortHold(std::mutex& mutex) : mutex_(mutex) {
        constexpr int tries = 100;
        for (int i = 0; i < tries; ++i) {
            if (mutex_.try_lock()) {
                return;
            }
            spin_pause();
        }
        mutex_.lock();
    }
    ~ShortHold() { mutex_.unlock(); }
    ShortHold(const ShortHold&) = delete;
    ShortHold& operator=(const ShortHold&) = delete;

  private:
    std::mutex& mutex_;
};

// The first of `count` set bits in a row, no_page: there is no such row.
std::size_t find_run(const std::uint64_t* words, std::size_t count) {
    std::size_t page = 0;
    while (page < region_pages) {
        const std::uint64_t rest = words[page / unit_pages] >> (page % unit_pages);
        if (rest == 0) {
            page = (page / unit_pages + 1) * unit_pages;
            continue;
        }
        page += static_cast<std::size_t>(std::countr_zero(rest));
        std::size_t end = page;
        while (end < region_pages && end - page < count) {
            const std::size_t ones = static_cast<std::size_t>(
                std::countr_one(words[end / unit_pages] >> (end % unit_pages)));
            end += ones;
            if (ones == 0 || end % unit_pages != 0) {
                break;
            }
        }
        if (end - page >= count) {
            return page;
        }
        page = end;
    }
    return no_page;
}

// The bits of [first, first + count) within unit `unit`.
std::uint64_t bits_of(std::size_t unit, std::size_t first, std::size_t count) {
    const std::size_t begin = std::max(first, unit * unit_pages);
    const std::size_t end = std::min(first + count, (unit + 1) * unit_pages);
    const std::size_t bits = end - begin;
    return (bits == unit_pages ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1)
           << (begin % unit_pages);
}

bool is_placed(const PageRegion& region, std::size_t unit) {
    return (region.placed_units >> unit & 1) != 0;
}

void advise_page_size(PageSize page_size, char* begin, std::size_t bytes, bool large) {
    const int saved = errno;
    if (page_size == PageSize::huge) {
        madvise(begin, bytes, MADV_HUGEPAGE);
    } else if (page_size == PageSize::small || !large) {
        // A unit is to be a unit, also where the system gives everybody huge pages.
        madvise(begin, bytes, MADV_NOHUGEPAGE);
    }
    errno = saved;
}

template <typename Element>
void push_front(Element*& list, Element& element) {
    element.previous = nullptr;
    element.next = list;
    if (list != nullptr) {
        list->previous = &element;
    }
    list = &element;
}

template <typename Element>
void unlink(Element*& list, Element& element) {
    (element.previous != nullptr ? element.previous->next : list) = element.next;
    if (element.next != nullptr) {
        element.next->previous = element.previous;
    }
}

// What is known of large blocks, kept for the next ones.
struct LargeRegions {
    std::mutex mutex;
    struct Slot {
        Region region; // first: a region's address is its slot's
        Slot* next;
    };
    Slot* free = nullptr;

    Region* take() {
        const std::lock_guard hold(mutex);
        if (free == nullptr) {
            constexpr std::size_t bytes = 16 * page_bytes;
            auto* slots = static_cast<Slot*>(take_metadata(bytes));
            if (slots == nullptr) {
                return nullptr;
            }
            for (std::size_t i = 0; i < bytes / sizeof(Slot); ++i) {
                Slot* slot = new (slots + i) Slot{};
                slot->region.large = true;
                slot->next = free;
                free = slot;
            }
        }
        Slot* slot = free;
        free = slot->next;
        return &slot->region;
    }

    void give(Region& region) {
        auto* slot = reinterpret_cast<Slot*>(&region);
        const std::lock_guard hold(mutex);
        slot->next = free;
        free = slot;
    }
};
constinit LargeRegions large_regions;

} // namespace

void abort_misuse(const char* what, const void* block) {
    char text[160];
    const int length =
        std::snprintf(text, sizeof text, "warren: warren_mem: %s: %p\n", what, block);
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {
        // Nobody reads it; the core tells.
    }
    std::abort();
}

// A span with free blocks, listed. Threads get spans of their own, as far as that wastes little:
// when their blocks are neighbours, processors that fetch ahead take each other's cache lines away
// (blocks of 64 bytes took two threads twice as long). Under the lock of the class. Null: there is
// none, or a new one is better (then *other says which will do).
Span* Heap::find_span(unsigned size_class, const void* taker, Span** other) {
    Class& own = classes_[size_class];
    constexpr unsigned most_seen = 8;
    unsigned seen = 0;
    for (Span* span = own.spans; span != nullptr && seen < most_seen; span = span->next, ++seen) {
        if (span->taker == taker || span->taker == nullptr || taker == nullptr) {
            return span;
        }
    }
    *other = own.spans;
    const bool any = seen == most_seen || size_classes[size_class].blocks == 1;
    return any ? own.spans : nullptr;
}

// Adds blocks of listed spans to the list, until there are `count`. Under the lock of the class.
// `any`: of other threads' spans as well, where a new one would be better.
void Heap::take_listed(unsigned size_class, unsigned count, const void* taker, bool any,
                       void** list, unsigned* taken) {
    const SizeClass& sizes = size_classes[size_class];
    while (*taken < count) {
        Span* other = nullptr;
        Span* span = find_span(size_class, taker, &other);
        if (span == nullptr && (any || *taken != 0)) {
            span = other;
        }
        if (span == nullptr) {
            break;
        }
        span->taker = taker;
        while (*taken < count && span->used < sizes.blocks) {
            void* block = span->free;
            if (block != nullptr) {
                span->free = link_of(block);
            } else {
                block = span->begin + std::size_t{span->formed++} * sizes.bytes;
            }
            ++span->used;
            link_of(block) = *list;
            *list = block;
            ++*taken;
        }
        if (span->used == sizes.blocks) {
            unlink(classes_[size_class].spans, *span);
            span->listed = false;
        }
    }
}

void* Heap::take_blocks(unsigned size_class, unsigned count, unsigned* taken, const void* taker) {
    Class& own = classes_[size_class];
    void* list = nullptr;
    *taken = 0;
    {
        const ShortHold hold(own.mutex);
        take_listed(size_class, count, taker, false, &list, taken);
    }
    if (*taken == 0) {
        // One new span per call: what is to be placed anew is placed as it is needed. Others
        // allocate and free meanwhile. Without one another thread's has to do.
        Span* made = new_span(size_class);
        const ShortHold hold(own.mutex);
        if (made != nullptr) {
            made->taker = taker;
            push_front(own.spans, *made);
            made->listed = true;
        }
        take_listed(size_class, count, taker, true, &list, taken);
    }
    return list;
}

void Heap::give_blocks(unsigned size_class, void* list, unsigned count) {
    Class& own = classes_[size_class];
    const ShortHold hold(own.mutex);
    for (; count != 0; --count) {
        void* block = list;
        list = link_of(block);
        auto& region = static_cast<PageRegion&>(*find_region(block));
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
}

bool Heap::lend(std::size_t bytes) {
    if (lent_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_lent_bytes) {
        return true;
    }
    take_loan_back(bytes);
    return false;
}

bool Heap::is_free(unsigned size_class, const void* block) {
    const auto& region = static_cast<PageRegion&>(*find_region(block));
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

// Under no lock: to place memory takes long.
Span* Heap::new_span(unsigned size_class) {
    const std::size_t pages = size_classes[size_class].pages;
    PageRegion* region = nullptr;
    std::size_t first = 0;
    unsigned missing = 0;
    {
        const ShortHold hold(pages_mutex_);
        region = find_pages(pages, &first);
        if (region == nullptr) {
            return nullptr;
        }
        missing = unplaced_units(*region, first, pages);
        region->placing_units |= static_cast<std::uint8_t>(missing);
        take_pages(*region, first, pages);
        if (missing == 0) {
            used_pages_ += pages;
            idle_pages_ -= pages;
        }
    }
    if (missing != 0 && !place_span(*region, first, pages, missing)) {
        return nullptr;
    }
    Span& span = region->spans[first];
    span = {};
    span.begin = region->start() + first * page_bytes;
    span.first_page = static_cast<std::uint16_t>(first);
    span.pages = static_cast<std::uint16_t>(pages);
    span.size_class = static_cast<std::uint16_t>(size_class);
    const bool single = size_classes[size_class].blocks == 1;
    for (std::size_t page = first; page < first + pages; ++page) {
        region->first_page[page] = static_cast<std::uint16_t>(first);
        region->page_class[page].store(
            single && page != first ? middle_of_block : static_cast<std::uint8_t>(size_class + 1),
            std::memory_order_relaxed);
    }
    return &span;
}

// Places the units `missing` (a bit each) of pages that were taken. On failure (false and errno)
// they are free again.
bool Heap::place_span(PageRegion& region, std::size_t first, std::size_t pages, unsigned missing) {
    const unsigned placed = place_units(region, missing);
    const std::uint64_t now = monotonic_ns();
    const int saved = errno;
    const ShortHold hold(pages_mutex_);
    region.placing_units &= static_cast<std::uint8_t>(~missing);
    region.placed_units |= static_cast<std::uint8_t>(placed);
    const std::size_t placed_pages = static_cast<std::size_t>(std::popcount(placed)) * unit_pages;
    idle_pages_ += placed_pages;
    if (placed != missing) {
        free_pages(region, first, pages);
        errno = saved;
        return false;
    }
    used_pages_ += pages;
    idle_pages_ -= pages;
    if (now - displaced_ns_ < again_within_ns) {
        more_idle_pages_ = std::min(more_idle_pages_ + 2 * placed_pages, most_more_idle_pages);
        more_idle_since_ns_ = now;
    }
    return true;
}

// Under the page lock, as what follows: marks pages as used, or as free.
void Heap::take_pages(PageRegion& region, std::size_t first, std::size_t pages) {
    for (std::size_t unit = first / unit_pages; unit <= (first + pages - 1) / unit_pages; ++unit) {
        region.free_pages[unit] &= ~bits_of(unit, first, pages);
    }
    if (std::all_of(region.free_pages, region.free_pages + region_units,
                    [](std::uint64_t bits) { return bits == 0; })) {
        unlink(open_, region);
        region.open = false;
    }
}

void Heap::free_pages(PageRegion& region, std::size_t first, std::size_t pages) {
    for (std::size_t unit = first / unit_pages; unit <= (first + pages - 1) / unit_pages; ++unit) {
        region.free_pages[unit] |= bits_of(unit, first, pages);
    }
    if (!region.open) {
        push_front(open_, region);
        region.open = true;
    }
}

// Under the lock of the class.
void Heap::end_span(PageRegion& region, Span& span) {
    const std::size_t first = span.first_page;
    const std::size_t pages = span.pages;
    const ShortHold hold(pages_mutex_);
    for (std::size_t page = first; page < first + pages; ++page) {
        region.page_class[page].store(no_block, std::memory_order_relaxed);
    }
    free_pages(region, first, pages);
    used_pages_ -= pages;
    idle_pages_ += pages;
    const std::size_t lent = std::min(lent_.load(std::memory_order_relaxed) / page_bytes,
                                      idle_pages_kept - least_idle_pages_kept);
    const std::size_t usual = idle_pages_kept - lent + used_pages_ / idle_part_kept;
    if (idle_pages_ < usual) {
        return;
    }
    const std::uint64_t now = monotonic_ns();
    if (more_idle_pages_ != 0 && now - more_idle_since_ns_ > more_idle_for_ns) {
        more_idle_pages_ /= 2;
        more_idle_since_ns_ = now;
    }
    const std::size_t before = idle_pages_;
    displace_free_units(region, first / unit_pages, (first + pages - 1) / unit_pages,
                        usual + more_idle_pages_);
    displaced_ns_ = idle_pages_ != before ? now : displaced_ns_;
}

// Memory that is placed already is preferred; what others are placing can't be had.
PageRegion* Heap::find_pages(std::size_t pages, std::size_t* first) {
    PageRegion* unplaced = nullptr;
    std::size_t unplaced_first = 0;
    for (PageRegion* region = open_; region != nullptr; region = region->next) {
        std::uint64_t placed[region_units];
        std::uint64_t all[region_units];
        for (std::size_t unit = 0; unit < region_units; ++unit) {
            const bool others = (region->placing_units >> unit & 1) != 0;
            all[unit] = others ? 0 : region->free_pages[unit];
            placed[unit] = is_placed(*region, unit) ? all[unit] : 0;
        }
        *first = find_run(placed, pages);
        if (*first != no_page) {
            return region;
        }
        if (unplaced == nullptr) {
            unplaced_first = find_run(all, pages);
            unplaced = unplaced_first != no_page ? region : nullptr;
        }
    }
    *first = unplaced != nullptr ? unplaced_first : 0;
    return unplaced != nullptr ? unplaced : new_region();
}

PageRegion* Heap::new_region() {
    char* begin = map_region(region_bytes, region_bytes);
    if (begin == nullptr) {
        return nullptr;
    }
    void* memory = take_metadata(sizeof(PageRegion));
    if (memory == nullptr) {
        unmap_region(begin, region_bytes);
        return nullptr;
    }
    auto* region = new (memory) PageRegion; // its memory is zero, and stays untouched where it can
    region->heap.store(this, std::memory_order_relaxed);
    region->heap_index = index_;
    region->begin.store(begin, std::memory_order_relaxed);
    region->bytes = region_bytes;
    region->mapped = region_bytes;
    std::fill_n(region->free_pages, region_units, ~std::uint64_t{0});
    if (kind_.reserved_shift == 0) {
        advise_page_size(kind_.page_size, begin, region_bytes, false);
    }
    if (!enter_region(*region)) {
        unmap_region(begin, region_bytes); // what is beside is lost, on a machine without memory
        return nullptr;
    }
    push_front(open_, *region);
    region->open = true;
    return region;
}

// Of the units that the pages are in, and those that are placed with them, the ones that have no
// memory yet: a bit each.
unsigned Heap::unplaced_units(const PageRegion& region, std::size_t first,
                              std::size_t pages) const {
    const std::size_t together = units_together();
    unsigned missing = 0;
    for (std::size_t unit = first / unit_pages / together * together;
         unit <= (first + pages - 1) / unit_pages; unit += together) {
        missing |= is_placed(region, unit) ? 0 : ((1U << together) - 1) << unit;
    }
    return missing;
}

// Under no lock: nobody else looks at units that are marked as being placed. Returns those that
// were; with less than all of them errno says why.
unsigned Heap::place_units(const PageRegion& region, unsigned missing) {
    const std::size_t together = units_together();
    unsigned placed = 0;
    for (std::size_t unit = 0; unit < region_units; unit += together) {
        const unsigned bits = ((1U << together) - 1) << unit;
        if ((missing & bits) == 0) {
            continue;
        }
        if (refuses(together * unit_bytes)) {
            errno = ENOMEM;
            break;
        }
        if (!place(kind_, region.start() + unit * unit_bytes, together * unit_bytes)) {
            break;
        }
        placed |= bits;
    }
    return placed;
}

// Gives free units among first_unit … last_unit back, as long as more than `keep` pages are idle.
void Heap::displace_free_units(PageRegion& region, std::size_t first_unit, std::size_t last_unit,
                               std::size_t keep) {
    const std::size_t together = units_together();
    for (std::size_t unit = first_unit / together * together; unit <= last_unit; unit += together) {
        const bool free = std::all_of(region.free_pages + unit, region.free_pages + unit + together,
                                      [](std::uint64_t bits) { return ~bits == 0; });
        const std::size_t pages = together * unit_pages;
        if (!free || !is_placed(region, unit) || idle_pages_ < keep + pages) {
            continue;
        }
        displace(kind_, region.start() + unit * unit_bytes, together * unit_bytes);
        region.placed_units &= static_cast<std::uint8_t>(~(((1U << together) - 1) << unit));
        idle_pages_ -= pages;
    }
}

void* Heap::take_large(std::size_t bytes, std::size_t alignment) {
    const std::size_t size = whole_pages(bytes);
    if (refuses(size)) {
        errno = ENOMEM;
        return nullptr;
    }
    Region* region = large_regions.take();
    if (region == nullptr) {
        return nullptr;
    }
    char* begin = map_region(size, std::max(alignment, page_size()));
    if (begin != nullptr) {
        region->heap.store(this, std::memory_order_relaxed);
        region->begin.store(begin, std::memory_order_relaxed);
        region->bytes = size;
        region->mapped = size;
        if (kind_.reserved_shift == 0) {
            advise_page_size(kind_.page_size, begin, size, true);
        }
        if (place(kind_, begin, size)) {
            if (enter_region(*region)) {
                return begin;
            }
            displace(kind_, begin, size);
        }
        unmap_region(begin, size);
    }
    large_regions.give(*region);
    return nullptr;
}

// A hint: what others give back to the reserve meanwhile is found a moment later.
bool Heap::refuses(std::size_t bytes) const {
    if (kind_.reserved_shift == 0) {
        return false;
    }
    const std::uint64_t until = refused_until_ns_.load(std::memory_order_relaxed);
    return until != 0 && bytes >= refused_bytes_.load(std::memory_order_relaxed) &&
           returned_then_.load(std::memory_order_relaxed) == reserved_pages_returned() &&
           monotonic_ns() < until;
}

void Heap::remember_refusal(std::size_t bytes, std::uint64_t returned) {
    if (kind_.reserved_shift == 0) {
        return;
    }
    refused_bytes_.store(placed_at_once(bytes), std::memory_order_relaxed);
    returned_then_.store(returned, std::memory_order_relaxed);
    refused_until_ns_.store(monotonic_ns() + refused_for_ns, std::memory_order_relaxed);
}

std::size_t Heap::placed_at_once(std::size_t bytes) const {
    return bytes <= class_size_limit && !each_alone() ? units_together() * unit_bytes
                                                      : whole_pages(bytes);
}

void Heap::give_large(Region& region) {
    remove_region(region);
    displace(region.heap.load(std::memory_order_relaxed)->kind(), region.start(), region.mapped);
    unmap_region(region.start(), region.mapped);
    large_regions.give(region);
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
                end_span(static_cast<PageRegion&>(*find_region(span->begin)), *span);
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

void Heap::lock_large() {
    large_regions.mutex.lock();
}

void Heap::unlock_large() {
    large_regions.mutex.unlock();
}

void Heap::lock() {
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
}

std::size_t Heap::placed_bytes() {
    const std::lock_guard hold(pages_mutex_);
    return (used_pages_ + idle_pages_) * page_bytes;
}

} // namespace warren::memory
