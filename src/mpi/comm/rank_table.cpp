#include "mpi/comm/rank_table.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>
#include <vector>

#include "base/futex.hpp"

namespace warren::comm {

static_assert(std::endian::native == std::endian::little, "entries are loaded with what follows");

namespace {

constexpr std::uint64_t unit_bytes = 64;    // of the shelf's allocator
constexpr std::uint32_t bucket_count = 512; // of the shelf's hash of tables
constexpr std::uint64_t commit_bytes = std::uint64_t{64} << 10;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// Spreads every byte over the word: products with an odd number, folded.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

std::uint32_t hash_of(const std::byte* bytes, std::size_t count) {
    constexpr std::size_t lanes = 4; // side by side, since each has to wait for its products
    std::uint64_t hash[lanes] = {count, 1, 2, 3};
    std::uint64_t words[lanes];
    for (; count >= sizeof words; bytes += sizeof words, count -= sizeof words) {
        std::memcpy(words, bytes, sizeof words);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            hash[lane] = mixed(hash[lane], words[lane]);
        }
    }
    std::memset(words, 0, sizeof words);
    std::memcpy(words, bytes, count);
    std::uint64_t all = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        all = mixed(all, mixed(hash[lane], words[lane]));
    }
    return static_cast<std::uint32_t>(all);
}

} // namespace

// The memory between the tables that has been in use: a list in the order of addresses.
struct TableShelf::Hole {
    std::uint64_t bytes;
    std::uint64_t next;
};

struct TableShelf::Header {
    std::atomic<std::uint32_t> lock; // 0: free, 1: held, 2: held and waited for
    std::uint64_t bytes;             // 0: nobody has used the shelf yet
    std::uint64_t committed;
    std::uint64_t top; // nothing has been in use behind
    std::uint64_t holes;
    std::uint64_t used;
    std::uint64_t buckets[bucket_count];

    std::byte* at(std::uint64_t offset) { return reinterpret_cast<std::byte*>(this) + offset; }
    Hole& hole(std::uint64_t offset) { return *reinterpret_cast<Hole*>(at(offset)); }
    RankTable& table(std::uint64_t offset) { return *reinterpret_cast<RankTable*>(at(offset)); }
    std::uint64_t& bucket(std::uint32_t hash) { return buckets[hash % bucket_count]; }
};

namespace {
constexpr std::uint64_t header_bytes = 8192; // whole pages
}

std::uint64_t TableShelf::segment_offset() const {
    return static_cast<std::uint64_t>(memory_ - reinterpret_cast<std::byte*>(&segment_->header()));
}

// Held for microseconds, or while a table is copied; a rank that dies with it ends the job anyway.
class TableShelf::Lock {
  public:
    explicit Lock(Header& header) : word_(header.lock) {
        std::uint32_t seen = 0;
        if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) {
            return;
        }
        // From now on whoever gives the lock up wakes one.
        while (word_.exchange(2, std::memory_order_acquire) != 0) {
            futex_wait(word_, 2);
        }
    }
    ~Lock() {
        if (word_.exchange(0, std::memory_order_release) == 2) {
            futex_wake(word_, 1);
        }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    std::atomic<std::uint32_t>& word_;
};

RankTable* RankTable::allocate(int size, std::uint32_t width) {
    const std::size_t bytes =
        sizeof(RankTable) + packed_bytes(static_cast<std::size_t>(size), width);
    void* memory = ::operator new(bytes, std::nothrow);
    if (memory == nullptr) {
        return nullptr;
    }
    auto* table = new (memory) RankTable;
    table->size_ = static_cast<std::uint32_t>(size);
    table->width_ = width;
    return table;
}

void RankTable::seal() {
    hash_ = hash_of(entries(), std::size_t{size_} * width_);
}

void RankTable::release() {
    if (shelved()) {
        // Who may be the last one must not be counted again meanwhile: that takes the lock.
        std::uint32_t users = references_.load(std::memory_order_relaxed);
        while (users > 1) {
            if (references_.compare_exchange_weak(users, users - 1, std::memory_order_release)) {
                return;
            }
        }
        TableShelf::end(*this);
        return;
    }
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        // Memory of its own, though found by its distance from here.
        ::operator delete(const_cast<std::byte*>(index()));
        this->~RankTable(); // NOLINT(clang-analyzer-cplusplus.NewDelete)
        ::operator delete(this);
    }
}

