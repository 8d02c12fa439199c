// RankMap: which process (world rank) a rank of a communicator or group is, and back.
//
// Two kinds. An affine map, world = offset + stride · rank, covers the world, its duplicates,
// blocks and combs of it, reversed ones too, and takes no memory; anything else is a table, shared
// by all maps that are equal by descent. Whatever makes a map detects affine ones in one pass, so
// that equal maps have one form only and compare cheaply.
//
// Thread rule: a value; a table's index for reverse look-ups is built on first use, under the
// rank's lock. Invariants: world ranks of a map are distinct; a table never describes what an
// affine map can; empty maps are affine with offset 0 and stride 1, maps of one rank have stride 1.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace warren::comm {

class RankMap {
  public:
    RankMap() = default;

    // offset, offset + stride, offset + 2 · stride, …
    static RankMap affine(std::uint32_t offset, std::int32_t stride, int size);

    // Any distinct world ranks; becomes affine where they are.
    static RankMap of(std::vector<std::uint32_t> world_ranks);

    int size() const { return size_; }

    // The world rank of rank 0 ≤ r < size().
    std::uint32_t operator[](int rank) const {
        if (table_ == nullptr) [[likely]] {
            return offset_ + stride_ * static_cast<std::uint32_t>(rank);
        }
        return table_[rank];
    }

    // The rank of a world rank, or MPI_UNDEFINED when it is not in the map.
    int rank_of(std::uint32_t world_rank) const;

    // The map of `ranks` of this map, in their order: their composition. A run of ranks with one
    // stride is `select_range`, without looking at each.
    RankMap select(const int* ranks, int count) const;
    RankMap select_range(int first, int stride, int count) const;

    bool affine() const { return table_ == nullptr; }
    std::uint32_t offset() const { return offset_; }
    std::int32_t stride() const { return static_cast<std::int32_t>(stride_); }

    bool operator==(const RankMap& other) const;

  private:
    struct Table;

    std::uint32_t offset_ = 0;
    std::uint32_t stride_ = 1; // modulo 2^32, so that negative strides need no other form
    int size_ = 0;
    const std::uint32_t* table_ = nullptr; // of owner_
    std::shared_ptr<Table> owner_;
};

} // namespace warren::comm
