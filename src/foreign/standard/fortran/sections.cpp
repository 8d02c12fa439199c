#include "sections.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace warren::foreign::fortran {

namespace {

constexpr int most_dimensions = 15;

// A section as blocks of contiguous bytes in dimensions that can't be joined, the fastest first.
struct Blocks {
    std::size_t bytes; // of a block
    int dimensions = 0;
    std::ptrdiff_t extent[most_dimensions];
    std::ptrdiff_t stride[most_dimensions];
    std::ptrdiff_t number = 1; // of blocks
};

Blocks blocks_of(const Descriptor& section) {
    Blocks blocks{section.element_bytes, 0, {}, {}, 1};
    for (int i = 0; i < section.rank; ++i) {
        const auto& dimension = section.dimensions[i];
        if (dimension.extent == 1) {
            continue;
        }
        blocks.number *= dimension.extent;
        const int last = blocks.dimensions - 1;
        if (last < 0 && dimension.stride == static_cast<std::ptrdiff_t>(blocks.bytes)) {
            blocks.bytes *= static_cast<std::size_t>(dimension.extent);
            blocks.number /= dimension.extent;
        } else if (last >= 0 && dimension.stride == blocks.extent[last] * blocks.stride[last]) {
            blocks.extent[last] *= dimension.extent;
        } else {
            blocks.extent[blocks.dimensions] = dimension.extent;
            blocks.stride[blocks.dimensions] = dimension.stride;
            ++blocks.dimensions;
        }
    }
    return blocks;
}

// Where block `index` begins, from the base.
std::ptrdiff_t place_of(const Blocks& blocks, std::ptrdiff_t index) {
    std::ptrdiff_t place = 0;
    for (int i = 0; i < blocks.dimensions; ++i) {
        place += index % blocks.extent[i] * blocks.stride[i];
        index /= blocks.extent[i];
    }
    return place;
}

// Calls `each(from the base, bytes)` for the blocks in order.
template <typename Each>
void for_each_block(const Blocks& blocks, Each each) {
    for (std::ptrdiff_t i = 0; i < blocks.number; ++i) {
        each(place_of(blocks, i), blocks.bytes);
    }
}

struct Extents {
    MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    bool known = false;

    // An element of the type is `size` bytes without gaps.
    bool is_dense() const {
        return lower == 0 && size == extent && true_lower == 0 && true_extent == size;
    }
};

Extents extents_of(MPI_Datatype type) {
    Extents found;
    // A type that is none is left to the procedure: it says so in its own name.
    if (reinterpret_cast<std::uintptr_t>(type) == invalid_handle || type == MPI_DATATYPE_NULL) {
        return found;
    }
    found.known =
        core.Type_size_c(type, &found.size) == MPI_SUCCESS &&
        core.Type_get_extent_c(type, &found.lower, &found.extent) == MPI_SUCCESS &&
        core.Type_get_true_extent_c(type, &found.true_lower, &found.true_extent) == MPI_SUCCESS;
    return found;
}

// The type of one element in each block, if the section is evenly spaced and a block holds one
// element.
MPI_Datatype spaced_type(const Blocks& blocks, const Extents& extents, MPI_Datatype type) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    if (blocks.dimensions == 1 && extents.lower == 0 &&
        extents.extent == static_cast<MPI_Count>(blocks.bytes) && extents.true_lower >= 0 &&
        extents.true_lower + extents.true_extent <= extents.extent) {
        core.Type_create_resized(type, 0, blocks.stride[0], &made);
    }
    return made;
}

// `count` dense elements, a whole number of which fills a block: loops over whole dimensions, and
// what is left of the last ones.
class DenseType {
  public:
    DenseType(const Blocks& blocks, MPI_Count per_block, MPI_Datatype type)
        : blocks_(blocks), per_block_(per_block), type_(type) {}

    MPI_Datatype make(MPI_Count count) {
        const MPI_Count whole = count / per_block_;
        MPI_Count first = 0;
        MPI_Count size = 1; // blocks in the dimensions below
        for (int i = 1; i <= blocks_.dimensions; ++i) {
            size *= blocks_.extent[i - 1];
        }
        for (int dimensions = blocks_.dimensions; dimensions >= 0 && first < whole; --dimensions) {
            // As many pieces of `dimensions` whole dimensions as fit.
            const MPI_Count fitting = (whole - first) / size;
            if (fitting > 0) {
                add(first, 1, pieces(dimensions, fitting));
                first += fitting * size;
            }
            size = dimensions > 0 ? size / blocks_.extent[dimensions - 1] : 1;
        }
        if (count % per_block_ != 0) {
            add(whole, count % per_block_, type_);
        }
        MPI_Datatype made = MPI_DATATYPE_NULL;
        core.Type_create_struct_c(static_cast<MPI_Count>(types_.size()), counts_.data(),
                                  places_.data(), types_.data(), &made);
        for (MPI_Datatype& type : types_) {
            if (type != type_) {
                core.Type_free(&type);
            }
        }
        return made;
    }

