#include "mpi/rma/regions.hpp"

#include <algorithm>

#include "base/futex.hpp"
#include "mpi.h"
#include "mpi/rma/heap.hpp"
#include "mpi/rma/tuning.hpp"

namespace warren::rma {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// A table in the heap: its room, then the regions.
struct TableHead {
    std::uint64_t bytes;
    std::uint64_t unused;
};

SharedRegion* regions_of(std::byte* table) {
    return reinterpret_cast<SharedRegion*>(table + sizeof(TableHead));
}

constexpr std::uint64_t table_bytes(std::uint64_t regions) {
    return whole_pages(sizeof(TableHead) + regions * sizeof(SharedRegion));
}

// Whether these bytes are in regions that touch. `region(i)` gives one of `count`, in order.
template <typename RegionAt>
bool covers(std::size_t count, RegionAt region, std::uint64_t begin, std::uint64_t bytes) {
    std::size_t low = 0;
    std::size_t high = count;
    while (low < high) { // the first region that begins behind `begin`
        const std::size_t middle = (low + high) / 2;
        region(middle).base <= begin ? low = middle + 1 : high = middle;
    }
    for (std::size_t i = low == 0 ? 0 : low - 1; i < count; ++i) {
        const Region its = region(i);
        if (begin < its.base) {
            return false;
        }
        const std::uint64_t offset = begin - its.base;
        if (offset > its.size) {
            return false;
        }
        const std::uint64_t here = std::min(bytes, its.size - offset);
        begin += here;
        bytes -= here;
        if (bytes == 0) {
            return true;
        }
    }
    return false;
}

} // namespace

bool Regions::find_gap(const Region& region, std::size_t& index) const {
    index = static_cast<std::size_t>(
        std::lower_bound(regions_.begin(), regions_.end(), region,
                         [](const Region& a, const Region& b) { return a.base < b.base; }) -
        regions_.begin());
    if (index < regions_.size() &&
        (regions_[index].base == region.base || region.base + region.size > regions_[index].base)) {
        return false;
    }
    return index == 0 || regions_[index - 1].base + regions_[index - 1].size <= region.base;
}

Error Regions::make_table(std::uint64_t regions) {
    const std::uint64_t bytes = table_bytes(regions);
    WindowHeap heap;
    if (Error error = WindowHeap::open(segment_, rank_, heap)) {
        return error;
    }
    tables_.reserve(tables_.size() + 1);
    std::uint64_t place = 0;
    if (Error error = heap.take(bytes, place)) {
        return error;
    }
    SharedPart part;
    Error error = WindowHeap::commit(segment_, place, bytes);
    if (!error) {
        error = SharedPart::map(segment_, place, bytes, part);
    }
    if (error) {
        heap.give_back(place);
        return error;
    }
    reinterpret_cast<TableHead*>(part.base())->bytes = bytes;
    own_table_ = std::move(part);
    tables_.push_back(place);
    room_ = (bytes - sizeof(TableHead)) / sizeof(SharedRegion);
    return {};
}

void Regions::publish(RegionLine& own) {
    const std::uint32_t version = own.version.load(relaxed);
    own.version.store(version + 1, relaxed);
    // Pairs with the reader's fence: who sees a part of what follows sees the odd version, too.
    std::atomic_thread_fence(std::memory_order_release);
    SharedRegion* to = own_table_ ? regions_of(own_table_.base()) : own.regions;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        to[i].base.store(regions_[i].base, relaxed);
        to[i].size.store(regions_[i].size, relaxed);
    }
    own.count.store(static_cast<std::uint32_t>(regions_.size()), relaxed);
    own.table.store(own_table_ ? tables_.back() : 0, relaxed);
    own.version.store(version + 2, std::memory_order_release);
}

Error Regions::insert(std::size_t index, const Region& region, RegionLine& own) {
    if (regions_.size() == room_) {
        if (Error error = make_table(2 * room_)) {
            return error;
        }
    }
    regions_.insert(regions_.begin() + static_cast<std::ptrdiff_t>(index), region);
    publish(own);
    return {};
}

bool Regions::erase(std::uintptr_t base, RegionLine& own) {
    const auto found = std::find_if(regions_.begin(), regions_.end(),
                                    [base](const Region& its) { return its.base == base; });
    if (found == regions_.end()) {
        return false;
    }
    regions_.erase(found);
    publish(own);
    return true;
}

bool Regions::contain(std::uint64_t begin, std::uint64_t bytes) const {
    return covers(
        regions_.size(), [this](std::size_t i) { return regions_[i]; }, begin, bytes);
}

void Regions::give_back() {
    mapped_.clear();
    own_table_.drop();
    if (tables_.empty()) {
        return;
    }
    WindowHeap heap;
    Error error = WindowHeap::open(segment_, rank_, heap);
    for (const std::uint64_t table : tables_) {
        if (!error) {
            heap.give_back(table);
        }
    }
    error.drop(); // the tables stay taken, which does no harm
    tables_.clear();
}

Error Regions::contain(std::uint32_t owner, const RegionLine& line, std::uint64_t begin,
                       std::uint64_t bytes, bool& found) {
    for (int turn = 1;; ++turn) {
        const std::uint32_t version = line.version.load(std::memory_order_acquire);
        // Pairs with the fence of publish(): the table's head is there.
        const std::uint64_t place = line.table.load(std::memory_order_acquire);
        std::uint64_t count = line.count.load(relaxed);
        const SharedRegion* regions = line.regions;
        std::uint64_t room = RegionLine::own_regions;
        if (place != 0 && version % 2 == 0) {
            auto& [its_place, part] = mapped_[owner];
            if (its_place != place) {
                // Its first page says how large it is.
                SharedPart head;
                if (Error error = SharedPart::map(segment_, place, page_bytes, head)) {
                    return error;
                }
                const std::uint64_t all = reinterpret_cast<TableHead*>(head.base())->bytes;
                part.drop();
                its_place = 0;
                if (Error error = SharedPart::map(segment_, place, all, part)) {
                    return error;
                }
                its_place = place;
            }
            regions = regions_of(part.base());
            room = (reinterpret_cast<TableHead*>(part.base())->bytes - sizeof(TableHead)) /
                   sizeof(SharedRegion);
        }
        count = std::min(count, room);
        found = covers(
            count,
            [regions](std::size_t i) {
                return Region{.base = regions[i].base.load(relaxed),
                              .size = regions[i].size.load(relaxed)};
            },
            begin, bytes);
        // Pairs with the owner's fence: what has been read is of this version if it still stands.
        std::atomic_thread_fence(std::memory_order_acquire);
        if (version % 2 == 0 && line.version.load(relaxed) == version) {
            return {};
        }
        if (turn % turns_before_yield != 0) {
            spin_pause();
            continue;
        }
        if (segment_.slot(owner).ended.load(std::memory_order_acquire) != 0) {
            return fail(MPI_ERR_PROC_ABORTED,
                        "the process of rank %u has ended while it attached or detached memory",
                        owner);
        }
        give_way();
    }
}

} // namespace warren::rma