// --- Reverse look-ups

const std::byte* RankTable::index() const {
    const std::int64_t distance = index_.load(std::memory_order_acquire); // of build_index
    return distance != 0 ? reinterpret_cast<const std::byte*>(this) + distance : nullptr;
}

const std::byte* RankTable::build_index() {
    const std::uint32_t width = index_width();
    const std::size_t bytes = packed_bytes(size_, width);
    std::byte* made = nullptr;
    if (shelved()) {
        TableShelf::Header& header = TableShelf::header_of(*this);
        const TableShelf::Lock lock(header);
        const std::uint64_t offset = TableShelf::allocate(header, nullptr, bytes);
        made = offset != 0 ? header.at(offset) : nullptr;
    } else {
        made = static_cast<std::byte*>(::operator new(bytes, std::nothrow));
    }
    if (made == nullptr) {
        return nullptr;
    }
    std::vector<std::uint32_t> order(size_);
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
        return (*this)[static_cast<int>(a)] < (*this)[static_cast<int>(b)];
    });
    std::byte* place = made;
    for (std::uint64_t position : order) {
        std::memcpy(place, &position, sizeof position);
        place += width;
    }
    std::int64_t none = 0;
    // Pairs with the acquire of index().
    if (index_.compare_exchange_strong(none, made - reinterpret_cast<std::byte*>(this),
                                       std::memory_order_acq_rel)) {
        return made;
    }
    // Another rank was first.
    if (shelved()) {
        TableShelf::Header& header = TableShelf::header_of(*this);
        const TableShelf::Lock lock(header);
        TableShelf::free(header, static_cast<std::uint64_t>(made - header.at(0)), bytes);
    } else {
        ::operator delete(made);
    }
    return index();
}

