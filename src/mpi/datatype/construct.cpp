#include "mpi/datatype/construct.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace warren::datatype {

namespace {

constexpr MPI_Count largest = std::numeric_limits<MPI_Count>::max();

// The lowest lower and the highest upper bound. After a negative extent, high may be below low.
struct Interval {
    MPI_Count low = largest;
    MPI_Count high = -largest;

    bool empty() const { return low == largest; }
    void add(MPI_Count from, MPI_Count to) {
        low = std::min(low, from);
        high = std::max(high, to);
    }
};

// Puts blocks of old types together: their bounds, size, layout and signature.
class Assembly {
  public:
    // `count` elements, the first at offset, each stride bytes after the one before.
    void add(const Datatype& type, MPI_Count offset, MPI_Count count, MPI_Count stride) {
        const bool nothing = type.size == 0 && !type.bounded; // an empty type map
        if (count == 0 || nothing || wrong_) {
            return;
        }
        MPI_Count last = 0;
        MPI_Count bytes = 0;
        if (__builtin_mul_overflow(count - 1, stride, &last) ||
            __builtin_add_overflow(last, offset, &last) || beyond(last) || beyond(offset) ||
            !type.bytes_of(count, bytes) || beyond(bytes) || beyond(size_ + bytes)) {
            wrong_ = true;
            return;
        }
        size_ += bytes;
        const MPI_Count low = std::min(offset, last) + type.lower_bound;
        const MPI_Count high = std::max(offset, last) + type.lower_bound + type.extent;
        (type.bounded ? marks_ : plain_).add(low, high);
        if (type.size != 0) {
            true_.add(std::min(offset, last) + type.true_lower_bound,
                      std::max(offset, last) + type.true_lower_bound + type.true_extent);
            if (beyond(true_.low) || beyond(true_.high)) {
                wrong_ = true;
                return;
            }
            layout_.repeat(type, offset, count, stride);
            append(signature_, type, count);
            alignment_ = std::max(alignment_, type.alignment);
        }
    }

    // Ends the type. Its extent is rounded up to the alignment of its elements when `padded` and
    // nobody has set its bounds.
    Error finish(bool padded, Draft& draft) {
        if (wrong_) {
            return fail(MPI_ERR_VALUE_TOO_LARGE,
                        "the datatype would span more than 2^60 bytes of memory");
        }
        Datatype& type = draft.type;
        const Interval& bounds = marks_.empty() ? plain_ : marks_;
        type.bounded = !marks_.empty();
        type.size = size_;
        type.alignment = alignment_;
        if (!bounds.empty()) {
            type.lower_bound = bounds.low;
            type.extent = bounds.high - bounds.low;
        }
        if (padded && !type.bounded && alignment_ > 1) {
            type.extent = (type.extent + alignment_ - 1) / alignment_ * alignment_;
        }
        if (beyond(type.lower_bound) || beyond(type.extent)) {
            return fail(MPI_ERR_VALUE_TOO_LARGE, "the datatype's extent would exceed 2^60 bytes");
        }
        if (!true_.empty()) {
            type.true_lower_bound = true_.low;
            type.true_extent = true_.high - true_.low;
        }
        draft.derived->layout = layout_.finish();
        if (layout_.too_large()) {
            return fail(MPI_ERR_NO_MEM,
                        "the datatype has more than %zu blocks of the same or %zu of different "
                        "sizes in irregular places",
                        place_limit, step_limit);
        }
        set_layout(draft);
        set_signature(draft);
        return {};
    }

    static void set_layout(Draft& draft) {
        Datatype& type = draft.type;
        draft.type.derived = draft.derived.get();
        const Body* body = draft.derived->layout.get();
        type.contiguous = body == nullptr || (body->is_block() && body->steps[0].offset == 0 &&
                                              type.extent == type.size);
        if (type.contiguous) {
            draft.derived->layout = nullptr;
        }
        type.layout = draft.derived->layout.get();
    }

