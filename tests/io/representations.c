/* external32, internal and registered data representations. */
#include "file.h"

#include <stdint.h>

static void external32(void) {
    MPI_File file = file_new();
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
    int value = 0x01020304 + rank, back = 0;
    MPI_File_write_at_all(file, rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(file_byte(4 * rank) == 1 && file_byte(4 * rank + 3) == 4 + rank, "byte order");
    MPI_Status status;
    MPI_File_read_at(file, rank, &back, 1, MPI_INT, &status);
    check_count(&status, 4, "read");
    CHECK(back == value, "%x", back);
    /* 8 bytes here, 4 there: offsets count etypes. */
    long numbers[10], read[10];
    MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
    MPI_Aint extent;
    MPI_File_get_type_extent(file, MPI_LONG, &extent);
    CHECK(extent == 4, "%ld", (long)extent);
    for (int i = 0; i < 10; i++)
        numbers[i] = -i - rank * 100;
    MPI_File_write_at(file, 10 * rank, numbers, 10, MPI_LONG, &status);
    check_count(&status, 80, "write");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 10 * rank, read, 10, MPI_LONG, MPI_STATUS_IGNORE);
    CHECK(memcmp(read, numbers, sizeof read) == 0, "-");
    /* Every other number of a vector of them. */
    MPI_Datatype vector;
    MPI_Type_vector(5, 1, 2, MPI_LONG, &vector);
    MPI_Type_commit(&vector);
    MPI_File_set_view(file, 40 * rank, MPI_LONG, vector, "external32", MPI_INFO_NULL);
    MPI_File_read_at(file, 0, read, 5, MPI_LONG, &status);
    check_count(&status, 40, "read");
    for (int i = 0; i < 5; i++)
        CHECK(read[i] == numbers[2 * i], "%ld", read[i]);
    /* More than the file has: whole items. */
    MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
    MPI_File_read_at(file, 10 * size - 1, read, 10, MPI_LONG, &status);
    check_count(&status, 8, "read to the end");
    MPI_Type_free(&vector);
    /* The file ends within an element of memory: its numbers that are there are read. */
    MPI_Datatype items[2] = {MPI_SHORT, MPI_LONG}, many;
    const int lengths[2] = {3, 5};
    const MPI_Aint places[2] = {0, 8};
    struct {
        short shorts[3];
        long longs[5];
    } in = {{-1, 2, -3}, {4, -5, 6, 7, 8}}, out;
    MPI_Type_create_struct(2, lengths, places, items, &many);
    MPI_Type_commit(&many);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL);
    MPI_File_write_at(file, 26 * rank, &in, 1, many, &status);
    check_count(&status, 46, "write of a structure");
    MPI_File_sync(file);
    MPI_File_set_size(file, 26 * (MPI_Offset)size - 5);
    for (int collective = 0; collective < 2; collective++) {
        memset(&out, 0x55, sizeof out);
        (collective ? MPI_File_read_at_all : MPI_File_read_at)(file, 26 * (size - 1), &out, 1, many,
                                                               &status);
        check_count(&status, 6 + 3 * 8, "read into a structure");
        CHECK(memcmp(in.shorts, out.shorts, 6) == 0 && memcmp(in.longs, out.longs, 24) == 0, "-");
        CHECK(out.longs[3] == 0x5555555555555555, "%lx is not in the file", out.longs[3]);
    }
    MPI_Type_free(&many);
    MPI_File_close(&file);
}

/* Ints as digits: five characters each. */
enum { digits = 5 };
static int calls;

static int to_digits(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position,
                     void* state) {
    (void)type;
    CHECK(state == &calls, "extra state");
    calls++;
    for (int i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%05d", ((int*)user)[position + i]);
        memcpy((char*)file + i * digits, text, digits);
    }
    return MPI_SUCCESS;
}

