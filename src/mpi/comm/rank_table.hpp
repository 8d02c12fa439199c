// RankTable: the processes of an irregular rank map, packed; and TableShelf: the node's tables.
//
// Every entry takes as many bytes as the largest process of the table needs: 1 in a world of 256,
// 3 in one of 768 K, 5 and more where a table mixes worlds (process = world · 2³² + world rank).
// Whole bytes, because fewer bits would cost the look-up three instructions more and save little:
// an entry is one unaligned load and a mask. Tables are counted by their users and never change.
//
// A table is private to its process, or on the shelf: in memory that the ranks of a node share,
// once, however many ranks and communicators use it. The shelf knows its tables by a hash of what
// they contain, so the ranks need not talk to find the one that another made. It is an allocator
// of its own (first fit, neighbours joined) that is found by offsets; what is freed is used again.
//
// Reverse look-ups in tables of more than a few entries use an index, the positions in the order of
// their processes, packed and shared like the table; the first one that needs it builds it.
//
// Thread rule: counting, indexing and all of the shelf by any rank of the node at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi/comm/rank_form.hpp"
#include "mpi/job/segment.hpp"

namespace warren::comm {

inline constexpr node::RegionId<std::byte> rank_tables{15};

class TableShelf;

class RankTable {
  public:
    // `size` entries that get(0), get(1), … give, in `width` bytes each. Null: no memory.
    template <typename Get>
    static RankTable* make(int size, std::uint32_t width, const Get& get);

    static std::uint32_t width_of(Process largest) {
        std::uint32_t width = 1;
        while (width < 8 && largest >> 8 * width != 0) {
            ++width;
        }
        return width;
    }
    static std::uint64_t mask_of(std::uint32_t width) {
        return ~std::uint64_t{0} >> (64 - 8 * width);
    }

    // The entry at a place of a table: may read up to 7 bytes behind it, which are there.
    static Process load(const std::byte* place, std::uint64_t mask) {
        std::uint64_t bytes;
        std::memcpy(&bytes, place, sizeof bytes);
        return bytes & mask;
    }

    int size() const { return static_cast<int>(size_); }
    std::uint32_t width() const { return width_; }
    const std::byte* entries() const { return reinterpret_cast<const std::byte*>(this + 1); }
    Process operator[](int position) const {
        return load(entries() + std::size_t{width_} * static_cast<std::uint32_t>(position),
                    mask_of(width_));
    }
    bool shelved() const { return shelf_offset_ != 0; }

    // The position of a process, or −1. `search` looks at every entry, unless there is an index;
    // `position_of` builds it.
    int search(Process process) const;
    int position_of(Process process);

    void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
    void release();

  private:
    friend class TableShelf;

    RankTable() = default;
    // With what load() may read behind the last entry.
    static std::size_t packed_bytes(std::size_t size, std::size_t width) {
        return size * width + 7;
    }
    std::size_t bytes() const { return sizeof(RankTable) + packed_bytes(size_, width_); }
    std::uint32_t index_width() const { return width_of(size_ - 1); }
    static RankTable* allocate(int size, std::uint32_t width);
    void seal();
    const std::byte* index() const;
    const std::byte* build_index();
    int find(Process process, const std::byte* index) const;

    std::atomic<std::uint32_t> references_ = 1;
    std::uint32_t size_ = 0;
    std::uint32_t width_ = 0;
    std::uint32_t hash_ = 0;
    std::atomic<std::int64_t> index_ = 0; // where it is, from here; 0: none yet
    std::uint64_t shelf_offset_ = 0;      // of this on its shelf; 0: private
    std::uint64_t next_ = 0;              // the next table of the same bucket
};

class TableShelf {
  public:
    // No shelf: full.
    TableShelf() = default;
    // The shelf of a segment. The memory is zero when nobody has used it yet, and is committed
    // piece by piece.
    explicit TableShelf(const node::Segment& segment)
        : memory_(segment.at(rank_tables)),
          bytes_(segment.unit_bytes(rank_tables)),
          segment_(&segment) {}
    // A shelf on other memory, which needs no commitment; zero, at a multiple of 64.
    TableShelf(std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}

    // The shelf's table of the same contents, made if need be, with one more user. Null: the shelf
    // is full.
    RankTable* take(const RankTable& table);

    // Bytes in use; of tables and indices, with what surrounds them.
    std::uint64_t used_bytes() const;

  private:
    friend class RankTable;
    struct Header;
    struct Hole;
    class Lock;

    // The head of a shelf's memory, from a table on it.
    static Header& header_of(const RankTable& table);
    std::uint64_t segment_offset() const;
    Header& header() const { return *reinterpret_cast<Header*>(memory_); }
    // Under the lock. `shelf` commits memory when it has to; null: only as the kernel does it for
    // an address. Offsets; 0: none.
    static std::uint64_t allocate(Header& header, const TableShelf* shelf, std::uint64_t bytes);
    static bool commit(Header& header, const TableShelf* shelf, std::uint64_t end);
    static void free(Header& header, std::uint64_t offset, std::uint64_t bytes);
    static void end(RankTable& table);

    std::byte* memory_ = nullptr;
    std::uint64_t bytes_ = 0;
    const node::Segment* segment_ = nullptr;
    bool opened_ = false; // the header is committed
};

template <typename Get>
RankTable* RankTable::make(int size, std::uint32_t width, const Get& get) {
    RankTable* table = allocate(size, width);
    if (table != nullptr) {
        // Ascending, so that what an entry's store puts behind it is overwritten.
        auto* place = const_cast<std::byte*>(table->entries());
        for (int i = 0; i < size; ++i, place += width) {
            const Process process = get(i);
            std::memcpy(place, &process, sizeof process);
        }
        table->seal();
    }
    return table;
}

} // namespace warren::comm
