// Queries of datatypes (MPI chapter 5.1): sizes, bounds, names, contents, and the types that match
// a size or a pair.
#include <algorithm>
#include <cstring>

#include "mpi/datatype/type_table.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/datatypes.hpp"

namespace warren::mpi {

using datatype::Contents;
using datatype::Datatype;
using datatype::Extras;
using datatype::TypeTable;

Error type_size(Context&, const Datatype& datatype, MPI_Count& size) {
    size = datatype.size;
    return {};
}

Error type_size_x(Context&, const Datatype& datatype, MPI_Count* size) {
    *size = datatype.size;
    return {};
}

Error type_get_extent(Context&, const Datatype& datatype, MPI_Count& lb, MPI_Count& extent) {
    lb = datatype.lower_bound;
    extent = datatype.extent;
    return {};
}

Error type_get_extent_x(Context& context, const Datatype& datatype, MPI_Count* lb,
                        MPI_Count* extent) {
    return type_get_extent(context, datatype, *lb, *extent);
}

Error type_get_true_extent(Context&, const Datatype& datatype, MPI_Count& true_lb,
                           MPI_Count& true_extent) {
    true_lb = datatype.true_lower_bound;
    true_extent = datatype.true_extent;
    return {};
}

Error type_get_true_extent_x(Context& context, const Datatype& datatype, MPI_Count* true_lb,
                             MPI_Count* true_extent) {
    return type_get_true_extent(context, datatype, *true_lb, *true_extent);
}

Error type_get_name(Context& context, const Datatype* datatype, char* type_name, int* resultlen) {
    const char* name = "MPI_DATATYPE_NULL";
    if (datatype != nullptr) {
        const Extras* extras = context.datatypes.find_extras(*datatype);
        name =
            extras != nullptr && extras->named ? extras->name.c_str() : datatype->predefined_name();
    }
    std::strcpy(type_name, name);
    *resultlen = static_cast<int>(std::strlen(name));
    return {};
}

Error type_set_name(Context& context, const Datatype& datatype, const char* type_name) {
    Extras& extras = context.datatypes.extras(datatype);
    extras.named = true;
    extras.name.assign(type_name, strnlen(type_name, MPI_MAX_OBJECT_NAME - 1));
    return {};
}

namespace {

// The original procedures can't describe what a large-count procedure made.
Error check_small(const Datatype& type) {
    if (!type.predefined && type.derived->contents.large) {
        return fail(MPI_ERR_TYPE,
                    "the datatype was made with MPI_Count arguments: use the _c form");
    }
    return {};
}

Error check_array_size(const char* what, MPI_Count room, std::size_t needed) {
    if (room < static_cast<MPI_Count>(needed)) {
        return fail(MPI_ERR_ARG, "max_%s %lld is less than the %zu that the datatype has", what,
                    static_cast<long long>(room), needed);
    }
    return {};
}

} // namespace

Error type_get_envelope_c(Context&, const Datatype& datatype, MPI_Count* num_integers,
                          MPI_Count* num_addresses, MPI_Count* num_large_counts,
                          MPI_Count* num_datatypes, int* combiner) {
    const Contents named;
    const Contents& contents = datatype.predefined ? named : datatype.derived->contents;
    *num_integers = static_cast<MPI_Count>(contents.integers.size());
    *num_addresses = static_cast<MPI_Count>(contents.addresses.size());
    *num_large_counts = static_cast<MPI_Count>(contents.counts.size());
    *num_datatypes = static_cast<MPI_Count>(contents.types.size());
    *combiner = contents.combiner;
    return {};
}

Error type_get_envelope(Context&, const Datatype& datatype, int* num_integers, int* num_addresses,
                        int* num_datatypes, int* combiner) {
    if (Error error = check_small(datatype)) {
        return error;
    }
    const Contents named;
    const Contents& contents = datatype.predefined ? named : datatype.derived->contents;
    *num_integers = static_cast<int>(contents.integers.size());
    *num_addresses = static_cast<int>(contents.addresses.size());
    *num_datatypes = static_cast<int>(contents.types.size());
    *combiner = contents.combiner;
    return {};
}

Error type_get_contents_c(Context&, const Datatype& datatype, MPI_Count max_integers,
                          MPI_Count max_addresses, MPI_Count max_large_counts,
                          MPI_Count max_datatypes, int array_of_integers[],
                          MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                          MPI_Datatype array_of_datatypes[]) {
    if (datatype.predefined) {
        return fail(MPI_ERR_TYPE, "predefined datatype %s has no contents",
                    datatype.predefined_name());
    }
    const Contents& contents = datatype.derived->contents;
    if (Error error = check_array_size("integers", max_integers, contents.integers.size())) {
        return error;
    }
    if (Error error = check_array_size("addresses", max_addresses, contents.addresses.size())) {
        return error;
    }
    if (Error error = check_array_size("large_counts", max_large_counts, contents.counts.size())) {
        return error;
    }
    if (Error error = check_array_size("datatypes", max_datatypes, contents.types.size())) {
        return error;
    }
    std::copy(contents.integers.begin(), contents.integers.end(), array_of_integers);
    std::copy(contents.addresses.begin(), contents.addresses.end(), array_of_addresses);
    if (array_of_large_counts != nullptr) { // null for the original form, which then needs none
        std::copy(contents.counts.begin(), contents.counts.end(), array_of_large_counts);
    }
    for (const Datatype* type : contents.types) {
        // Derived types are the program's to free again.
        *array_of_datatypes++ = TypeTable::share(*type);
    }
    return {};
}

Error type_get_contents(Context& context, const Datatype& datatype, int max_integers,
                        int max_addresses, int max_datatypes, int array_of_integers[],
                        MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
    if (Error error = check_small(datatype)) {
        return error;
    }
    return type_get_contents_c(context, datatype, max_integers, max_addresses, 0, max_datatypes,
                               array_of_integers, array_of_addresses, nullptr, array_of_datatypes);
}

Error get_address(Context&, const void* location, MPI_Aint* address) {
    *address = reinterpret_cast<MPI_Aint>(location);
    return {};
}

Error type_match_size(Context&, int typeclass, int size, MPI_Datatype* datatype) {
    struct Match {
        int typeclass;
        int size;
        MPI_Datatype type;
    };
    const Match matches[] = {
        {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},   {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
        {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},   {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
        {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16}, {MPI_TYPECLASS_REAL, 2, MPI_REAL2},
        {MPI_TYPECLASS_REAL, 4, MPI_REAL4},         {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
        {MPI_TYPECLASS_REAL, 16, MPI_REAL16},       {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
        {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},   {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
        {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32}};
    for (const Match& match : matches) {
        if (match.typeclass == typeclass && match.size == size) {
            *datatype = match.type;
            return {};
        }
    }
    const bool known = typeclass == MPI_TYPECLASS_INTEGER || typeclass == MPI_TYPECLASS_REAL ||
                       typeclass == MPI_TYPECLASS_COMPLEX;
    return known ? fail(MPI_ERR_ARG, "no datatype of class %d has %d bytes", typeclass, size)
                 : fail(MPI_ERR_ARG, "%d is not one of MPI_TYPECLASS_INTEGER, _REAL, _COMPLEX",
                        typeclass);
}

Error type_get_value_index(Context&, const Datatype& value_type, const Datatype& index_type,
                           MPI_Datatype* pair_type) {
    struct Pair {
        MPI_Datatype value;
        MPI_Datatype index;
        MPI_Datatype pair;
    };
    const Pair pairs[] = {{MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
                          {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
                          {MPI_LONG, MPI_INT, MPI_LONG_INT},
                          {MPI_INT, MPI_INT, MPI_2INT},
                          {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
                          {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
                          {MPI_REAL, MPI_REAL, MPI_2REAL},
                          {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
                          {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER}};
    const MPI_Datatype value = TypeTable::handle_of(value_type);
    const MPI_Datatype index = TypeTable::handle_of(index_type);
    *pair_type = MPI_DATATYPE_NULL; // the standard's answer where there is no such pair
    for (const Pair& pair : pairs) {
        if (pair.value == value && pair.index == index) {
            *pair_type = pair.pair;
        }
    }
    return {};
}

} // namespace warren::mpi