static int from_digits(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position,
                       void* state) {
    MPI_Aint lower_bound, extent = -1;
    CHECK(MPI_Type_get_extent(type, &lower_bound, &extent) == MPI_SUCCESS && extent == 4, "%ld",
          (long)extent);
    (void)state;
    for (int i = 0; i < count; i++) {
        char text[digits + 1] = {0};
        memcpy(text, (char*)file + i * digits, digits);
        ((int*)user)[position + i] = atoi(text);
    }
    return MPI_SUCCESS;
}

static int failing(void* user, MPI_Datatype type, MPI_Count count, void* file, MPI_Offset position,
                   void* state) {
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)state;
    return MPI_ERR_OTHER;
}

static int extent_of_digits(MPI_Datatype type, MPI_Aint* extent, void* state) {
    (void)type;
    (void)state;
    *extent = digits;
    return MPI_SUCCESS;
}

#ifndef MPI_CONVERSION_FN_NULL_C /* of Open MPI */
#define MPI_CONVERSION_FN_NULL_C NULL
#endif

/* Four bytes of an int every eight. */
static int extent_of_spaced(MPI_Datatype type, MPI_Aint* extent, void* state) {
    (void)state;
    *extent = type == MPI_INT ? 8 : 1;
    return MPI_SUCCESS;
}

#ifndef MPI_CONVERSION_FN_NULL /* of Open MPI */
#define MPI_CONVERSION_FN_NULL NULL
#endif

static void without_functions(void) {
    MPI_Register_datarep("spaced", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of_spaced,
                         NULL);
    MPI_Register_datarep("read only", from_digits, MPI_CONVERSION_FN_NULL, extent_of_digits, NULL);
    MPI_File file = file_new();
    MPI_Aint extent = -1;
    MPI_Offset at = -1;
    MPI_Status status;
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "spaced", MPI_INFO_NULL);
    MPI_File_get_type_extent(file, MPI_INT, &extent);
    CHECK(extent == 8, "%ld", (long)extent);
    int values[3] = {0x11111101, 0x22222202, 0x33333300 + rank}, back[3] = {0, 0, 0};
    MPI_File_seek(file, 3 * rank, MPI_SEEK_SET);
    MPI_File_write_all(file, values, 3, MPI_INT, &status);
    check_count(&status, 12, "spaced write");
    MPI_File_get_position(file, &at);
    CHECK(at == 3 * rank + 3, "%lld", (long long)at);
    MPI_File_get_byte_offset(file, at, &at);
    CHECK(at == 24 * (rank + 1), "%lld", (long long)at);
    MPI_File_read_at(file, 3 * rank, back, 3, MPI_INT, &status);
    check_count(&status, 12, "spaced read");
    CHECK(memcmp(values, back, sizeof back) == 0, "%x %x %x", back[0], back[1], back[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(file_byte(24 * rank + 11) == 0x22 && file_byte(24 * rank + 12) == 0, "-");
    /* One function alone: data of other sizes goes no other way. */
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "read only", MPI_INFO_NULL);
    for (int collective = 0; collective < 2; collective++) {
        int code = collective ? MPI_File_write_all(file, values, 3, MPI_INT, MPI_STATUS_IGNORE)
                              : MPI_File_write(file, values, 3, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(check_class(code) == MPI_ERR_CONVERSION, "class %d", check_class(code));
    }
    MPI_File_get_position(file, &at);
    CHECK(at == 0, "%lld", (long long)at);
    MPI_File_close(&file);
}

static MPI_Aint huge;

static int extent_of_huge(MPI_Datatype type, MPI_Aint* extent, void* state) {
    (void)type, (void)state;
    *extent = huge;
    return MPI_SUCCESS;
}

static int unexpected(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position,
                      void* state) {
    (void)user, (void)type, (void)file, (void)position, (void)state;
    CHECK(0, "a conversion of %d elements", count);
    return MPI_SUCCESS;
}

/* Elements of memory that have more bytes in the file than 64 bits count. */
static void huge_elements(void) {
    MPI_Register_datarep("huge", unexpected, unexpected, extent_of_huge, NULL);
    const int lengths[2] = {4, 4};
    const MPI_Aint places[2] = {0, 16};
    const MPI_Datatype parts[2] = {MPI_INT, MPI_FLOAT};
    MPI_Datatype types[2];
    MPI_Type_contiguous(8, MPI_INT, &types[0]);
    MPI_Type_create_struct(2, lengths, places, parts, &types[1]);
    MPI_File file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    huge = 1;
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "huge", MPI_INFO_NULL);
    for (int i = 0; i < 4; i++) {
        const int data[8] = {0};
        huge = i < 2 ? (MPI_Aint)1 << 61 : ((MPI_Aint)1 << 62) + 8;
        if (i < 2)
            MPI_Type_commit(&types[i]);
        const int code = MPI_File_write_at(file, 0, data, 1, types[i % 2], MPI_STATUS_IGNORE);
        CHECK(check_class(code) == MPI_ERR_VALUE_TOO_LARGE, "type %d: class %d", i % 2,
              check_class(code));
    }
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
    MPI_File_close(&file);
}

