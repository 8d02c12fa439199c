// Construction and life of datatypes (MPI chapter 5.1).
#include "mpi/entry/datatypes.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "mpi/datatype/construct.hpp"
#include "mpi/datatype/type_table.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

using datatype::Contents;
using datatype::Datatype;
using datatype::Draft;
using datatype::Numbers;

namespace {

constexpr MPI_Count int_limit = std::numeric_limits<int>::max();

Numbers numbers(const CountArray& array) {
    return {.values = array.data(), .wide = array.wide()};
}

// Notes the arguments of a constructor where MPI_Type_get_contents expects them: a procedure with
// int arguments gives integers and addresses, its large-count form only counts.
class Recorder {
  public:
    Recorder(Draft& draft, int combiner, bool large)
        : contents_(draft.derived->contents), large_(large) {
        contents_.combiner = combiner;
        contents_.large = large;
    }

    void integer(int value) { contents_.integers.push_back(value); }
    void integers(const int values[], int length) {
        contents_.integers.insert(contents_.integers.end(), values, values + length);
    }
    void count(MPI_Count value) {
        if (large_) {
            contents_.counts.push_back(value);
        } else {
            contents_.integers.push_back(static_cast<int>(value));
        }
    }
    void counts(const CountArray& values, MPI_Count length) {
        for (MPI_Count i = 0; i < length; ++i) {
            count(values[i]);
        }
    }
    void address(MPI_Count value) {
        if (large_) {
            contents_.counts.push_back(value);
        } else {
            contents_.addresses.push_back(value);
        }
    }
    void addresses(const CountArray& values, MPI_Count length) {
        for (MPI_Count i = 0; i < length; ++i) {
            address(values[i]);
        }
    }
    void type(const Datatype& used) { contents_.types.push_back(&used); }

  private:
    Contents& contents_;
    bool large_;
};

// Where nothing else tells which form of a procedure was called: whether the int form could have
// been.
bool large(std::initializer_list<MPI_Count> values) {
    for (const MPI_Count value : values) {
        if (value > int_limit || value < -int_limit - 1) {
            return true;
        }
    }
    return false;
}

} // namespace

