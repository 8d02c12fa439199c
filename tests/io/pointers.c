/* Individual and shared file pointers; ordered and split accesses. */
#include "file.h"

static void individual(void) {
    MPI_File file = file_new();
    MPI_File_set_view(file, (MPI_Offset)rank * 4000, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    int values[10];
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 10; i++)
            values[i] = round * 10 + i;
        MPI_File_write(file, values, 10, MPI_INT, MPI_STATUS_IGNORE);
    }
    MPI_Offset at;
    MPI_File_get_position(file, &at);
    CHECK(at == 1000, "%lld", (long long)at);
    MPI_File_seek(file, -5, MPI_SEEK_CUR);
    MPI_Status status;
    MPI_File_read_all(file, values, 5, MPI_INT, &status);
    check_count(&status, 20, "read_all");
    CHECK(values[0] == 995 && values[4] == 999, "%d %d", values[0], values[4]);
    MPI_File_seek(file, 10, MPI_SEEK_SET);
    MPI_File_read(file, values, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(values[0] == 10, "%d", values[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(file, 0, MPI_SEEK_END);
    MPI_File_get_position(file, &at);
    CHECK(at == 1000 * (size - rank), "%lld", (long long)at);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    int code = MPI_File_seek(file, -1, MPI_SEEK_SET);
    CHECK(check_class(code) == MPI_ERR_ARG, "class %d", check_class(code));
    code = MPI_File_seek(file, 0, 12345);
    CHECK(check_class(code) == MPI_ERR_ARG, "class %d", check_class(code));
    MPI_File_get_position(file, &at);
    CHECK(at == 1000 * (size - rank), "a failed call has moved the pointer");
    MPI_File_close(&file);
}

/* Every record is written once, wherever; then every one is read once. */
static void shared(void) {
    enum { records = 200 };
    MPI_File file = file_new();
    MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int i = 0; i < records; i++) {
        int record[2] = {rank, i};
        if (i % 3 == 0) {
            MPI_Request request;
            MPI_File_iwrite_shared(file, record, 2, MPI_INT, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_File_write_shared(file, record, 2, MPI_INT, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Offset at;
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 2 * records * size, "%lld", (long long)at);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    int* seen = calloc((size_t)(records * size), sizeof(int));
    for (int i = 0; i < records; i++) {
        int record[2];
        MPI_Status status;
        MPI_File_read_shared(file, record, 2, MPI_INT, &status);
        check_count(&status, 8, "read_shared");
        seen[record[0] * records + record[1]]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, records * size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < records * size; i++)
        CHECK(seen[i] == 1, "record %d was read %d times", i, seen[i]);
    MPI_File_seek_shared(file, -2, MPI_SEEK_END);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 2 * records * size - 2, "%lld", (long long)at);
    free(seen);
    MPI_File_close(&file);
}

static void ordered(int split) {
    MPI_File file = file_new();
    int values[8], back[8];
    int length = rank % 3 + 1; /* of this rank */
    int before = 0, all = 0;
    for (int r = 0; r < size; r++) {
        before += r < rank ? r % 3 + 1 : 0;
        all += r % 3 + 1;
    }
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < length; i++)
            values[i] = round * 1000 + before + i;
        if (split) {
            MPI_Status status;
            MPI_File_write_ordered_begin(file, values, length, MPI_INT);
            MPI_File_write_ordered_end(file, values, &status);
            check_count(&status, 4 * length, "write_ordered");
        } else {
            MPI_File_write_ordered(file, values, length, MPI_INT, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 50 * all; i++) {
        int value = 0;
        MPI_File_read_at(file, i, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(value == i / all * 1000 + i % all, "word %d is %d", i, value);
    }
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (int round = 0; round < 50; round++) {
        if (split) {
            MPI_File_read_ordered_begin(file, back, length, MPI_INT);
            MPI_File_read_ordered_end(file, back, MPI_STATUS_IGNORE);
        } else {
            MPI_File_read_ordered(file, back, length, MPI_INT, MPI_STATUS_IGNORE);
        }
        CHECK(back[0] == round * 1000 + before, "round %d: %d", round, back[0]);
    }
    MPI_File_close(&file);
}

static void split(void) {
    MPI_File file = file_new();
    MPI_Status status;
    int value = rank * 3, back = 0;
    MPI_File_write_at_all_begin(file, rank * 4, &value, 1, MPI_INT);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    int code = MPI_File_write_at_all_begin(file, rank * 4, &value, 1, MPI_INT);
    CHECK(check_class(code) == MPI_ERR_IO, "two at once: class %d", check_class(code));
    code = MPI_File_read_at_all_end(file, &value, &status);
    CHECK(check_class(code) == MPI_ERR_IO, "the wrong end: class %d", check_class(code));
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_File_write_at_all_end(file, &value, &status);
    check_count(&status, 4, "write_at_all_end");
    MPI_File_read_at_all_begin(file, rank * 4, &back, 1, MPI_INT);
    MPI_File_read_at_all_end(file, &back, &status);
    CHECK(back == value, "%d", back);
    MPI_File_seek(file, rank * 4, MPI_SEEK_SET);
    value++;
    MPI_File_write_all_begin(file, &value, 1, MPI_INT);
    MPI_File_write_all_end(file, &value, &status);
    MPI_File_seek(file, rank * 4, MPI_SEEK_SET);
    MPI_File_read_all_begin(file, &back, 1, MPI_INT);
    MPI_File_read_all_end(file, &back, &status);
    CHECK(back == value, "%d", back);
    MPI_File_close(&file);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("pointers");
    individual();
    shared();
    ordered(0);
    ordered(1);
    split();
    MPI_Finalize();
    return 0;
}
