#include "image/address_table.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <vector>

#include "image/module.hpp"

namespace warren::image {

AddressTable& address_table() {
    // Never destroyed: unwinders look things up until the process is gone.
    static AddressTable& table = *new AddressTable;
    return table;
}

Module* AddressTable::find(const void* address) const {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    while (true) {
        // Pairs with the release in rewrite: the table of this version is complete.
        const std::uint64_t version = version_.load(std::memory_order_acquire);
        const Table& table = tables_[version % 2];
        std::size_t low = 0;
        std::size_t high = std::min(table.count.load(std::memory_order_relaxed), limit);
        Module* found = nullptr;
        while (low < high && found == nullptr) {
            const std::size_t middle = low + (high - low) / 2;
            const Entry& entry = table.entries[middle];
            if (wanted < entry.start.load(std::memory_order_relaxed)) {
                high = middle;
            } else if (wanted >= entry.end.load(std::memory_order_relaxed)) {
                low = middle + 1;
            } else {
                found = entry.module.load(std::memory_order_relaxed);
            }
        }
        // Nothing above may be read after this: a table that is written again has a newer version.
        std::atomic_thread_fence(std::memory_order_acquire);
        const std::uint64_t now = version_.load(std::memory_order_relaxed);
        if (now == version) {
            return found;
        }
    }
}

bool AddressTable::prepare() {
    for (Table& table : tables_) {
        if (table.entries == nullptr) {
            void* memory = mmap(nullptr, limit * sizeof(Entry), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) {
                return false;
            }
            table.entries = static_cast<Entry*>(memory);
        }
    }
    return true;
}

template <typename Keep>
void AddressTable::rewrite(std::span<Module* const> added, Keep&& keep) {
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    const Table& from = tables_[version % 2];
    Table& to = tables_[(version + 1) % 2];
    // A look-up that still reads `to` must not miss that its version has passed: it was published
    // before anything here is written (the version that made it old is older than this change).
    std::atomic_thread_fence(std::memory_order_release);
    std::size_t count = 0;
    const auto write = [&](std::uintptr_t start, std::uintptr_t end, Module* module) {
        to.entries[count].start.store(start, std::memory_order_relaxed);
        to.entries[count].end.store(end, std::memory_order_relaxed);
        to.entries[count].module.store(module, std::memory_order_relaxed);
        ++count;
    };
    auto next = added.begin();
    const auto write_added_below = [&](std::uintptr_t limit_address) {
        for (; next != added.end(); ++next) {
            const auto start = reinterpret_cast<std::uintptr_t>((*next)->start);
            if (start >= limit_address) {
                return;
            }
            write(start, start + (*next)->file->span(), *next);
        }
    };
    const std::size_t old_count = from.count.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < old_count; ++i) {
        const Entry& entry = from.entries[i];
        const std::uintptr_t start = entry.start.load(std::memory_order_relaxed);
        write_added_below(start);
        Module* module = entry.module.load(std::memory_order_relaxed);
        if (keep(module)) {
            write(start, entry.end.load(std::memory_order_relaxed), module);
        }
    }
    write_added_below(UINTPTR_MAX);
    to.count.store(count, std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_release); // pairs with the acquire in find
}

bool AddressTable::add(std::span<Module* const> modules) {
    const std::lock_guard guard(lock_);
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    if (!prepare() ||
        tables_[version % 2].count.load(std::memory_order_relaxed) + modules.size() > limit) {
        return false;
    }
    std::vector<Module*> sorted(modules.begin(), modules.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const Module* one, const Module* other) { return one->start < other->start; });
    rewrite(sorted, [](Module*) { return true; });
    return true;
}

void AddressTable::remove(std::span<Module* const> modules) {
    const std::lock_guard guard(lock_);
    std::vector<Module*> sorted(modules.begin(), modules.end());
    std::sort(sorted.begin(), sorted.end());
    rewrite({}, [&](Module* module) {
        return !std::binary_search(sorted.begin(), sorted.end(), module);
    });
}

} // namespace warren::image
