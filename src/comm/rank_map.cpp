#include "comm/rank_map.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "mpi.h"

namespace warren::comm {

struct RankMap::Table {
    std::vector<std::uint32_t> world_ranks;
    std::vector<int> by_world_rank; // ranks in the order of their world ranks; built on first use
};

RankMap RankMap::affine(std::uint32_t offset, std::int32_t stride, int size) {
    RankMap map;
    if (size > 0) {
        map.offset_ = offset;
        map.stride_ = size > 1 ? static_cast<std::uint32_t>(stride) : 1;
        map.size_ = size;
    }
    return map;
}

RankMap RankMap::of(std::vector<std::uint32_t> world_ranks) {
    const std::size_t size = world_ranks.size();
    if (size < 2) {
        return affine(size == 1 ? world_ranks[0] : 0, 1, static_cast<int>(size));
    }
    const std::uint32_t stride = world_ranks[1] - world_ranks[0];
    std::size_t regular = 2;
    while (regular < size && world_ranks[regular] - world_ranks[regular - 1] == stride) {
        ++regular;
    }
    if (regular == size) {
        return affine(world_ranks[0], static_cast<std::int32_t>(stride), static_cast<int>(size));
    }
    RankMap map;
    map.size_ = static_cast<int>(size);
    map.owner_ = std::make_shared<Table>();
    map.owner_->world_ranks = std::move(world_ranks);
    map.table_ = map.owner_->world_ranks.data();
    return map;
}

int RankMap::rank_of(std::uint32_t world_rank) const {
    if (table_ == nullptr) {
        // In 64 bits, so that a negative stride divides as it should.
        const std::int64_t distance = std::int64_t{world_rank} - std::int64_t{offset_};
        const std::int64_t step = stride();
        const std::int64_t rank = distance / step;
        return rank * step == distance && rank >= 0 && rank < size_ ? static_cast<int>(rank)
                                                                    : MPI_UNDEFINED;
    }
    std::vector<int>& index = owner_->by_world_rank;
    if (index.empty()) {
        index.resize(static_cast<std::size_t>(size_));
        std::iota(index.begin(), index.end(), 0);
        std::sort(index.begin(), index.end(),
                  [this](int a, int b) { return table_[a] < table_[b]; });
    }
    const auto found =
        std::lower_bound(index.begin(), index.end(), world_rank,
                         [this](int rank, std::uint32_t value) { return table_[rank] < value; });
    return found != index.end() && table_[*found] == world_rank ? *found : MPI_UNDEFINED;
}

RankMap RankMap::select(const int* ranks, int count) const {
    bool all = count == size_;
    for (int i = 0; all && i < count; ++i) {
        all = ranks[i] == i;
    }
    if (all) {
        return *this;
    }
    std::vector<std::uint32_t> world_ranks(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        world_ranks[static_cast<std::size_t>(i)] = (*this)[ranks[i]];
    }
    return of(std::move(world_ranks));
}

RankMap RankMap::select_range(int first, int stride, int count) const {
    if (first == 0 && stride == 1 && count == size_) {
        return *this;
    }
    if (table_ == nullptr) {
        return affine(count > 0 ? (*this)[first] : 0,
                      static_cast<std::int32_t>(stride_ * static_cast<std::uint32_t>(stride)),
                      count);
    }
    std::vector<std::uint32_t> world_ranks(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        world_ranks[static_cast<std::size_t>(i)] = table_[first + i * stride];
    }
    return of(std::move(world_ranks));
}

bool RankMap::operator==(const RankMap& other) const {
    if (size_ != other.size_ || (table_ == nullptr) != (other.table_ == nullptr)) {
        return false;
    }
    if (table_ == nullptr) {
        return offset_ == other.offset_ && stride_ == other.stride_;
    }
    return table_ == other.table_ || std::equal(table_, table_ + size_, other.table_);
}

} // namespace warren::comm
