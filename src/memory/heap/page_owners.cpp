#include "memory/heap/page_owners.hpp"

#include <algorithm>
#include <sys/mman.h>

namespace warren::memory {

namespace {

// Zero, and memory only where it is used.
void* map_table(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

} // namespace

PageOwners::PageOwners()
    : leaves_(
          static_cast<std::atomic<Leaf*>*>(map_table(leaf_count * sizeof(std::atomic<Leaf*>)))) {}

PageOwners::~PageOwners() {
    for (const Leaf* leaf = last_; leaf != nullptr;) {
        const Leaf* before = leaf->before;
        munmap(const_cast<Leaf*>(leaf), sizeof(Leaf));
        leaf = before;
    }
    if (leaves_ != nullptr) {
        munmap(leaves_, leaf_count * sizeof(std::atomic<Leaf*>));
    }
}

PageOwners::Leaf* PageOwners::make_leaf(std::uintptr_t address) {
    Leaf* made = static_cast<Leaf*>(map_table(sizeof(Leaf)));
    if (made == nullptr) {
        return nullptr;
    }
    made->begin = address / leaf_bytes * leaf_bytes;
    Leaf* there = nullptr;
    // Release: who finds it finds its beginning.
    if (!leaves_[address / leaf_bytes].compare_exchange_strong(there, made,
                                                               std::memory_order_acq_rel)) {
        munmap(made, sizeof(Leaf));
        return there;
    }
    made->before = last_.load(std::memory_order_relaxed);
    // Release pairs with visit's acquire.
    while (!last_.compare_exchange_weak(made->before, made, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
    return made;
}

// `begin` and `end` are pages' starts. A page gets its mark only if that changes it: nothing is
// written by most claims, and a table of zeros needs no memory.
void PageOwners::set(std::uintptr_t begin, std::uintptr_t end, std::uint32_t owner) {
    if (leaves_ == nullptr) {
        return;
    }
    end = std::min(end, std::uintptr_t{1} << address_bits);
    while (begin < end) {
        const std::uintptr_t next = std::min((begin / leaf_bytes + 1) * leaf_bytes, end);
        Leaf* leaf = leaf_of(begin);
        if (leaf == nullptr && owner != nobody) {
            leaf = make_leaf(begin);
        }
        if (leaf != nullptr) {
            for (std::size_t page = begin % leaf_bytes / page_bytes;
                 page < (next - leaf->begin) / page_bytes; ++page) {
                if (leaf->owner(page) != owner) {
                    leaf->marks[page].store(owner + 1, std::memory_order_relaxed);
                }
            }
        }
        begin = next;
    }
}

void PageOwners::claim(const void* block, std::size_t bytes, std::uint32_t owner) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    set(begin / page_bytes * page_bytes,
        (begin + std::max<std::size_t>(bytes, 1) + page_bytes - 1) / page_bytes * page_bytes,
        owner);
}

void PageOwners::release(const void* block, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    set((begin + page_bytes - 1) / page_bytes * page_bytes,
        (begin + bytes) / page_bytes * page_bytes, nobody);
}

std::uint32_t PageOwners::owner_of(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    const Leaf* leaf = leaves_ != nullptr && place >> address_bits == 0 ? leaf_of(place) : nullptr;
    return leaf != nullptr ? leaf->owner(place % leaf_bytes / page_bytes) : nobody;
}

} // namespace warren::memory
