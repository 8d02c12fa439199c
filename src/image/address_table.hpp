// AddressTable: which module an address is in. Unwinders ask for every frame, from any thread and
// from signal handlers, while other threads load and unload; so a look-up takes no lock, allocates
// nothing, and never waits for somebody who was interrupted.
//
// There are two tables in turn. A change writes the one that nobody is sent to and then publishes
// it. A look-up that took so long that its table was written again meanwhile sees that by the
// version and begins anew. Invariants
//  1. table[version % 2] is complete and sorted; only its other is written.
//  2. Writers hold the lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace warren::image {

struct Module;

class AddressTable {
  public:
    // Address space is reserved for that many; memory comes with use. 1,000 images of 64 modules.
    static constexpr std::size_t limit = 65536;

    AddressTable() = default;
    AddressTable(const AddressTable&) = delete;
    AddressTable& operator=(const AddressTable&) = delete;

    // The module that has `address`, or null.
    Module* find(const void* address) const;
    // Adds modules or takes them out. False: there are too many.
    bool add(std::span<Module* const> modules);
    void remove(std::span<Module* const> modules);

    // Calls visit(Module&) for each module while none can be removed. It must not add or remove.
    template <typename Visit>
    void for_each(Visit&& visit) const {
        const std::lock_guard guard(lock_);
        const std::uint64_t version = version_.load(std::memory_order_relaxed);
        const Table& table = tables_[version % 2];
        for (std::size_t i = 0; i < table.count.load(std::memory_order_relaxed); ++i) {
            visit(*table.entries[i].module.load(std::memory_order_relaxed));
        }
    }
    // How often modules were added and removed.
    std::uint64_t changes() const { return version_.load(std::memory_order_acquire); }

  private:
    struct Entry {
        std::atomic<std::uintptr_t> start;
        std::atomic<std::uintptr_t> end;
        std::atomic<Module*> module;
    };
    struct Table {
        std::atomic<std::size_t> count{0};
        Entry* entries = nullptr;
    };

    bool prepare();
    template <typename Keep>
    void rewrite(std::span<Module* const> added, Keep&& keep);

    mutable std::recursive_mutex lock_; // a visitor may throw an exception and so look up
    std::atomic<std::uint64_t> version_{0};
    Table tables_[2];
};

// The process's table.
AddressTable& address_table();

} // namespace warren::image
