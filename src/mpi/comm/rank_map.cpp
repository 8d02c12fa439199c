#include "mpi/comm/rank_map.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "mpi.h"

namespace warren::comm {

namespace {

// Tables up to here are not worth a lock on the node's shelf.
constexpr std::size_t private_bytes = 64;

// A map of every k-th entry uses its parent's table, unless it keeps one alive that is this many
// times larger than what it needs.
constexpr std::size_t view_share = 4;

} // namespace

struct RankMap::Nest {
    std::atomic<std::uint32_t> users = 1;
    RankForm form;
    std::uint64_t reciprocal[RankForm::level_limit];
};

// --- Life

void RankMap::swap(RankMap& other) noexcept {
    // Pointers are what is meant. NOLINTNEXTLINE(bugprone-sizeof-expression)
    static_assert(sizeof table_ == sizeof entries_ && sizeof table_ == sizeof stride_);
    std::swap(offset_, other.offset_);
    std::swap(stride_, other.stride_);
    std::swap(kind_, other.kind_);
    std::swap(size_, other.size_);
    std::swap(factor_, other.factor_);
    std::swap(jump_, other.jump_);
    std::swap(table_, other.table_);
}

void RankMap::retain() const {
    if (kind_ == Kind::table) {
        table_->retain();
    } else if (kind_ == Kind::nested) {
        nest_->users.fetch_add(1, std::memory_order_relaxed);
    }
}

void RankMap::release() {
    if (kind_ == Kind::table) {
        table_->release();
    } else if (nest_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete nest_;
    }
}

// --- Making

RankMap RankMap::affine(Process offset, std::int64_t stride, int size) {
    return of(RankForm::affine(offset, stride, size));
}

RankMap RankMap::of(const RankForm& form) {
    RankMap map;
    map.offset_ = form.offset;
    map.stride_ = form.stride;
    map.size_ = form.size;
    if (form.levels == 1) {
        map.kind_ = Kind::block;
        map.unit_ = form.level[0].unit;
        map.factor_ = reciprocal_of(form.level[0].unit);
        map.jump_ = form.level[0].jump;
    } else if (form.levels > 1) {
        map.nest_ = new Nest;
        map.kind_ = Kind::nested;
        map.nest_->form = form;
        for (int k = 0; k < form.levels; ++k) {
            map.nest_->reciprocal[k] = reciprocal_of(form.level[k].unit);
        }
    }
    return map; // release() frees the nest
} // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

RankForm RankMap::form() const {
    if (kind_ == Kind::nested) {
        return nest_->form;
    }
    RankForm form = RankForm::affine(offset_, stride_, size_);
    if (kind_ == Kind::block) {
        form.levels = 1;
        form.level[0] = {unit_, jump_};
    }
    return form;
}

template <typename Get>
RankMap RankMap::tabulate(int size, const Get& get) {
    Process bits = 0;
    bool one_world = true;
    const std::uint32_t world = world_of(get(0));
    for (int rank = 0; rank < size; ++rank) {
        const Process process = get(rank);
        bits |= process;
        one_world &= world_of(process) == world;
    }
    return one_world ? pack(size, process_of(world, 0), world_rank_of(bits), get)
                     : pack(size, 0, bits, get);
}

template <typename Get>
RankMap RankMap::pack(int size, Process beside, Process largest, const Get& get) {
    const std::uint32_t width = RankTable::width_of(largest);
    RankTable* table = RankTable::make(size, width, [&](int rank) { return get(rank) - beside; });
    if (table == nullptr) {
        throw std::bad_alloc();
    }
    RankMap map;
    map.kind_ = Kind::table;
    map.table_ = table;
    map.size_ = size;
    map.offset_ = beside;
    map.step_ = width;
    map.mask_ = RankTable::mask_of(width);
    map.entries_ = table->entries();
    return map;
}

template <typename Get>
RankMap RankMap::detect(int size, const Get& get) {
    RankForm form;
    return RankForm::detect(size, get, form) ? of(form) : tabulate(size, get);
}

RankMap RankMap::of(const std::vector<std::uint32_t>& world_ranks) {
    const std::uint32_t* listed = world_ranks.data();
    return detect(static_cast<int>(world_ranks.size()),
                  [listed](int rank) { return Process{listed[rank]}; });
}

RankMap RankMap::of_processes(const std::vector<Process>& processes) {
    const Process* listed = processes.data();
    return detect(static_cast<int>(processes.size()), [listed](int rank) { return listed[rank]; });
}

void RankMap::share(TableShelf& shelf) {
    if (kind_ != Kind::table || table_->shelved() ||
        std::size_t{table_->width()} * static_cast<std::size_t>(table_->size()) <= private_bytes) {
        return;
    }
    if (RankTable* shared = shelf.take(*table_)) {
        entries_ = shared->entries() + (entries_ - table_->entries());
        std::exchange(table_, shared)->release();
    }
}

// --- Look-ups

Process RankMap::nested(std::uint32_t rank) const {
    const Nest& nest = *nest_;
    const auto blocks = [&nest, rank](int k) {
        return static_cast<std::uint64_t>(nest.form.level[k].jump) *
               divide(rank, nest.reciprocal[k]);
    };
    // At least two levels, else it is a block.
    Process process = offset_ + static_cast<std::uint64_t>(stride_) * rank + blocks(0) + blocks(1);
    for (int k = 2; k < nest.form.levels; ++k) {
        process += blocks(k);
    }
    return process;
}

int RankMap::position_to_rank(int position) const {
    if (position < 0) {
        return MPI_UNDEFINED;
    }
    const auto distance =
        static_cast<std::int64_t>(table_->width()) * position - (entries_ - table_->entries());
    if (distance < 0 || distance % step_ != 0 || distance / step_ >= size_) {
        return MPI_UNDEFINED;
    }
    return static_cast<int>(distance / step_);
}

int RankMap::rank_of(Process process) const {
    if (kind_ == Kind::table) {
        return position_to_rank(table_->position_of(process - offset_));
    }
    const int rank = form().rank_of(process);
    return rank >= 0 ? rank : MPI_UNDEFINED;
}

int RankMap::find(Process process) const {
    return kind_ == Kind::table ? position_to_rank(table_->search(process - offset_))
                                : rank_of(process);
}

// --- Composition

RankMap RankMap::select(const RankForm& ranks) const {
    if (ranks.size == size_ && ranks.offset == 0 && ranks.stride == 1 && ranks.levels == 0) {
        return *this;
    }
    RankForm form;
    if (regular() && RankForm::compose(this->form(), ranks, form)) {
        return of(form);
    }
    const auto get = [this, &ranks](int rank) { return process(static_cast<int>(ranks[rank])); };
    if (RankForm::detect(ranks.size, get, form)) {
        return of(form);
    }
    const auto entries = static_cast<std::size_t>(ranks.size);
    if (kind_ == Kind::table && ranks.levels == 0 && ranks.stride > 0 &&
        entries * view_share >= static_cast<std::size_t>(table_->size())) {
        RankMap view = *this;
        view.entries_ = place(static_cast<std::uint32_t>(ranks.offset));
        view.step_ = step_ * static_cast<std::uint32_t>(ranks.stride);
        view.size_ = ranks.size;
        return view;
    }
    return tabulate(ranks.size, get);
}

RankMap RankMap::select(const int* ranks, int count) const {
    RankForm form;
    if (RankForm::detect(
            count,
            [ranks](int rank) { return static_cast<Process>(static_cast<unsigned>(ranks[rank])); },
            form)) {
        return select(form);
    }
    if (kind_ == Kind::affine && stride_ != 0) {
        return select_of_affine(ranks, count);
    }
    return detect(count, [this, ranks](int rank) { return process(ranks[rank]); });
}

// An irregular sequence is irregular in an affine map, too; and such a map is in one world, and
// tells how large its ranks there are: mostly the first few that are looked at are as large.
RankMap RankMap::select_of_affine(const int* ranks, int count) const {
    const auto get = [offset = offset_, stride = stride_, ranks](int rank) {
        return offset + static_cast<std::uint64_t>(stride) *
                            static_cast<std::uint64_t>(static_cast<unsigned>(ranks[rank]));
    };
    const Process bound = world_rank_of(process(0)) | world_rank_of(process(size_ - 1));
    const std::uint32_t below = 8 * (RankTable::width_of(bound) - 1);
    Process bits = 0;
    for (int rank = 0; rank < count && bits >> below == 0; ++rank) {
        bits |= world_rank_of(get(rank));
    }
    return pack(count, process_of(world_of(offset_), 0), bits, get);
}

RankMap RankMap::select_range(int first, int stride, int count) const {
    return select(
        RankForm::affine(static_cast<Process>(static_cast<unsigned>(first)), stride, count));
}

RankMap RankMap::select(const RankMap& ranks) const {
    if (ranks.regular()) {
        return select(ranks.form());
    }
    return detect(ranks.size(),
                  [this, &ranks](int rank) { return process(static_cast<int>(ranks[rank])); });
}

bool RankMap::operator==(const RankMap& other) const {
    if (size_ != other.size_ || kind_ != other.kind_) {
        return false;
    }
    if (kind_ != Kind::table) {
        return form() == other.form();
    }
    if (entries_ == other.entries_ && step_ == other.step_ && offset_ == other.offset_) {
        return true;
    }
    for (int rank = 0; rank < size_; ++rank) {
        if (process(rank) != other.process(rank)) {
            return false;
        }
    }
    return true;
}

} // namespace warren::comm
