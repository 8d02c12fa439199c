/* Views: holes, resized and nested filetypes, what is refused; accesses by offset and by the
   individual pointer, of memory with and without gaps, beyond 4 GiB. */
#include "file.h"

/* Blocks of `block` bytes, one for each rank in turn. */
static void interleaved(int block, int blocks, int collective) {
    MPI_File file = file_new();
    MPI_Datatype one, tile;
    MPI_Type_contiguous(block, MPI_BYTE, &one);
    MPI_Type_create_resized(one, 0, (MPI_Aint)block * size, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, (MPI_Offset)block * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&one);
    MPI_Type_free(&tile); /* the view keeps it */
    int bytes = block * blocks;
    unsigned char* data = check_buffer((size_t)bytes);
    unsigned char* back = check_buffer((size_t)bytes);
    MPI_Status status;
    check_fill(data, (size_t)bytes, (unsigned)rank);
    if (collective)
        MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, &status);
    else
        MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, &status);
    check_count(&status, bytes, "write");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < blocks; i += blocks / 7 + 1)
        for (int r = 0; r < size; r++)
            CHECK(file_byte(((long)i * size + r) * block) ==
                      check_byte((unsigned)r, (size_t)i * (size_t)block),
                  "block %d of rank %d", i, r);
    memset(back, 0, (size_t)bytes);
    if (collective)
        MPI_File_read_at_all(file, 0, back, bytes, MPI_BYTE, &status);
    else
        MPI_File_read_at(file, 0, back, bytes, MPI_BYTE, &status);
    check_count(&status, bytes, "read");
    check_pattern(back, (size_t)bytes, (unsigned)rank, "read");
    /* From the middle of a block on, and behind the end of the file. */
    if (bytes > 10) {
        MPI_File_read_at(file, block / 2 + 1, back, bytes, MPI_BYTE, &status);
        check_count(&status, bytes - block / 2 - 1, "read to the end");
        CHECK(memcmp(back, data + block / 2 + 1, (size_t)(bytes - block / 2 - 1)) == 0, "-");
    }
    MPI_File_close(&file);
    free(data);
    free(back);
}

