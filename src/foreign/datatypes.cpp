// MPI_Type_get_contents: some of the integers that made a datatype are constants. And what MPI 3.0
// removed.

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

// MPI_Type_create_darray's integers are size, rank, dimensions, sizes (unless they are large),
// distributions, their arguments, the grid, order.
constexpr int darray_dimensions = 2;
constexpr int darray_first_array = 3;

void translate_darray(MPI_Count number, int* integers, bool large) {
    const int dimensions = integers[darray_dimensions];
    const int distributions = darray_first_array + (large ? 0 : dimensions);
    if (number < distributions + 3 * dimensions + 1) {
        return;
    }
    for (int i = distributions; i < distributions + dimensions; ++i) {
        integers[i] = foreign_distribution(integers[i]);
        integers[i + dimensions] = foreign_distribution_argument(integers[i + dimensions]);
    }
}

// The foreign forms of constants among the integers of a datatype.
void translate_integers(MPI_Datatype type, MPI_Count given, int* integers) {
    MPI_Count number = 0;
    MPI_Count addresses = 0;
    MPI_Count large_counts = 0;
    MPI_Count types = 0;
    int combiner = 0;
    core.Type_get_envelope_c(type, &number, &addresses, &large_counts, &types, &combiner);
    if (given < 1 || (combiner != MPI_COMBINER_SUBARRAY && combiner != MPI_COMBINER_DARRAY)) {
        return;
    }
    const bool large = large_counts > 0;
    // Without the _c, all sizes are among the integers.
    const MPI_Count filled = given < number ? given : number;
    if (combiner == MPI_COMBINER_DARRAY && filled > darray_first_array) {
        translate_darray(filled, integers, large);
    }
    integers[filled - 1] = foreign_order(integers[filled - 1]);
}

// Gets a type's contents by call(array for the core's datatypes).
template <typename Call>
int get_contents(MPI_Datatype type, MPI_Count max_integers, int* integers, MPI_Count max_datatypes,
                 Datatype* datatypes, const Call& call) {
    Array<MPI_Datatype> types(max_datatypes);
    if (!types.made()) {
        return no_memory();
    }
    for (MPI_Count i = 0; i < types.length(); ++i) {
        types[i] = nullptr;
    }
    const int code = call(datatypes != nullptr ? types.data() : nullptr);
    // A call that has failed may return MPI_SUCCESS, if its error handler says so, and has written
    // nothing. Types with constants among their integers are made of one type.
    if (code == MPI_SUCCESS && types.length() > 0 && types[0] != nullptr) {
        translate_integers(type, max_integers, integers);
    }
    for (MPI_Count i = 0; i < types.length(); ++i) {
        if (types[i] != nullptr) {
            datatypes[i] = handle::Datatype::foreign(types[i]);
        }
    }
    return foreign_error(code);
}

} // namespace

WARREN_FOREIGN(int, Type_get_contents,
               (Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                int* integers, MPI_Aint* addresses, Datatype* datatypes)) {
    const MPI_Datatype type = handle::Datatype::core(datatype);
    return get_contents(
        type, max_integers, integers, max_datatypes, datatypes, [&](MPI_Datatype* types) {
            return core.Type_get_contents(type, max_integers, max_addresses, max_datatypes,
                                          integers, addresses, types);
        });
}

WARREN_FOREIGN(int, Type_get_contents_c,
               (Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                MPI_Count max_large_counts, MPI_Count max_datatypes, int* integers,
                MPI_Aint* addresses, MPI_Count* large_counts, Datatype* datatypes)) {
    const MPI_Datatype type = handle::Datatype::core(datatype);
    return get_contents(
        type, max_integers, integers, max_datatypes, datatypes, [&](MPI_Datatype* types) {
            return core.Type_get_contents_c(type, max_integers, max_addresses, max_large_counts,
                                            max_datatypes, integers, addresses, large_counts,
                                            types);
        });
}

// Removed from the standard by MPI 3.0; programs still call them.

WARREN_FOREIGN(int, Address, (const void* location, MPI_Aint* address)) {
    return foreign_error(core.Get_address(location, address));
}

WARREN_FOREIGN(int, Type_extent, (Datatype datatype, MPI_Aint* extent)) {
    MPI_Aint lower = 0;
    return foreign_error(core.Type_get_extent(handle::Datatype::core(datatype), &lower, extent));
}

WARREN_FOREIGN(int, Type_lb, (Datatype datatype, MPI_Aint* displacement)) {
    MPI_Aint extent = 0;
    return foreign_error(
        core.Type_get_extent(handle::Datatype::core(datatype), displacement, &extent));
}

WARREN_FOREIGN(int, Type_ub, (Datatype datatype, MPI_Aint* displacement)) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    const int code = core.Type_get_extent(handle::Datatype::core(datatype), &lower,
                                          displacement != nullptr ? &extent : nullptr);
    if (code == MPI_SUCCESS && displacement != nullptr) {
        *displacement = lower + extent;
    }
    return foreign_error(code);
}

WARREN_FOREIGN(int, Type_hvector,
               (int count, int block_length, MPI_Aint stride, Datatype old_type,
                Datatype* new_type)) {
    HandlePointer<handle::Datatype, Way::out> made(new_type);
    return foreign_error(core.Type_create_hvector(count, block_length, stride,
                                                  handle::Datatype::core(old_type), made.data()));
}

WARREN_FOREIGN(int, Type_hindexed,
               (int count, const int* block_lengths, const MPI_Aint* displacements,
                Datatype old_type, Datatype* new_type)) {
    HandlePointer<handle::Datatype, Way::out> made(new_type);
    return foreign_error(core.Type_create_hindexed(count, block_lengths, displacements,
                                                   handle::Datatype::core(old_type), made.data()));
}

WARREN_FOREIGN(int, Type_struct,
               (int count, const int* block_lengths, const MPI_Aint* displacements,
                const Datatype* types, Datatype* new_type)) {
    HandlePointer<handle::Datatype, Way::out> made(new_type);
    Handles<handle::Datatype, Way::in> types_(types, count);
    if (!types_.made()) {
        return no_memory();
    }
    return foreign_error(
        core.Type_create_struct(count, block_lengths, displacements, types_.data(), made.data()));
}

} // namespace warren::foreign