Error type_contiguous(Context& context, MPI_Count count, const Datatype& oldtype,
                      MPI_Datatype* newtype) {
    Draft draft;
    if (Error error = make_contiguous(count, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_CONTIGUOUS, large({count}));
    record.count(count);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_vector(Context& context, MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                  const Datatype& oldtype, MPI_Datatype* newtype) {
    Draft draft;
    MPI_Count bytes = 0;
    if (Error error = datatype::multiply(stride, oldtype.extent, "stride", bytes)) {
        return error;
    }
    if (Error error = make_vector(count, blocklength, bytes, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_VECTOR, large({count, blocklength, stride}));
    record.count(count);
    record.count(blocklength);
    record.count(stride);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_hvector(Context& context, MPI_Count count, MPI_Count blocklength,
                          MPI_Count stride, const Datatype& oldtype, MPI_Datatype* newtype) {
    Draft draft;
    if (Error error = make_vector(count, blocklength, stride, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_HVECTOR, large({count, blocklength}));
    record.count(count);
    record.count(blocklength);
    record.address(stride);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_indexed(Context& context, MPI_Count count, CountArray array_of_blocklengths,
                   CountArray array_of_displacements, const Datatype& oldtype,
                   MPI_Datatype* newtype) {
    Draft draft;
    if (Error error =
            make_indexed(count, numbers(array_of_blocklengths), numbers(array_of_displacements),
                         oldtype.extent, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_INDEXED, array_of_blocklengths.wide());
    record.count(count);
    record.counts(array_of_blocklengths, count);
    record.counts(array_of_displacements, count);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_hindexed(Context& context, MPI_Count count, CountArray array_of_blocklengths,
                           CountArray array_of_displacements, const Datatype& oldtype,
                           MPI_Datatype* newtype) {
    Draft draft;
    if (Error error = make_indexed(count, numbers(array_of_blocklengths),
                                   numbers(array_of_displacements), 1, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_HINDEXED, array_of_blocklengths.wide());
    record.count(count);
    record.counts(array_of_blocklengths, count);
    record.addresses(array_of_displacements, count);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_indexed_block(Context& context, MPI_Count count, MPI_Count blocklength,
                                CountArray array_of_displacements, const Datatype& oldtype,
                                MPI_Datatype* newtype) {
    Draft draft;
    if (Error error = make_indexed(count, {.same = blocklength}, numbers(array_of_displacements),
                                   oldtype.extent, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_INDEXED_BLOCK, array_of_displacements.wide());
    record.count(count);
    record.count(blocklength);
    record.counts(array_of_displacements, count);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_hindexed_block(Context& context, MPI_Count count, MPI_Count blocklength,
                                 CountArray array_of_displacements, const Datatype& oldtype,
                                 MPI_Datatype* newtype) {
    Draft draft;
    if (Error error = make_indexed(count, {.same = blocklength}, numbers(array_of_displacements), 1,
                                   oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_HINDEXED_BLOCK, large({count, blocklength}));
    record.count(count);
    record.count(blocklength);
    record.addresses(array_of_displacements, count);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_struct(Context& context, MPI_Count count, CountArray array_of_blocklengths,
                         CountArray array_of_displacements, const MPI_Datatype array_of_types[],
                         MPI_Datatype* newtype) {
    std::vector<const Datatype*> types;
    types.reserve(static_cast<std::size_t>(count));
    for (MPI_Count i = 0; i < count; ++i) {
        types.push_back(context.datatypes.find(array_of_types[i]));
        if (types.back() == nullptr) {
            return fail(MPI_ERR_TYPE, "type %lld is not a datatype", static_cast<long long>(i));
        }
    }
    Draft draft;
    if (Error error = make_struct(count, numbers(array_of_blocklengths),
                                  numbers(array_of_displacements), types.data(), draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_STRUCT, array_of_blocklengths.wide());
    record.count(count);
    record.counts(array_of_blocklengths, count);
    record.addresses(array_of_displacements, count);
    for (const Datatype* type : types) {
        record.type(*type);
    }
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_resized(Context& context, const Datatype& oldtype, MPI_Count lb, MPI_Count extent,
                          MPI_Datatype* newtype) {
    Draft draft;
    if (Error error = make_resized(oldtype, lb, extent, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_RESIZED, false);
    record.address(lb);
    record.address(extent);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_subarray(Context& context, int ndims, CountArray array_of_sizes,
                           CountArray array_of_subsizes, CountArray array_of_starts, int order,
                           const Datatype& oldtype, MPI_Datatype* newtype) {
    Draft draft;
    if (Error error = make_subarray(ndims, numbers(array_of_sizes), numbers(array_of_subsizes),
                                    numbers(array_of_starts), order, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_SUBARRAY, array_of_sizes.wide());
    record.integer(ndims);
    record.counts(array_of_sizes, ndims);
    record.counts(array_of_subsizes, ndims);
    record.counts(array_of_starts, ndims);
    record.integer(order);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_create_darray(Context& context, int size, int rank, int ndims,
                         CountArray array_of_gsizes, const int array_of_distribs[],
                         const int array_of_dargs[], const int array_of_psizes[], int order,
                         const Datatype& oldtype, MPI_Datatype* newtype) {
    Draft draft;
    const datatype::Grid grid{
        .size = size, .rank = rank, .dimensions = ndims, .processes = array_of_psizes};
    if (Error error = make_darray(grid, numbers(array_of_gsizes), array_of_distribs, array_of_dargs,
                                  order, oldtype, draft)) {
        return error;
    }
    Recorder record(draft, MPI_COMBINER_DARRAY, array_of_gsizes.wide());
    record.integer(size);
    record.integer(rank);
    record.integer(ndims);
    record.counts(array_of_gsizes, ndims);
    for (const int* array : {array_of_distribs, array_of_dargs, array_of_psizes}) {
        record.integers(array, ndims);
    }
    record.integer(order);
    record.type(oldtype);
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_dup(Context& context, const Datatype& oldtype, MPI_Datatype* newtype) {
    Draft draft;
    make_duplicate(oldtype, draft);
    Recorder record(draft, MPI_COMBINER_DUP, false);
    record.type(oldtype);
    const datatype::Extras* extras = context.datatypes.find_extras(oldtype);
    if (extras != nullptr && extras->attachment != nullptr) {
        if (Error error = extras->attachment->copy(datatype::TypeTable::handle_of(oldtype),
                                                   draft.derived->extras.attachment)) {
            return error;
        }
    }
    return context.datatypes.insert(std::move(draft), *newtype);
}

Error type_commit(Context&, const Datatype& datatype) {
    datatype::TypeTable::commit(datatype);
    return {};
}

Error type_free(Context&, const Datatype& datatype) {
    if (Error error = datatype::TypeTable::check_free(datatype)) {
        return error;
    }
    if (datatype.handles == 1 && datatype.derived->extras.attachment) {
        if (Error error = datatype.derived->extras.attachment->clear(
                datatype::TypeTable::handle_of(datatype))) {
            return error;
        }
    }
    return datatype::TypeTable::free(datatype);
}

} // namespace warren::mpi