static void memory_with_gaps(void) {
    enum { words = 30000 };
    MPI_File file = file_new();
    MPI_Datatype every_other;
    MPI_Type_vector(words, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    int* data = malloc(2 * words * sizeof(int));
    int* back = calloc(2 * words, sizeof(int));
    for (int i = 0; i < 2 * words; i++)
        data[i] = i * 7 + rank;
    MPI_Offset begin = (MPI_Offset)rank * words * 4;
    MPI_Status status;
    MPI_File_write_at(file, begin, data, 1, every_other, &status);
    check_count(&status, words * 4, "write");
    MPI_File_read_at(file, begin, back, words, MPI_INT, &status);
    for (int i = 0; i < words; i++)
        CHECK(back[i] == data[2 * i], "word %d", i);
    memset(back, 0xff, 2 * words * sizeof(int));
    MPI_File_read_at_all(file, begin, back, 1, every_other, &status);
    for (int i = 0; i < 2 * words - 1; i++)
        CHECK(back[i] == (i % 2 ? -1 : data[i]), "word %d", i);
    MPI_Type_free(&every_other);
    MPI_File_close(&file);
    free(data);
    free(back);
}

static void subarrays(int collective) {
    /* Columns of a matrix, rows of memory. */
    const int rows = 123;
    int sizes[2] = {rows, 10 * size}, part[2] = {rows, 10}, start[2] = {0, 10 * rank};
    MPI_Datatype columns;
    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    MPI_File file = file_new();
    MPI_File_set_view(file, 64, MPI_DOUBLE, columns, "native", MPI_INFO_NULL);
    double* data = malloc(sizeof(double) * (size_t)rows * 10);
    for (int i = 0; i < rows * 10; i++)
        data[i] = rank * 1000000 + i;
    if (collective)
        MPI_File_write_all(file, data, rows * 10, MPI_DOUBLE, MPI_STATUS_IGNORE);
    else
        MPI_File_write(file, data, rows * 10, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_Offset at;
    MPI_File_get_position(file, &at);
    CHECK(at == rows * 10, "%lld", (long long)at);
    MPI_File_get_byte_offset(file, 25, &at);
    CHECK(at == 64 + 8 * (2 * 10 * size + 10 * rank + 5), "%lld", (long long)at);
    MPI_File_set_view(file, 64, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
    double* all = malloc(sizeof(double) * (size_t)rows * 10 * (size_t)size);
    MPI_Status status;
    MPI_File_read_at_all(file, 0, all, rows * 10 * size, MPI_DOUBLE, &status);
    check_count(&status, rows * 10 * size * 8, "matrix");
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 10 * size; j++)
            CHECK(all[i * 10 * size + j] == j / 10 * 1000000 + i * 10 + j % 10, "(%d, %d)", i, j);
    MPI_Type_free(&columns);
    MPI_File_close(&file);
    free(data);
    free(all);
}

/* Holes that must keep what the file has, while others write into them. */
static void holes(int collective) {
    enum { records = 3000 };
    MPI_File file = file_new();
    for (int i = rank; i < records; i += size)
        MPI_File_write_at(file, i * 24L, "abcdefghijklmnopqrstuvwx", 24, MPI_CHAR,
                          MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Datatype one, tile;
    MPI_Type_contiguous(3, MPI_CHAR, &one);
    MPI_Type_create_resized(one, 0, 24, &tile);
    MPI_Type_commit(&tile);
    /* The first ranks write a field each; the last one writes its bytes one by one. */
    int fields = size < 7 ? size : 7;
    if (rank < fields || collective) {
        MPI_File_set_view(file, 1 + 3 * (rank % 7), MPI_CHAR, tile, "native", MPI_INFO_NULL);
    } else {
        MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL);
    }
    char* data = malloc(3 * records);
    memset(data, '0' + rank % 7, 3 * records);
    int bytes = rank < fields ? 3 * records : 0;
    if (collective)
        MPI_File_write_at_all(file, 0, data, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    else
        MPI_File_write_at(file, 0, data, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL);
    char record[24];
    for (int i = rank; i < records; i += size) {
        MPI_File_read_at(file, i * 24L, record, 24, MPI_CHAR, MPI_STATUS_IGNORE);
        for (int j = 0; j < 24; j++) {
            int field = j == 0 ? -1 : (j - 1) / 3;
            char expected = (char)(field >= 0 && field < fields ? '0' + field : 'a' + j);
            CHECK(record[j] == expected, "byte %d of record %d is %c, not %c", j, i, record[j],
                  expected);
        }
    }
    MPI_Type_free(&one);
    MPI_Type_free(&tile);
    MPI_File_close(&file);
    free(data);
}

/* A plain writer between records that another one sieves. */
static void neighbours(void) {
    enum { records = 20000 };
    if (size < 2)
        return;
    MPI_File file = file_new();
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_CHAR, 0, 2, &tile);
    MPI_Type_commit(&tile);
    if (rank == 1)
        for (int i = 0; i < 2000; i++)
            MPI_File_write_at(file, 2 * i + 1, "b", 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File alone;
    if (rank == 0) { /* through another handle */
        MPI_File_open(MPI_COMM_SELF, file_name, MPI_MODE_RDWR, MPI_INFO_NULL, &alone);
        MPI_File_set_view(alone, 0, MPI_CHAR, tile, "native", MPI_INFO_NULL);
        char* data = malloc(records);
        memset(data, 'a', records);
        for (int i = 0; i < 30; i++)
            MPI_File_write_at(alone, 0, data, records, MPI_CHAR, MPI_STATUS_IGNORE);
        free(data);
        MPI_File_close(&alone);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < 4000; i++)
        CHECK(file_byte(i) == (i % 2 ? 'b' : 'a'), "byte %d was lost: %d", i, file_byte(i));
    MPI_Type_free(&tile);
    MPI_File_close(&file);
}

static void views_that_are_refused(void) {
    MPI_File file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_Datatype type;
    const struct {
        int lengths[2];
        int places[2];
        const char* what;
    } wrong[] = {{{2, 2}, {4, 1}, "falling displacements"},
                 {{2, 2}, {0, 1}, "overlap"},
                 {{1, 1}, {-1, 2}, "negative displacements"}};
    for (int i = 0; i < 3; i++) {
        MPI_Type_indexed(2, wrong[i].lengths, wrong[i].places, MPI_INT, &type);
        MPI_Type_commit(&type);
        int code = MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
        CHECK(check_class(code) == MPI_ERR_IO, "%s: class %d", wrong[i].what, check_class(code));
        MPI_Type_free(&type);
    }
    int code = MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_TYPE, "half an etype: class %d", check_class(code));
    code = MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_ARG, "class %d", check_class(code));
    code = MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "foreign", MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_UNSUPPORTED_DATAREP, "class %d", check_class(code));
    code = MPI_File_read_at(file, -1, &code, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_ARG, "class %d", check_class(code));
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    code = MPI_File_read_at(file, 0, &code, 3, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_IO, "part of an etype: class %d", check_class(code));
    MPI_File_close(&file);
}

