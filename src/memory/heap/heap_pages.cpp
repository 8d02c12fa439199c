// The pages of a heap: regions, what of them is placed, which spans are cut from them.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "memory/heap/heap.hpp"
#include "memory/heap/placement.hpp"
#include "memory/heap/short_hold.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

namespace {

constexpr std::size_t no_page = region_pages;

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

} // namespace

bool Heap::lend(std::size_t bytes) {
    if (lent_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_lent_bytes) {
        return true;
    }
    take_loan_back(bytes);
    return false;
}

// Under no lock, in a turn of growth or alone: to place memory takes long.
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
    const bool too_much = more_idle_pages_ != 0 && now - more_idle_since_ns_ > more_idle_for_ns;
    if (too_much) {
        more_idle_pages_ /= 2;
        more_idle_since_ns_ = now;
    }
    const std::size_t keep = usual + more_idle_pages_;
    const std::size_t before = idle_pages_;
    displace_free_units(region, first / unit_pages, (first + pages - 1) / unit_pages, keep);
    for (PageRegion* each = open_; each != nullptr && too_much; each = each->next) {
        displace_free_units(*each, 0, region_units - 1, keep);
    }
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
    advise_page_size(kind_, begin, region_bytes, false);
    if (!enter_region(*region)) {
        unmap_region(begin, region_bytes); // what is beside is lost, on a machine without memory
        return nullptr;
    }
    push_front(open_, *region);
    region->open = true;
    return region;
}

// A bit for each unit without memory, among the units of these pages and those that are placed
// together with them.
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

std::size_t Heap::placed_bytes() {
    const std::lock_guard hold(pages_mutex_);
    return (used_pages_ + idle_pages_) * page_bytes;
}

} // namespace warren::memory
