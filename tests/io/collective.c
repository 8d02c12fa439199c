/* Collective accesses: ranks with much, little and nothing; the end of the file; atomic mode. */
#include "file.h"

/* Rank r has every size-th record of `length` bytes, but some ranks have none, or fewer. */
static void uneven(int length, int records, int with_gaps) {
    MPI_File file = file_new();
    MPI_Datatype one, tile, memory;
    MPI_Type_contiguous(length, MPI_BYTE, &one);
    MPI_Type_create_resized(one, 0, (MPI_Aint)length * size, &tile);
    MPI_Type_create_resized(one, 0, length + 3, &memory);
    MPI_Type_commit(&one);
    MPI_Type_commit(&tile);
    MPI_Type_commit(&memory);
    MPI_File_set_view(file, rank * length, one, tile, "native", MPI_INFO_NULL);
    int mine = rank % 3 == 2 ? 0 : records / (rank % 2 + 1);
    int distance = with_gaps ? length + 3 : length;
    size_t bytes = (size_t)distance * (size_t)records;
    unsigned char* data = check_buffer(bytes);
    unsigned char* back = check_buffer(bytes);
    check_fill(data, bytes, (unsigned)rank + 5);
    MPI_Status status;
    MPI_File_write_all(file, data, mine, with_gaps ? memory : one, &status);
    check_count(&status, mine * length, "write_all");
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    memset(back, 0, bytes);
    /* More than there is: the file's end may lie within what another rank has. */
    MPI_File_read_all(file, back, records, with_gaps ? memory : one, &status);
    int got = 0;
    MPI_Get_count(&status, MPI_BYTE, &got);
    CHECK(got >= mine * length, "%d bytes of %d were read", got, mine * length);
    for (int i = 0; i < mine; i++)
        CHECK(memcmp(back + i * distance, data + i * distance, (size_t)length) == 0, "record %d",
              i);
    MPI_Type_free(&one);
    MPI_Type_free(&tile);
    MPI_Type_free(&memory);
    MPI_File_close(&file);
    free(data);
    free(back);
}

/* The file ends in the middle of a window. */
static void end_of_file(void) {
    enum { words = 5000 };
    MPI_File file = file_new();
    MPI_File_set_size(file, (MPI_Offset)words * 4 * size / 2);
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_INT, 0, 4 * size, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, rank * 4, MPI_INT, tile, "native", MPI_INFO_NULL);
    int* back = malloc(words * sizeof(int));
    memset(back, 0xff, words * sizeof(int));
    MPI_Status status;
    MPI_File_read_at_all(file, 0, back, words, MPI_INT, &status);
    check_count(&status, words / 2 * 4, "read to the end");
    CHECK(back[words / 2 - 1] == 0 && back[words / 2] == -1, "%d %d", back[words / 2 - 1],
          back[words / 2]);
    MPI_Type_free(&tile);
    MPI_File_close(&file);
    free(back);
}

/* A staged write with holes beyond the end of the file. */
static void new_file_with_holes(void) {
    enum { records = 9000 };
    MPI_File file = file_new();
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_SHORT, 0, 2 * size + 1, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, 3 + rank * 2, MPI_SHORT, tile, "native", MPI_INFO_NULL);
    short* data = malloc(records * sizeof(short));
    for (int i = 0; i < records; i++)
        data[i] = (short)(i * 3 + rank + 1);
    MPI_File_write_at_all(file, 0, data, records, MPI_SHORT, MPI_STATUS_IGNORE);
    MPI_Offset bytes;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 3 + (MPI_Offset)(records - 1) * (2 * size + 1) + 2 * size, "%lld",
          (long long)bytes);
    for (int i = rank; i < records - 1; i += 97) {
        int hole = file_byte(3 + (long)i * (2 * size + 1) + 2 * size);
        CHECK(hole == 0, "hole %d is %d", i, hole);
    }
    short* back = malloc(records * sizeof(short));
    MPI_File_read_at(file, 0, back, records, MPI_SHORT, MPI_STATUS_IGNORE);
    CHECK(memcmp(back, data, records * sizeof(short)) == 0, "-");
    MPI_Type_free(&tile);
    MPI_File_close(&file);
    free(data);
    free(back);
}

/* All write the same record, and read it: whole ones only. */
static void atomic_mode(void) {
    enum { bytes = 20000, rounds = 50 };
    MPI_File file = file_new();
    MPI_File_set_atomicity(file, 1);
    char* data = malloc(bytes);
    for (int view = 0; view < 2; view++) {
        MPI_Datatype tile;
        MPI_Type_create_resized(MPI_CHAR, 0, view + 1, &tile);
        MPI_Type_commit(&tile);
        MPI_File_set_view(file, 0, MPI_CHAR, tile, "native", MPI_INFO_NULL);
        for (int i = 0; i < rounds; i++) {
            memset(data, 'a' + (rank + i) % 26, bytes);
            MPI_File_write_at(file, 0, data, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
            MPI_File_read_at(file, 0, data, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
            for (int j = 1; j < bytes; j++)
                CHECK(data[j] == data[0], "byte %d is %c, not %c", j, data[j], data[0]);
        }
        MPI_Type_free(&tile);
    }
    MPI_File_close(&file);
    free(data);
}

static void errors_of_one(void) {
    MPI_File file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    char byte = 0;
    int code = MPI_File_write_at_all(file, rank == size - 1 ? -1 : rank, &byte, 1, MPI_CHAR,
                                     MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_ARG, "class %d", check_class(code));
    code = MPI_File_write_at_all(file, rank, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    CHECK(code == MPI_SUCCESS, "the file is of no use after an error");
    MPI_File_close(&file);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("collective");
    uneven(5, 20000, 0);
    uneven(64, 3000, 0);
    uneven(64, 40000, 1);
    uneven(1000, 2000, 1);
    end_of_file();
    new_file_with_holes();
    atomic_mode();
    errors_of_one();
    MPI_Finalize();
    return 0;
}
