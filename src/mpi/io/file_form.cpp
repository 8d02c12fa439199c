#include "mpi/io/file_form.hpp"

#include <vector>

#include "mpi/datatype/derived.hpp"
#include "mpi/datatype/external32.hpp"
#include "mpi/datatype/type_table.hpp"

namespace warren::io {

using datatype::Contents;
using datatype::Datatype;
using datatype::Derived;
using datatype::Draft;
using datatype::Numbers;
using datatype::Signature;

namespace {

// The numbers that a type was made with, in the order of the constructor's arguments: of a large
// one's counts and addresses, of another's integers and addresses.
class Arguments {
  public:
    explicit Arguments(const Contents& contents) : contents_(contents) {}

    MPI_Count count() {
        return contents_.large ? contents_.counts[next_count_++]
                               : contents_.integers[next_integer_++];
    }
    std::vector<MPI_Count> counts(MPI_Count length) {
        std::vector<MPI_Count> found;
        for (MPI_Count i = 0; i < length; ++i) {
            found.push_back(count());
        }
        return found;
    }
    int integer() { return contents_.integers[next_integer_++]; }
    const int* integers(MPI_Count length) {
        const int* found = contents_.integers.data() + next_integer_;
        next_integer_ += static_cast<std::size_t>(length);
        return found;
    }
    MPI_Count address() {
        return contents_.large ? contents_.counts[next_count_++]
                               : contents_.addresses[next_address_++];
    }
    std::vector<MPI_Count> addresses(MPI_Count length) {
        std::vector<MPI_Count> found;
        for (MPI_Count i = 0; i < length; ++i) {
            found.push_back(address());
        }
        return found;
    }