  private:
    static bool beyond(MPI_Count value) { return value > bound_limit || value < -bound_limit; }

    void set_signature(Draft& draft) {
        std::vector<Run>& runs = signature_.runs;
        if (runs.empty()) {
            return;
        }
        if (runs.size() == 1 && runs[0].inner == nullptr) {
            draft.type.basic = runs[0].basic;
        } else if (runs.size() == 1 && runs[0].count == 1) {
            draft.derived->signature = runs[0].inner;
        } else {
            runs.shrink_to_fit();
            draft.derived->signature = std::make_shared<const Signature>(std::move(signature_));
        }
    }

    LayoutBuilder layout_;
    Signature signature_;
    Interval plain_; // bounds of types that end where their data do
    Interval marks_; // bounds that somebody set: if there are any, only they count
    Interval true_;
    MPI_Count size_ = 0;
    std::uint8_t alignment_ = 0;
    bool wrong_ = false;
};

// Memory for the steps of a large layout may be lacking: an error, not the end of the program.
template <typename Function>
Error with_memory(Function function) {
    try {
        return function();
    } catch (const std::bad_alloc&) {
        return fail(MPI_ERR_NO_MEM, "no memory for the layout of the datatype");
    }
}

Error check_length(MPI_Count length, MPI_Count index) {
    if (length < 0) {
        return fail(MPI_ERR_ARG, "block length %lld of block %lld is negative",
                    static_cast<long long>(length), static_cast<long long>(index));
    }
    return {};
}

} // namespace

Error multiply(MPI_Count value, MPI_Count factor, const char* what, MPI_Count& product) {
    if (__builtin_mul_overflow(value, factor, &product)) {
        return fail(MPI_ERR_VALUE_TOO_LARGE, "%s %lld of %lld bytes each exceeds 64 bits", what,
                    static_cast<long long>(value), static_cast<long long>(factor));
    }
    return {};
}

Error make_contiguous(MPI_Count count, const Datatype& old_type, Draft& draft) {
    return with_memory([&] {
        Assembly assembly;
        assembly.add(old_type, 0, count, old_type.extent);
        return assembly.finish(false, draft);
    });
}

Error make_vector(MPI_Count count, MPI_Count length, MPI_Count stride, const Datatype& old_type,
                  Draft& draft) {
    if (length < 0) {
        return fail(MPI_ERR_ARG, "block length %lld is negative", static_cast<long long>(length));
    }
    if (length == 1) {
        return with_memory([&] {
            Assembly assembly;
            assembly.add(old_type, 0, count, stride);
            return assembly.finish(false, draft);
        });
    }
    Draft block;
    if (Error error = make_contiguous(length, old_type, block)) {
        return error;
    }
    return with_memory([&] {
        Assembly assembly;
        assembly.add(block.type, 0, count, stride);
        return assembly.finish(false, draft);
    });
}

Error make_indexed(MPI_Count count, const Numbers& lengths, const Numbers& displacements,
                   MPI_Count unit, const Datatype& old_type, Draft& draft) {
    return with_memory([&]() -> Error {
        Assembly assembly;
        for (MPI_Count i = 0; i < count; ++i) {
            if (Error error = check_length(lengths[i], i)) {
                return error;
            }
            MPI_Count offset = 0;
            if (Error error = multiply(displacements[i], unit, "displacement", offset)) {
                return error;
            }
            assembly.add(old_type, offset, lengths[i], old_type.extent);
        }
        return assembly.finish(false, draft);
    });
}

Error make_struct(MPI_Count count, const Numbers& lengths, const Numbers& displacements,
                  const Datatype* const types[], Draft& draft) {
    return with_memory([&]() -> Error {
        Assembly assembly;
        for (MPI_Count i = 0; i < count; ++i) {
            if (Error error = check_length(lengths[i], i)) {
                return error;
            }
            assembly.add(*types[i], displacements[i], lengths[i], types[i]->extent);
        }
        return assembly.finish(true, draft);
    });
}

