// Bounds of structs with blocks that have no elements. MPI 5.0, chapter 5 (Datatypes), section 5.1
// (Derived Datatypes), decides in the paragraph about replication counts and block lengths: zero is
// allowed, such a block generates no elements in the type map and does not affect bounds or extent.
// The bounds are then, by the formula for lb and ub in the same section, those of the displacements
// that are in the type map. (MPICH and Open MPI count the displacement of an empty type, too.)
#include <mpi.h>

#include "../environment/expect.hpp"

namespace {

constexpr MPI_Aint int_at = 100;

// A struct of one `first` at 0 and an int at 100.
MPI_Datatype struct_of(int length, MPI_Datatype first) {
    const int lengths[2] = {length, 1};
    const MPI_Aint displacements[2] = {0, int_at};
    const MPI_Datatype types[2] = {first, MPI_INT};
    MPI_Datatype made = MPI_DATATYPE_NULL;
    EXPECT(MPI_Type_create_struct(2, lengths, displacements, types, &made) == MPI_SUCCESS);
    return made;
}

bool has_bounds(MPI_Datatype type, MPI_Aint lower_bound, MPI_Aint extent) {
    MPI_Aint bound = -1;
    MPI_Aint bytes = -1;
    MPI_Type_get_extent(type, &bound, &bytes);
    if (bound != lower_bound || bytes != extent) {
        std::printf("lower bound %ld, extent %ld\n", static_cast<long>(bound),
                    static_cast<long>(bytes));
    }
    return bound == lower_bound && bytes == extent;
}

void has_only_the_int(int length, MPI_Datatype first) {
    MPI_Datatype made = struct_of(length, first);
    EXPECT(has_bounds(made, int_at, sizeof(int)));
    MPI_Aint true_bound = -1;
    MPI_Aint true_bytes = -1;
    MPI_Type_get_true_extent(made, &true_bound, &true_bytes);
    EXPECT(true_bound == int_at && true_bytes == sizeof(int));
    MPI_Type_free(&made);
}

void empty_blocks() {
    has_only_the_int(0, MPI_INT);

    MPI_Datatype empty = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    EXPECT(has_bounds(empty, 0, 0));
    has_only_the_int(1, empty);
    has_only_the_int(7, empty);
    MPI_Datatype nested = MPI_DATATYPE_NULL;
    MPI_Type_vector(3, 2, 5, empty, &nested);
    has_only_the_int(1, nested);
    MPI_Type_free(&nested);
    MPI_Type_free(&empty);

    MPI_Type_vector(0, 4, 8, MPI_DOUBLE, &empty);
    has_only_the_int(1, empty);
    MPI_Type_free(&empty);

    const int length = 0;
    const int displacement = -3;
    MPI_Type_indexed(1, &length, &displacement, MPI_DOUBLE, &empty);
    has_only_the_int(1, empty);
    MPI_Type_free(&empty);
}

// Section 5.1.7 (Lower-Bound and Upper-Bound Markers): bounds that the program has set stay, also
// of an empty type.
void bounds_that_were_set() {
    MPI_Datatype empty = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Datatype bounded = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(empty, -8, 24, &bounded);
    EXPECT(has_bounds(bounded, -8, 24));
    MPI_Datatype made = struct_of(1, bounded);
    EXPECT(has_bounds(made, -8, 24));
    MPI_Type_free(&made);
    made = struct_of(0, bounded); // the block has no elements, and so no markers
    EXPECT(has_bounds(made, int_at, sizeof(int)));
    MPI_Type_free(&made);
    MPI_Type_free(&bounded);
    MPI_Type_free(&empty);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    empty_blocks();
    bounds_that_were_set();
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