/* Ranks that want other representations, of as large numbers: an error at all. */
static void differing(void) {
    static const char* const names[] = {"native", "internal", "external32", "spaced"};
    MPI_File file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    for (int other = 1; other < 4 && size > 1; other++) {
        const char* name = names[rank == size - 1 ? other : 0];
        const int code = MPI_File_set_view(file, 8, MPI_INT, MPI_INT, name, MPI_INFO_NULL);
        CHECK(check_class(code) == MPI_ERR_NOT_SAME, "%s: class %d", name, check_class(code));
    }
    MPI_Offset at = -1;
    MPI_File_get_byte_offset(file, 0, &at);
    CHECK(at == 0, "the view has changed: %lld", (long long)at);
    CHECK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS,
          "-");
    MPI_File_close(&file);
}

static void registered(void) {
    CHECK(MPI_Register_datarep("digits", from_digits, to_digits, extent_of_digits, &calls) ==
              MPI_SUCCESS,
          "-");
    int code = MPI_Register_datarep("digits", from_digits, to_digits, extent_of_digits, NULL);
    CHECK(check_class(code) == MPI_ERR_DUP_DATAREP, "class %d", check_class(code));
    code = MPI_Register_datarep("native", NULL, NULL, extent_of_digits, NULL);
    CHECK(check_class(code) == MPI_ERR_DUP_DATAREP, "class %d", check_class(code));
    MPI_Register_datarep_c("failing", MPI_CONVERSION_FN_NULL_C, failing, extent_of_digits, NULL);
    MPI_File file = file_new();
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "digits", MPI_INFO_NULL);
    int values[3] = {rank, 123, 4567}, back[3] = {0, 0, 0};
    MPI_Request request;
    MPI_File_write_at(file, 3 * rank, values, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, 3 * rank, back, 3, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(memcmp(values, back, sizeof back) == 0, "%d %d %d", back[0], back[1], back[2]);
    CHECK(file_byte(15 * rank + 9) == '3' && file_byte(15 * rank + 10) == '0', "-");
    CHECK(calls == 1, "%d", calls);
    /* The function can use the datatype, which the program has freed meanwhile. */
    MPI_Datatype one;
    MPI_Type_contiguous(1, MPI_INT, &one);
    MPI_Type_commit(&one);
    memset(back, 0, sizeof back);
    MPI_File_iread_at(file, 3 * rank, back, 3, one, &request);
    MPI_Type_free(&one);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(memcmp(values, back, sizeof back) == 0, "%d %d %d", back[0], back[1], back[2]);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "failing", MPI_INFO_NULL);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    code = MPI_File_write_at_all(file, 3 * rank, values, 3, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_CONVERSION, "class %d", check_class(code));
    MPI_File_close(&file);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("representations");
    external32();
    registered();
    without_functions();
    huge_elements();
    differing();
    MPI_Finalize();
    return 0;
}
