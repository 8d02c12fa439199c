// Datatypes by precision, parts of distributed arrays, packing for other machines, and what a
// program may ask of them afterwards.
#include <cstring>

#include <mpi.h>

#include "../environment/expect.hpp"

namespace {

int class_of(int code) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    return error_class;
}

void fortran_types() {
    MPI_Datatype real = MPI_DATATYPE_NULL;
    MPI_Datatype again = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_real(15, 30, &real);
    MPI_Type_create_f90_real(15, 30, &again);
    EXPECT(real == again);
    int bytes = 0;
    MPI_Type_size(real, &bytes);
    EXPECT(bytes == 8);

    int integers = 0;
    int addresses = 0;
    int types = 0;
    int combiner = 0;
    MPI_Type_get_envelope(real, &integers, &addresses, &types, &combiner);
    EXPECT(combiner == MPI_COMBINER_F90_REAL && integers == 2 && addresses == 0 && types == 0);
    int values[2] = {0, 0};
    MPI_Type_get_contents(real, 2, 0, 0, values, nullptr, nullptr);
    EXPECT(values[0] == 15 && values[1] == 30);

    // Committed, good for reductions, and not to be freed, also when a type made of it gave it out.
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double value = rank + 1;
    double sum = 0;
    EXPECT(MPI_Allreduce(&value, &sum, 1, real, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(sum == size * (size + 1) / 2.0);
    MPI_Datatype two = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, real, &two);
    MPI_Datatype given = MPI_DATATYPE_NULL;
    MPI_Type_get_contents(two, 1, 0, 1, values, nullptr, &given);
    EXPECT(given == real);
    EXPECT(class_of(MPI_Type_free(&given)) == MPI_ERR_TYPE && given == real);
    MPI_Type_free(&two);

    MPI_Datatype integer = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_integer(9, &integer);
    MPI_Type_size(integer, &bytes);
    EXPECT(bytes == 4);
    EXPECT(class_of(MPI_Type_create_f90_integer(99, &integer)) == MPI_ERR_ARG);
    EXPECT(class_of(MPI_Type_create_f90_complex(MPI_UNDEFINED, MPI_UNDEFINED, &real)) ==
           MPI_ERR_ARG);
}

void distributed_array() {
    const int sizes[] = {5, 4};
    const int distributions[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    const int arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG};
    const int grid[] = {2, 2};
    MPI_Datatype part = MPI_DATATYPE_NULL;
    MPI_Type_create_darray(4, 1, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT,
                           &part);
    int integers = 0;
    int addresses = 0;
    int types = 0;
    int combiner = 0;
    MPI_Type_get_envelope(part, &integers, &addresses, &types, &combiner);
    EXPECT(combiner == MPI_COMBINER_DARRAY && integers == 4 * 2 + 4 && addresses == 0 &&
           types == 1);
    const int expected[] = {
        4, 1, 2,          5, 4, distributions[0], distributions[1], 2, MPI_DISTRIBUTE_DFLT_DARG,
        2, 2, MPI_ORDER_C};
    int values[12];
    MPI_Datatype element = MPI_DATATYPE_NULL;
    MPI_Type_get_contents(part, 12, 0, 1, values, nullptr, &element);
    EXPECT(std::memcmp(values, expected, sizeof values) == 0 && element == MPI_INT);

    // Rows 0, 1 and 4, the right half of each.
    MPI_Type_commit(&part);
    int array[20];
    for (int i = 0; i < 20; ++i) {
        array[i] = i;
    }
    const int mine[] = {2, 3, 6, 7, 18, 19};
    int got[6];
    MPI_Sendrecv(array, 1, part, 0, 0, got, 6, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    EXPECT(std::memcmp(got, mine, sizeof got) == 0);
    MPI_Type_free(&part);
}

void external32() {
    const long numbers[] = {1, -2};
    MPI_Aint bytes = 0;
    MPI_Pack_external_size("external32", 2, MPI_LONG, &bytes);
    EXPECT(bytes == 8);
    unsigned char buffer[12];
    std::memset(buffer, 0x55, sizeof buffer);
    MPI_Aint position = 2;
    MPI_Pack_external("external32", numbers, 2, MPI_LONG, buffer, sizeof buffer, &position);
    const unsigned char expected[] = {0x55, 0x55, 0, 0, 0, 1, 255, 255, 255, 254, 0x55, 0x55};
    EXPECT(position == 10 && std::memcmp(buffer, expected, sizeof buffer) == 0);
    position = 2;
    int back[2];
    MPI_Unpack_external("external32", buffer, sizeof buffer, &position, back, 2, MPI_INT);
    EXPECT(position == 10 && back[0] == 1 && back[1] == -2);
    EXPECT(class_of(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, back, 2,
                                        MPI_INT)) == MPI_ERR_ARG);
    EXPECT(class_of(MPI_Pack_external_size("internal", 2, MPI_LONG, &bytes)) == MPI_ERR_ARG);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    fortran_types();
    distributed_array();
    external32();
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