  private:
    // `number` neighbours in the dimension above, each of `dimensions` whole ones: a block if there
    // is none.
    MPI_Datatype pieces(int dimensions, MPI_Count number) {
        MPI_Datatype made = MPI_DATATYPE_NULL;
        if (dimensions == 0) {
            core.Type_contiguous_c(per_block_, type_, &made);
        } else {
            made = pieces(dimensions - 1, blocks_.extent[dimensions - 1]);
        }
        if (number > 1) {
            MPI_Datatype one = made;
            core.Type_create_hvector_c(number, 1, blocks_.stride[dimensions], one, &made);
            core.Type_free(&one);
        }
        return made;
    }

    void add(MPI_Count block, MPI_Count count, MPI_Datatype type) {
        counts_.push_back(count);
        places_.push_back(place_of(blocks_, block));
        types_.push_back(type);
    }

    const Blocks& blocks_;
    const MPI_Count per_block_;
    const MPI_Datatype type_;
    std::vector<MPI_Count> counts_;
    std::vector<MPI_Count> places_;
    std::vector<MPI_Datatype> types_;
};

// The first predefined type that a datatype is made of.
MPI_Datatype first_predefined(MPI_Datatype type) {
    MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
    int combiner = MPI_COMBINER_NAMED;
    core.Type_get_envelope_c(type, &integers, &addresses, &large, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED || types == 0) {
        return type;
    }
    std::vector<int> integer(static_cast<std::size_t>(integers));
    std::vector<MPI_Aint> address(static_cast<std::size_t>(addresses));
    std::vector<MPI_Count> count(static_cast<std::size_t>(large));
    std::vector<MPI_Datatype> inner(static_cast<std::size_t>(types));
    core.Type_get_contents_c(type, integers, addresses, large, types, integer.data(),
                             address.data(), count.data(), inner.data());
    MPI_Datatype found = first_predefined(inner[0]);
    for (MPI_Datatype& one : inner) {
        MPI_Count none[4];
        core.Type_get_envelope_c(one, &none[0], &none[1], &none[2], &none[3], &combiner);
        if (combiner != MPI_COMBINER_NAMED) {
            core.Type_free(&one);
        }
    }
    return found;
}

// The type of the bytes at `places` of the joined section, in elements of `unit`; null: the gaps
// of the section cut one.
MPI_Datatype joined_type(const Blocks& blocks, const std::vector<MPI_Count>& places,
                         MPI_Datatype unit) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Count unit_bytes = 0;
    core.Type_size_c(unit, &unit_bytes);
    std::vector<MPI_Count> lengths; // in units
    std::vector<MPI_Count> starts;
    const auto block_bytes = static_cast<MPI_Count>(blocks.bytes);
    MPI_Count expected = -1; // place of the next byte of a block or a unit
    for (std::size_t i = 0; i < places.size(); ++i) {
        const MPI_Count real = place_of(blocks, places[i] / block_bytes) + places[i] % block_bytes;
        const bool begins_unit = static_cast<MPI_Count>(i) % unit_bytes == 0;
        if (real != expected && !begins_unit) {
            return made;
        }
        if (real != expected) {
            starts.push_back(real);
            lengths.push_back(0);
        }
        lengths.back() += begins_unit ? 1 : 0;
        expected = real + 1;
    }
    core.Type_create_hindexed_c(static_cast<MPI_Count>(starts.size()), lengths.data(),
                                starts.data(), unit, &made);
    return made;
}

// Any `count` elements: the bytes of the type map, found by packing a buffer whose bytes tell where
// they lie, one digit of the place at a time.
MPI_Datatype type_of_bytes(const Blocks& blocks, const Extents& extents, MPI_Count count,
                           MPI_Datatype type, MPI_Datatype unit) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const MPI_Count data = count * extents.size;
    const MPI_Count span = (count - 1) * extents.extent + extents.true_lower + extents.true_extent;
    const auto section_bytes = static_cast<MPI_Count>(blocks.bytes) * blocks.number;
    if (extents.true_lower < 0 || extents.extent < 0 || span > section_bytes) {
        return made; // outside of the section
    }
    std::vector<unsigned char> digits(static_cast<std::size_t>(span));
    std::vector<unsigned char> packed(static_cast<std::size_t>(data));
    std::vector<MPI_Count> places(static_cast<std::size_t>(data));
    for (int digit = 0; digit < 8 && (span - 1) >> (8 * digit) > 0; ++digit) {
        for (MPI_Count i = 0; i < span; ++i) {
            digits[static_cast<std::size_t>(i)] = static_cast<unsigned char>(i >> (8 * digit));
        }
        MPI_Count position = 0;
        if (core.Pack_c(digits.data(), count, type, packed.data(), data, &position,
                        MPI_COMM_SELF) != MPI_SUCCESS) {
            return made;
        }
        for (std::size_t i = 0; i < places.size(); ++i) {
            places[i] |= static_cast<MPI_Count>(packed[i]) << (8 * digit);
        }
    }
    return joined_type(blocks, places, unit);
}

