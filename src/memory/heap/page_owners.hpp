// PageOwners: the owner (a rank of the process) that allocated in each page of the process's heap
// last. The allocator is shared by the owners but mostly keeps their blocks in separate pages, as
// the arenas of the C library do.
//
// The table has one word per page, in leaves for 64 MiB of addresses each. A leaf is made when a
// page in it is first claimed, and stays. The table needs no knowledge of the allocator. A claim
// that changes nothing is two loads and a comparison. If blocks of two owners share a page, the
// page belongs to the one that claimed last. A freed block's pages stay with their owner until
// another claims them. Thread rule: any thread at any time, without locks. If two threads claim a
// page at once, one of the claims counts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/heap/numa.hpp"

namespace warren::memory {

class PageOwners {
  public:
    static constexpr std::uint32_t nobody = UINT32_MAX;

    PageOwners();
    PageOwners(const PageOwners&) = delete;
    PageOwners& operator=(const PageOwners&) = delete;
    ~PageOwners();

    // Claims all pages with a byte of the block. Does nothing if there is no memory for the table.
    void claim(const void* block, std::size_t bytes, std::uint32_t owner);
    // Gives up all pages that lie within the block.
    void release(const void* block, std::size_t bytes);
    std::uint32_t owner_of(const void* address) const;

    // Calls visit(begin, bytes, owner) for each run of pages of one owner, in no order; a run ends
    // with its leaf.
    template <typename Visit>
    void visit(const Visit& visit) const {
        for (const Leaf* leaf = last_.load(std::memory_order_acquire); leaf != nullptr;
             leaf = leaf->before) {
            std::size_t first = 0;
            std::uint32_t owner = leaf->owner(0);
            for (std::size_t page = 1; page <= leaf_pages; ++page) {
                const std::uint32_t here = page < leaf_pages ? leaf->owner(page) : nobody;
                if (here == owner && page < leaf_pages) {
                    continue;
                }
                if (owner != nobody) {
                    visit(reinterpret_cast<std::byte*>(leaf->begin + first * page_bytes),
                          (page - first) * page_bytes, owner);
                }
                first = page;
                owner = here;
            }
        }
    }

  private:
    static constexpr unsigned address_bits = 47; // of ordinary mappings
    static constexpr std::size_t leaf_pages = 16384;
    static constexpr std::size_t leaf_bytes = leaf_pages * page_bytes;
    static constexpr std::size_t leaf_count = (std::size_t{1} << address_bits) / leaf_bytes;

    struct Leaf {
        const Leaf* before; // the one that was made before it
        std::uintptr_t begin;
        std::atomic<std::uint32_t> marks[leaf_pages]; // 1 + the owner; 0: nobody

        std::uint32_t owner(std::size_t page) const {
            return marks[page].load(std::memory_order_relaxed) - 1;
        }
    };

    Leaf* leaf_of(std::uintptr_t address) const {
        return leaves_[address / leaf_bytes].load(std::memory_order_acquire);
    }
    Leaf* make_leaf(std::uintptr_t address);
    void set(std::uintptr_t begin, std::uintptr_t end, std::uint32_t owner);

    std::atomic<Leaf*>* leaves_ = nullptr; // by address; null: there is no memory
    std::atomic<const Leaf*> last_{nullptr};
};

} // namespace warren::memory