static void the_view_that_is_set(void) {
    MPI_File file = file_new();
    MPI_Datatype vector, etype, filetype;
    MPI_Type_vector(3, 2, 5, MPI_SHORT, &vector);
    MPI_Type_commit(&vector);
    MPI_File_set_view(file, 17, MPI_SHORT, vector, "native", MPI_INFO_NULL);
    MPI_Type_free(&vector);
    MPI_Offset displacement;
    char representation[MPI_MAX_DATAREP_STRING];
    MPI_File_get_view(file, &displacement, &etype, &filetype, representation);
    CHECK(displacement == 17 && etype == MPI_SHORT && strcmp(representation, "native") == 0, "-");
    MPI_Count bytes;
    MPI_Type_size_c(filetype, &bytes);
    CHECK(bytes == 12, "%lld", (long long)bytes);
    MPI_Type_free(&filetype);
    MPI_File_close(&file);
}

/* A sparse file: offsets beyond 4 GiB. */
static void far_away(void) {
    MPI_File file = file_new();
    MPI_Offset far = ((MPI_Offset)9 << 30) + rank * 8;
    int64_t value = far * 3, back = 0;
    MPI_File_write_at(file, far, &value, 1, MPI_INT64_T, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, far, &back, 1, MPI_INT64_T, MPI_STATUS_IGNORE);
    CHECK(back == value, "-");
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_INT64_T, 0, (MPI_Aint)3 << 30, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, rank * 8, MPI_INT64_T, tile, "native", MPI_INFO_NULL);
    int64_t values[3];
    MPI_File_read_at_all(file, 1, values, 3, MPI_INT64_T, MPI_STATUS_IGNORE);
    CHECK(values[2] == value, "%lld", (long long)values[2]);
    MPI_Type_free(&tile);
    MPI_File_close(&file);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("views");
    const int blocks[] = {1, 8, 61, 512, 4096, 40000, 300000};
    for (int i = 0; i < 7; i++)
        for (int collective = 0; collective < 2; collective++)
            interleaved(blocks[i], blocks[i] < 4096 ? 20000 / blocks[i] + 3 : 9, collective);
    interleaved(64, 30000, 1); /* several rounds */
    memory_with_gaps();
    for (int collective = 0; collective < 2; collective++) {
        subarrays(collective);
        holes(collective);
    }
    neighbours();
    views_that_are_refused();
    the_view_that_is_set();
    far_away();
    MPI_Finalize();
    return 0;
}