int RankTable::find(Process process, const std::byte* index) const {
    const std::uint32_t width = index_width();
    const std::uint64_t mask = mask_of(width);
    std::uint32_t low = 0;
    for (std::uint32_t count = size_; count > 0;) {
        const std::uint32_t half = count / 2;
        const auto position =
            static_cast<int>(load(index + std::size_t{width} * (low + half), mask));
        const Process found = (*this)[position];
        if (found == process) {
            return position;
        }
        if (found < process) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return -1;
}

int RankTable::search(Process process) const {
    if (const std::byte* known = index()) {
        return find(process, known);
    }
    const std::byte* place = entries();
    const std::uint64_t mask = mask_of(width_);
    for (std::uint32_t position = 0; position < size_; ++position, place += width_) {
        if (load(place, mask) == process) {
            return static_cast<int>(position);
        }
    }
    return -1;
}

int RankTable::position_of(Process process) {
    constexpr std::uint32_t searched = 32; // entries that are as quickly looked at as an index
    const std::byte* known = size_ > searched ? index() : nullptr;
    if (known == nullptr && size_ > searched) {
        known = build_index();
    }
    return known != nullptr ? find(process, known) : search(process);
}

// --- The shelf

TableShelf::Header& TableShelf::header_of(const RankTable& table) {
    auto* memory = reinterpret_cast<std::byte*>(const_cast<RankTable*>(&table));
    return *reinterpret_cast<Header*>(memory - table.shelf_offset_);
}

bool TableShelf::commit(Header& header, const TableShelf* shelf, std::uint64_t end) {
    const std::uint64_t wanted =
        std::min(header.bytes, round_up(std::max(end, header.committed), commit_bytes));
    if (shelf != nullptr) {
        if (!shelf->segment_->commit(shelf->segment_offset() + header.committed,
                                     wanted - header.committed)) {
            return false;
        }
    } else {
#ifdef MADV_POPULATE_WRITE
        // Pages begin where commitment ended: the shelf does, and steps are multiples of a page.
        if (madvise(header.at(header.committed), wanted - header.committed, MADV_POPULATE_WRITE) !=
            0) {
            return false;
        }
#else
        return false;
#endif
    }
    header.committed = wanted;
    return true;
}

std::uint64_t TableShelf::allocate(Header& header, const TableShelf* shelf, std::uint64_t bytes) {
    bytes = round_up(bytes, unit_bytes);
    for (std::uint64_t* link = &header.holes; *link != 0; link = &header.hole(*link).next) {
        Hole& hole = header.hole(*link);
        const std::uint64_t offset = *link;
        if (hole.bytes < bytes) {
            continue;
        }
        if (hole.bytes == bytes) {
            *link = hole.next;
        } else {
            header.hole(offset + bytes) = {hole.bytes - bytes, hole.next};
            *link = offset + bytes;
        }
        header.used += bytes;
        return offset;
    }
    const std::uint64_t offset = header.top;
    if (header.bytes - offset < bytes ||
        (header.committed < offset + bytes && !commit(header, shelf, offset + bytes))) {
        return 0;
    }
    header.top += bytes;
    header.used += bytes;
    return offset;
}

void TableShelf::free(Header& header, std::uint64_t offset, std::uint64_t bytes) {
    bytes = round_up(bytes, unit_bytes);
    header.used -= bytes;
    std::uint64_t before = 0;
    std::uint64_t after = header.holes;
    while (after != 0 && after < offset) {
        before = after;
        after = header.hole(after).next;
    }
    if (after != 0 && offset + bytes == after) {
        bytes += header.hole(after).bytes;
        after = header.hole(after).next;
    }
    header.hole(offset) = {bytes, after};
    if (before == 0) {
        header.holes = offset;
    } else if (before + header.hole(before).bytes == offset) {
        header.hole(before) = {header.hole(before).bytes + bytes, after};
    } else {
        header.hole(before).next = offset;
    }
}

RankTable* TableShelf::take(const RankTable& table) {
    if (!opened_) {
        if (bytes_ < header_bytes ||
            (segment_ != nullptr && !segment_->commit(segment_offset(), header_bytes))) {
            return nullptr;
        }
        opened_ = true;
    }
    Header& shelf = header();
    const Lock lock(shelf);
    static_assert(sizeof(Header) <= header_bytes);
    if (shelf.bytes == 0) {
        shelf.top = round_up(sizeof(Header), unit_bytes);
        shelf.committed = segment_ != nullptr ? header_bytes : bytes_;
        shelf.bytes = bytes_;
    }
    std::uint64_t& bucket = shelf.bucket(table.hash_);
    const std::size_t entry_bytes = std::size_t{table.size_} * table.width_;
    for (std::uint64_t offset = bucket; offset != 0; offset = shelf.table(offset).next_) {
        RankTable& other = shelf.table(offset);
        if (other.hash_ == table.hash_ && other.size_ == table.size_ &&
            other.width_ == table.width_ &&
            std::memcmp(other.entries(), table.entries(), entry_bytes) == 0) {
            other.retain();
            return &other;
        }
    }
    const std::uint64_t offset =
        allocate(shelf, segment_ != nullptr ? this : nullptr, table.bytes());
    if (offset == 0) {
        return nullptr;
    }
    auto* made = new (shelf.at(offset)) RankTable;
    made->size_ = table.size_;
    made->width_ = table.width_;
    made->hash_ = table.hash_;
    made->shelf_offset_ = offset;
    made->next_ = bucket;
    std::memcpy(const_cast<std::byte*>(made->entries()), table.entries(), entry_bytes);
    bucket = offset;
    return made;
}

void TableShelf::end(RankTable& table) {
    Header& shelf = header_of(table);
    const Lock lock(shelf);
    if (table.references_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return; // found again meanwhile
    }
    std::uint64_t* link = &shelf.bucket(table.hash_);
    while (*link != table.shelf_offset_) {
        link = &shelf.table(*link).next_;
    }
    *link = table.next_;
    if (const std::byte* index = table.index()) {
        free(shelf, static_cast<std::uint64_t>(index - shelf.at(0)),
             RankTable::packed_bytes(table.size_, table.index_width()));
    }
    const std::size_t bytes = table.bytes();
    const std::uint64_t offset = table.shelf_offset_;
    table.~RankTable();
    free(shelf, offset, bytes);
}

std::uint64_t TableShelf::used_bytes() const {
    const Lock lock(header());
    return header().used;
}

} // namespace warren::comm
