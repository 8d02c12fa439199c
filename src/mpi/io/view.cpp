#include "mpi/io/view.hpp"

#include <algorithm>

#include "mpi/datatype/derived.hpp"
#include "mpi/io/file_form.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {

using datatype::Datatype;

namespace {

// Whether the blocks of one element lie in rising order without overlap, and none below 0.
class OrderCheck {
  public:
    static constexpr bool in_order = true;
    bool enough() const { return !rising_; }
    bool rising() const { return rising_; }
    bool negative() const { return negative_; }
    bool overlaps() const { return overlaps_; }

    void block(std::uint64_t offset, MPI_Count, MPI_Count bytes) {
        const auto begin = static_cast<std::int64_t>(offset);
        negative_ = negative_ || begin < 0;
        if (any_ && begin < last_begin_) {
            rising_ = false;
        } else if (any_ && begin < last_end_) {
            overlaps_ = true;
        }
        any_ = true;
        last_begin_ = begin;
        last_end_ = begin + bytes;
    }
    void blocks(std::uint64_t offset, MPI_Count stride, MPI_Count, MPI_Count, MPI_Count count,
                MPI_Count bytes) {
        block(offset, 0, bytes);
        if (count > 1) {
            rising_ = rising_ && stride >= 0;
            overlaps_ = overlaps_ || stride < bytes;
            last_begin_ = static_cast<std::int64_t>(offset) + stride * (count - 1);
            last_end_ = last_begin_ + bytes;
        }
    }
    void scattered(std::uint64_t base, const MPI_Count* places, MPI_Count, MPI_Count count,
                   MPI_Count bytes) {
        for (MPI_Count i = 0; i < count; ++i) {
            block(base + static_cast<std::uint64_t>(places[i]), 0, bytes);
        }
    }

  private:
    bool any_ = false;
    bool rising_ = true;
    bool negative_ = false;
    bool overlaps_ = false;
    std::int64_t last_begin_ = 0;
    std::int64_t last_end_ = 0;
};

OrderCheck order_of(const Datatype& type) {
    OrderCheck check;
    datatype::Walk<OrderCheck>(check).part(type, nullptr, 1, 0, type.size);
    return check;
}

} // namespace

View::View(std::uint64_t displacement, const Datatype& etype, const Datatype& filetype,
           const Representation& representation)
    : displacement_(displacement),
      etype_(etype),
      filetype_(filetype),
      representation_(representation),
      layout_(&filetype),
      etype_bytes_(etype.size) {
    retain(etype_);
    retain(filetype_);
}

View::~View() {
    release(etype_);
    release(filetype_);
}

Error View::make(std::uint64_t displacement, const Datatype& etype, const Datatype& filetype,
                 const Representation& representation, bool writable, RankLock& lock,
                 std::shared_ptr<const View>& made) {
    if (etype.size == 0 && filetype.size != 0) {
        return fail(MPI_ERR_TYPE, "etype has no data, but filetype has %lld bytes",
                    static_cast<long long>(filetype.size));
    }
    if (etype.size != 0 && filetype.size % etype.size != 0) {
        return fail(MPI_ERR_TYPE, "filetype's %lld bytes are no whole etypes of %lld bytes",
                    static_cast<long long>(filetype.size), static_cast<long long>(etype.size));
    }
    const struct {
        const char* name;
        const Datatype& type;
    } types[] = {{"etype", etype}, {"filetype", filetype}};
    bool overlaps = false;
    for (const auto& [name, type] : types) {
        const OrderCheck check = order_of(type);
        if (check.negative()) {
            return fail(MPI_ERR_IO, "%s has negative displacements", name);
        }
        if (!check.rising()) {
            return fail(MPI_ERR_IO, "the displacements of %s do not rise", name);
        }
        if (check.overlaps() && writable) {
            return fail(MPI_ERR_IO,
                        "%s names bytes twice, which a file open for writing does not allow", name);
        }
        overlaps = overlaps || check.overlaps();
    }
    if (filetype.size != 0 && filetype.extent <= 0) {
        return fail(MPI_ERR_TYPE, "filetype has the extent %lld",
                    static_cast<long long>(filetype.extent));
    }
    std::shared_ptr<View> view(new View(displacement, etype, filetype, representation));
    if (representation.converts()) {
        FileForms forms(representation, lock);
        if (Error error = forms.bytes_of(etype, view->etype_bytes_)) {
            return error;
        }
        if (Error error = forms.layout_of(filetype, view->file_form_, view->layout_)) {
            return error;
        }
        // (Displacements in bytes are the same in the file, but sizes are not.)
        const OrderCheck check = order_of(*view->layout_);
        overlaps = check.overlaps() || !check.rising();
        if (view->layout_->size != 0 && view->layout_->extent <= 0) {
            return fail(MPI_ERR_TYPE, "in representation \"%s\" filetype has the extent %lld",
                        representation.name.c_str(), static_cast<long long>(view->layout_->extent));
        }
        if (overlaps && writable) {
            return fail(MPI_ERR_IO, "in representation \"%s\" filetype names bytes twice",
                        representation.name.c_str());
        }
    }
    const Datatype& layout = *view->layout_;
    view->ordered_ = !overlaps && layout.extent >= layout.true_extent;
    if (!layout.contiguous && layout.size != 0) {
        const MPI_Count blocks = layout.block_count();
        view->block_bytes_ = std::max<MPI_Count>(layout.size / blocks, 1);
        view->block_stride_ = std::max<MPI_Count>(layout.extent / blocks, 1);
    }
    made = std::move(view);
    return {};
}

bool View::holds(MPI_Count bytes) const {
    MPI_Count reach = bytes;
    if (!contiguous() && !empty()) {
        const MPI_Count tiles = bytes / layout_->size + 1;
        if (__builtin_mul_overflow(tiles, layout_->extent, &reach) ||
            __builtin_add_overflow(reach, layout_->true_lower_bound, &reach) ||
            __builtin_add_overflow(reach, layout_->true_extent, &reach)) {
            return false;
        }
    }
    return displacement_ <= std::uint64_t{largest_offset} &&
           reach <= largest_offset - static_cast<MPI_Offset>(displacement_);
}

std::uint64_t View::place(MPI_Count byte) const {
    if (layout_->contiguous) {
        return displacement_ + static_cast<std::uint64_t>(byte);
    }
    std::uint64_t found = 0;
    const auto note = [&](std::uint64_t offset, MPI_Count, MPI_Count, MPI_Count, MPI_Count) {
        found = offset;
    };
    BlocksBefore action(~std::uint64_t{0}, note);
    walk(byte, 1, action);
    return found;
}

MPI_Count View::bytes_before(std::uint64_t offset) const {
    if (offset <= displacement_ || empty()) {
        return 0;
    }
    if (layout_->contiguous) {
        return static_cast<MPI_Count>(offset - displacement_);
    }
    // The tile in which the offset lies, or behind which: all before end before it. (A tile's data
    // may lie beyond its extent.)
    const std::uint64_t begin =
        displacement_ + static_cast<std::uint64_t>(layout_->true_lower_bound);
    const MPI_Count tiles =
        offset <= begin ? 0
                        : static_cast<MPI_Count>((offset - begin) /
                                                 static_cast<std::uint64_t>(layout_->extent));
    const auto ignore = [](std::uint64_t, MPI_Count, MPI_Count, MPI_Count, MPI_Count) {};
    BlocksBefore action(offset, ignore);
    walk(tiles * layout_->size, layout_->size, action);
    return tiles * layout_->size + action.covered();
}

} // namespace warren::io