Error make_resized(const Datatype& old_type, MPI_Count lower_bound, MPI_Count extent,
                   Draft& draft) {
    return with_memory([&]() -> Error {
        Assembly assembly;
        assembly.add(old_type, 0, 1, old_type.extent);
        if (Error error = assembly.finish(false, draft)) {
            return error;
        }
        if (lower_bound > bound_limit || lower_bound < -bound_limit || extent > bound_limit ||
            extent < -bound_limit) {
            return fail(MPI_ERR_VALUE_TOO_LARGE, "bounds %lld, %lld exceed 2^60 bytes",
                        static_cast<long long>(lower_bound), static_cast<long long>(extent));
        }
        draft.type.lower_bound = lower_bound;
        draft.type.extent = extent;
        draft.type.bounded = true;
        // A contiguous type may have gaps between its elements now, or the other way round.
        LayoutBuilder layout;
        layout.repeat(old_type, 0, 1, old_type.extent);
        draft.derived->layout = layout.finish();
        Assembly::set_layout(draft);
        return {};
    });
}

Error make_subarray(int dimensions, const Numbers& sizes, const Numbers& subsizes,
                    const Numbers& starts, int order, const Datatype& old_type, Draft& draft) {
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN) {
        return fail(MPI_ERR_ARG, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    }
    // From the dimension whose elements are neighbours outwards.
    Draft inner;
    make_duplicate(old_type, inner);
    MPI_Count stride = old_type.extent; // of one element of the dimension
    MPI_Count offset = 0;
    for (int i = 0; i < dimensions; ++i) {
        const int dimension = order == MPI_ORDER_C ? dimensions - 1 - i : i;
        const MPI_Count size = sizes[dimension];
        const MPI_Count subsize = subsizes[dimension];
        const MPI_Count start = starts[dimension];
        if (size < 1 || subsize < 1 || start < 0 || subsize > size || start > size - subsize) {
            return fail(MPI_ERR_ARG,
                        "dimension %d: %lld elements from %lld on do not lie in 0…%lld", dimension,
                        static_cast<long long>(subsize), static_cast<long long>(start),
                        static_cast<long long>(size - 1));
        }
        Draft outer;
        if (Error error = make_vector(subsize, 1, stride, inner.type, outer)) {
            return error;
        }
        MPI_Count skipped = 0;
        if (Error error = multiply(start, stride, "start", skipped)) {
            return error;
        }
        if (__builtin_add_overflow(offset, skipped, &offset)) {
            return fail(MPI_ERR_VALUE_TOO_LARGE, "the subarray begins beyond 64 bits");
        }
        if (Error error = multiply(size, stride, "size", stride)) {
            return error;
        }
        inner = std::move(outer);
    }
    Draft placed;
    const Numbers one{.same = 1};
    if (Error error = make_indexed(1, one, {.same = offset}, 1, inner.type, placed)) {
        return error;
    }
    return make_resized(placed.type, 0, stride, draft);
}

void make_duplicate(const Datatype& old_type, Draft& draft) {
    draft.type = old_type;
    draft.type.predefined = false;
    draft.type.element = Element::none;
    draft.type.references = 0;
    draft.type.handles = 0;
    draft.type.derived = draft.derived.get();
    draft.derived->layout = old_type.contiguous ? nullptr : body_of(old_type);
    if (old_type.derived != nullptr) {
        draft.derived->signature = old_type.derived->signature;
    }
    if (draft.derived->layout == nullptr && !old_type.contiguous) {
        // A predefined pair with a gap at its end.
        LayoutBuilder layout;
        layout.repeat(old_type, 0, 1, old_type.extent);
        draft.derived->layout = layout.finish();
    }
    draft.type.layout = draft.derived->layout.get();
}

} // namespace warren::datatype
