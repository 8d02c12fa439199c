/* Strided, structured and absolute data of every size goes between different layouts. */
#include "check.h"

/* A column of a matrix to a contiguous array, and back into a row. */
static void columns(int rank) {
    for (int n = 1; n <= 2000; n = n * 3 + 1) {
        const size_t cells = (size_t)n * 7;
        double* matrix = malloc(cells * sizeof(double));
        MPI_Datatype column;
        MPI_Type_vector(n, 1, 7, MPI_DOUBLE, &column);
        MPI_Type_commit(&column);
        if (rank == 0) {
            for (size_t i = 0; i < cells; i++) {
                matrix[i] = (double)i;
            }
            MPI_Send(matrix + 3, 1, column, 1, n, MPI_COMM_WORLD);
            MPI_Send(matrix, n, MPI_DOUBLE, 1, n, MPI_COMM_WORLD);
            MPI_Ssend(matrix + 2, 1, column, 1, n, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Status status;
            MPI_Recv(matrix, n, MPI_DOUBLE, 0, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < n; i++) {
                CHECK(matrix[i] == 7.0 * i + 3, "element %d of %d is %g", i, n, matrix[i]);
            }
            for (size_t i = 0; i < cells; i++) {
                matrix[i] = -1;
            }
            MPI_Recv(matrix + 5, 1, column, 0, n, MPI_COMM_WORLD, &status);
            for (size_t i = 0; i < cells; i++) {
                const double expected = i % 7 == 5 ? (double)(i / 7) : -1;
                CHECK(matrix[i] == expected, "cell %zu is %g, expected %g", i, matrix[i], expected);
            }
            int count = -1;
            MPI_Get_count(&status, column, &count);
            CHECK(count == 1, "count %d of a column", count);
            MPI_Recv(matrix, 1, column, 0, n, MPI_COMM_WORLD, &status);
            for (int i = 0; i < n; i++) {
                CHECK(matrix[7 * i] == 7.0 * i + 2, "column to column: element %d", i);
            }
        }
        MPI_Type_free(&column);
        free(matrix);
    }
}

static void structures(int rank) {
    struct record {
        char letter;
        double fraction;
        short numbers[3];
    };
    enum { count = 5000 };
    struct record* records = calloc(count, sizeof *records);
    MPI_Datatype fields, record, types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
    int lengths[3] = {1, 1, 3};
    MPI_Aint base, places[3];
    MPI_Get_address(&records[0], &base);
    MPI_Get_address(&records[0].letter, &places[0]);
    MPI_Get_address(&records[0].fraction, &places[1]);
    MPI_Get_address(&records[0].numbers, &places[2]);
    for (int i = 0; i < 3; i++) {
        places[i] = MPI_Aint_diff(places[i], base);
    }
    MPI_Type_create_struct(3, lengths, places, types, &fields);
    MPI_Type_create_resized(fields, 0, sizeof *records, &record);
    MPI_Type_commit(&record);
    MPI_Type_free(&fields);
    if (rank == 0) {
        for (int i = 0; i < count; i++) {
            records[i].letter = (char)('a' + i % 26);
            records[i].fraction = i / 8.0;
            records[i].numbers[0] = records[i].numbers[1] = records[i].numbers[2] = (short)i;
        }
        MPI_Request request;
        MPI_Isend(records, count, record, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Type_free(&record); /* the request keeps it */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Status status;
        int received = -1, elements = -1;
        MPI_Recv(records, count, record, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, record, &received);
        MPI_Get_elements(&status, record, &elements);
        CHECK(received == count && elements == 5 * count, "count %d, elements %d", received,
              elements);
        for (int i = 0; i < count; i++) {
            CHECK(records[i].letter == 'a' + i % 26 && records[i].fraction == i / 8.0 &&
                      records[i].numbers[2] == (short)i,
                  "record %d", i);
        }
        MPI_Type_free(&record);
    }
    free(records);
}

static void absolute_addresses(int rank) {
    int number = rank == 0 ? 5 : 0;
    double* fractions = calloc(100, sizeof(double));
    MPI_Datatype both, types[2] = {MPI_INT, MPI_DOUBLE};
    int lengths[2] = {1, 100};
    MPI_Aint places[2];
    MPI_Get_address(&number, &places[0]);
    MPI_Get_address(fractions, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    if (rank == 0) {
        for (int i = 0; i < 100; i++) {
            fractions[i] = i;
        }
        MPI_Send(MPI_BOTTOM, 1, both, 1, 2, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(MPI_BOTTOM, 1, both, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(number == 5 && fractions[99] == 99, "%d, %g", number, fractions[99]);
    }
    MPI_Type_free(&both);
    free(fractions);
}

static void packed_data(int rank) {
    char buffer[200];
    int position = 0, numbers[3] = {1, 2, 3}, size = 0;
    double fraction = 0.25;
    if (rank == 0) {
        MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &size);
        CHECK(size >= 12 && size <= 200, "MPI_Pack_size gives %d", size);
        MPI_Pack(numbers, 3, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        MPI_Pack(&fraction, 1, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        MPI_Send(buffer, position, MPI_PACKED, 1, 3, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Status status;
        memset(numbers, 0, sizeof numbers);
        fraction = 0;
        MPI_Recv(buffer, sizeof buffer, MPI_PACKED, 0, 3, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_PACKED, &size);
        MPI_Unpack(buffer, size, &position, numbers, 3, MPI_INT, MPI_COMM_WORLD);
        MPI_Unpack(buffer, size, &position, &fraction, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        CHECK(numbers[2] == 3 && fraction == 0.25 && position == size, "%d, %g, %d of %d bytes",
              numbers[2], fraction, position, size);
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    columns(rank);
    structures(rank);
    absolute_addresses(rank);
    packed_data(rank);
    MPI_Finalize();
    return 0;
}