MPI_Datatype block_type(const Blocks& blocks, const Extents& extents, MPI_Count count,
                        MPI_Datatype type, Types types) {
    const auto bytes = static_cast<MPI_Count>(blocks.bytes);
    if (extents.is_dense() && extents.size > 0 && bytes % extents.size == 0 &&
        count <= bytes / extents.size * blocks.number) {
        return DenseType(blocks, bytes / extents.size, type).make(count);
    }
    return type_of_bytes(blocks, extents, count, type,
                         types == Types::kept ? first_predefined(type) : MPI_BYTE);
}

// A type that has been made is committed; without one the section is refused.
MPI_Datatype settle(MPI_Datatype& made) {
    if (made == MPI_DATATYPE_NULL) {
        return refused_type();
    }
    core.Type_commit(&made);
    return made;
}

} // namespace

void BlockSection::describe(const Descriptor& section, Types types) {
    const Extents extents = extents_of(type_);
    if (!extents.known || count_ <= 0 || extents.size == 0) {
        return; // nothing to move, or an error that the procedure tells
    }
    const Blocks blocks = blocks_of(section);
    made_type_ = spaced_type(blocks, extents, type_);
    if (made_type_ == MPI_DATATYPE_NULL) {
        made_type_ = block_type(blocks, extents, count_, type_, types);
        count_ = 1;
    }
    type_ = settle(made_type_);
}

void SpacedSection::describe(const Descriptor& section) {
    const Extents extents = extents_of(type_);
    if (!extents.known || extents.size == 0) {
        return;
    }
    made_type_ = spaced_type(blocks_of(section), extents, type_);
    type_ = settle(made_type_);
}

void CopiedSection::copy() {
    const Blocks blocks = blocks_of(*section_);
    copy_ = static_cast<char*>(std::malloc(blocks.bytes * static_cast<std::size_t>(blocks.number)));
    made_ = copy_ != nullptr;
    if (!made_) {
        return;
    }
    char* to = copy_;
    const char* base = static_cast<const char*>(section_->base);
    for_each_block(blocks, [&](std::ptrdiff_t place, std::size_t bytes) {
        std::memcpy(to, base + place, bytes);
        to += bytes;
    });
    buffer_ = copy_;
}

void CopiedSection::leave_copy(int code, MPI_Request request) {
    if (code != MPI_SUCCESS) {
        std::free(std::exchange(copy_, nullptr));
        return;
    }
    const Blocks blocks = blocks_of(*section_);
    const auto bytes = static_cast<MPI_Count>(blocks.bytes);
    MPI_Datatype layout = DenseType(blocks, bytes, MPI_BYTE).make(bytes * blocks.number);
    core.Type_commit(&layout);
    if (hooks.hold_copy(request, {.section = section_->base,
                                  .layout = layout,
                                  .copy = copy_,
                                  .bytes = bytes * blocks.number,
                                  .goes_back = way_ != Way::in})) {
        copy_ = nullptr;
    } // else the destructor copies back
    core.Type_free(&layout);
}

bool FirstElement::fits(const Descriptor& section, MPI_Datatype type) {
    const Extents extents = extents_of(type);
    return !extents.known || extents.size <= static_cast<MPI_Count>(blocks_of(section).bytes);
}

void CopiedSection::copy_back() {
    const char* from = copy_;
    char* base = static_cast<char*>(section_->base);
    if (way_ != Way::in) {
        for_each_block(blocks_of(*section_), [&](std::ptrdiff_t place, std::size_t bytes) {
            std::memcpy(base + place, from, bytes);
            from += bytes;
        });
    }
    std::free(copy_);
}

void refuse_section(int* ierror, MPI_Comm comm) {
    const int code = core.Comm_call_errhandler(comm, MPI_ERR_UNSUPPORTED_OPERATION);
    finish(ierror, code != MPI_SUCCESS ? code : MPI_ERR_UNSUPPORTED_OPERATION);
}

void refuse_section(int* ierror, MPI_Win win) {
    const int code = core.Win_call_errhandler(win, MPI_ERR_UNSUPPORTED_OPERATION);
    finish(ierror, code != MPI_SUCCESS ? code : MPI_ERR_UNSUPPORTED_OPERATION);
}

void refuse_section(int* ierror, MPI_File file) {
    const int code = core.File_call_errhandler(file, MPI_ERR_UNSUPPORTED_OPERATION);
    finish(ierror, code != MPI_SUCCESS ? code : MPI_ERR_UNSUPPORTED_OPERATION);
}

} // namespace warren::foreign::fortran