  private:
    const Contents& contents_;
    std::size_t next_count_ = 0;
    std::size_t next_integer_ = 0;
    std::size_t next_address_ = 0;
};

Numbers numbers_of(const std::vector<MPI_Count>& values) {
    return {.values = values.data()};
}

// Adds `count` times `one` byte to `bytes`. The program's functions may say any extents.
Error add_bytes(const Representation& representation, MPI_Count one, MPI_Count count,
                MPI_Count& bytes) {
    MPI_Count more = 0;
    if (__builtin_mul_overflow(one, count, &more) || __builtin_add_overflow(bytes, more, &bytes)) {
        return fail(
            MPI_ERR_VALUE_TOO_LARGE,
            "in representation \"%s\" an element of the datatype has more bytes than a file",
            representation.name.c_str());
    }
    return {};
}

} // namespace

Error FileForms::bytes_of_basic(std::uint8_t basic, MPI_Count& bytes) {
    const Datatype& type = datatype::predefined_table[basic];
    if (representation_.kind == Representation::Kind::external32) {
        bytes = datatype::external_size(type);
        return {};
    }
    if (representation_.spaces_only()) {
        bytes = type.size;
        return {};
    }
    return extent_of_basic(basic, bytes);
}

// As the program's function says.
Error FileForms::extent_of_basic(std::uint8_t basic, MPI_Count& extent) {
    const Datatype& type = datatype::predefined_table[basic];
    MPI_Aint found = 0;
    lock_.unlock();
    const int code = representation_.extent(datatype::TypeTable::handle_of(type), &found,
                                            representation_.extra_state);
    lock_.lock();
    if (code != MPI_SUCCESS || found < 0) {
        return fail(MPI_ERR_CONVERSION,
                    "the extent function of representation \"%s\" returned %d and the extent %lld",
                    representation_.name.c_str(), code, static_cast<long long>(found));
    }
    extent = found;
    return {};
}

Error FileForms::bytes_of(const Signature& signature, MPI_Count& bytes) {
    bytes = 0;
    for (const datatype::Run& run : signature.runs) {
        MPI_Count one = 0;
        Error error = run.inner ? bytes_of(*run.inner, one) : bytes_of_basic(run.basic, one);
        error = error ? error : add_bytes(representation_, one, run.count, bytes);
        if (error) {
            return error;
        }
    }
    return {};
}

Error FileForms::bytes_of(const Datatype& type, MPI_Count& bytes) {
    if (!representation_.converts()) {
        bytes = type.size;
        return {};
    }
    if (type.predefined) {
        return bytes_of_basic(type.basic, bytes);
    }
    if (type.derived->signature != nullptr) {
        return bytes_of(*type.derived->signature, bytes);
    }
    bytes = 0;
    if (type.basic == 0) {
        return {};
    }
    MPI_Count one = 0;
    Error error = bytes_of_basic(type.basic, one);
    return error ? error : add_bytes(representation_, one, datatype::elements_of(type), bytes);
}

Error FileForms::extent_of(const Datatype& type, MPI_Count& extent) {
    Draft draft;
    const Datatype* layout = nullptr;
    Error error = layout_of(type, draft, layout);
    extent = error ? 0 : layout->extent;
    return error;
}

Error FileForms::layout_of(const Datatype& type, Draft& draft, const Datatype*& layout) {
    layout = &type;
    if (!representation_.converts()) {
        return {};
    }
    layout = &draft.type;
    return rebuild(type, draft);
}

Error FileForms::form_of(const Datatype& type, const Datatype*& form) {
    parts_.emplace_back();
    form = &parts_.back().type;
    return rebuild(type, parts_.back());
}

Error FileForms::rebuild_array(const Derived& derived, const Datatype& element, Draft& draft) {
    Arguments arguments(derived.contents);
    if (derived.contents.combiner == MPI_COMBINER_SUBARRAY) {
        const int dimensions = arguments.integer();
        const auto sizes = arguments.counts(dimensions);
        const auto subsizes = arguments.counts(dimensions);
        const auto starts = arguments.counts(dimensions);
        return datatype::make_subarray(dimensions, numbers_of(sizes), numbers_of(subsizes),
                                       numbers_of(starts), arguments.integer(), element, draft);
    }
    datatype::Grid grid{};
    grid.size = arguments.integer();
    grid.rank = arguments.integer();
    grid.dimensions = arguments.integer();
    const auto sizes = arguments.counts(grid.dimensions);
    const int* distributions = arguments.integers(grid.dimensions);
    const int* limits = arguments.integers(grid.dimensions);
    grid.processes = arguments.integers(grid.dimensions);
    return datatype::make_darray(grid, numbers_of(sizes), distributions, limits,
                                 arguments.integer(), element, draft);
}

// A type that is made of no others.
Error FileForms::rebuild_basic(const Datatype& type, Draft& draft) {
    if (representation_.spaces_only() && type.basic != 0) {
        MPI_Count extent = 0;
        if (Error error = extent_of_basic(type.basic, extent)) {
            return error;
        }
        return datatype::make_resized(type, 0, extent, draft);
    }
    // As many bytes without a meaning.
    MPI_Count bytes = 0;
    if (Error error = bytes_of(type, bytes)) {
        return error;
    }
    return datatype::make_contiguous(bytes, datatype::basic(MPI_BYTE), draft);
}

Error FileForms::rebuild(const Datatype& type, Draft& draft) {
    if (type.predefined || type.derived->contents.types.empty()) {
        return rebuild_basic(type, draft);
    }
    const Contents& contents = type.derived->contents;
    std::vector<const Datatype*> elements;
    for (const Datatype* used : contents.types) {
        elements.push_back(nullptr);
        if (Error error = form_of(*used, elements.back())) {
            return error;
        }
    }
    const Datatype& element = *elements[0];
    Arguments arguments(contents);
    switch (contents.combiner) {
    case MPI_COMBINER_DUP:
        datatype::make_duplicate(element, draft);
        return {};
    case MPI_COMBINER_CONTIGUOUS:
        return datatype::make_contiguous(arguments.count(), element, draft);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR: {
        const bool in_bytes = contents.combiner == MPI_COMBINER_HVECTOR;
        const MPI_Count count = arguments.count();
        const MPI_Count length = arguments.count();
        const MPI_Count stride =
            in_bytes ? arguments.address() : arguments.count() * element.extent;
        return datatype::make_vector(count, length, stride, element, draft);
    }
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED: {
        const bool in_bytes = contents.combiner == MPI_COMBINER_HINDEXED;
        const MPI_Count count = arguments.count();
        const auto lengths = arguments.counts(count);
        const auto places = in_bytes ? arguments.addresses(count) : arguments.counts(count);
        return datatype::make_indexed(count, numbers_of(lengths), numbers_of(places),
                                      in_bytes ? 1 : element.extent, element, draft);
    }
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: {
        const bool in_bytes = contents.combiner == MPI_COMBINER_HINDEXED_BLOCK;
        const MPI_Count count = arguments.count();
        const MPI_Count length = arguments.count();
        const auto places = in_bytes ? arguments.addresses(count) : arguments.counts(count);
        return datatype::make_indexed(count, {.same = length}, numbers_of(places),
                                      in_bytes ? 1 : element.extent, element, draft);
    }
    case MPI_COMBINER_STRUCT: {
        const MPI_Count count = arguments.count();
        const auto lengths = arguments.counts(count);
        const auto places = arguments.addresses(count);
        return datatype::make_struct(count, numbers_of(lengths), numbers_of(places),
                                     elements.data(), draft);
    }
    case MPI_COMBINER_RESIZED: {
        const MPI_Count lower_bound = arguments.address();
        return datatype::make_resized(element, lower_bound, arguments.address(), draft);
    }
    default:
        return rebuild_array(*type.derived, element, draft);
    }
}

} // namespace warren::io
