/* Hints by ROMIO's names, of infos and of the environment, and prefixes of names. Whatever is
   hinted, what is read is what was written. */
#include "file.h"

#include <stdlib.h>

static int is_reported(MPI_File file, const char* key, const char* expected) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int known;
    MPI_File_get_info(file, &info);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &known);
    MPI_Info_free(&info);
    return known && strcmp(value, expected) == 0;
}

/* Writes and reads 7-byte records in turn, with a hole behind those of all ranks. */
static void access_records(MPI_File file, int records, int collective) {
    unsigned char written[7 * 100], read[7 * 100] = {0};
    MPI_Datatype record, tile;
    for (int i = 0; i < 7 * records; i++)
        written[i] = (unsigned char)(rank * 50 + i);
    MPI_Type_contiguous(7, MPI_BYTE, &record);
    MPI_Type_create_resized(record, 0, 7 * (size + 1), &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, rank * 7, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    if (collective) {
        MPI_File_write_at_all(file, 0, written, 7 * records, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_read_at_all(file, 0, read, 7 * records, MPI_BYTE, MPI_STATUS_IGNORE);
    } else {
        MPI_File_write_at(file, 0, written, 7 * records, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_read_at(file, 0, read, 7 * records, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    CHECK(memcmp(written, read, 7 * (size_t)records) == 0, "%d records", records);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Type_free(&record);
    MPI_Type_free(&tile);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int other = 0; other < size; other++) {
        const int place = 7 * (size + 1) * (records - 1) + 7 * other + 6;
        CHECK(file_byte(place) == (unsigned char)(other * 50 + 7 * records - 1), "%d",
              file_byte(place));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* More than one sieve of the file, on average. */
static void long_blocks(MPI_File file) {
    enum { length = 100000, blocks = 30 };
    unsigned char* written = malloc(length * blocks);
    unsigned char* read = calloc(length, blocks);
    MPI_Datatype block, tile;
    for (int i = 0; i < length * blocks; i++)
        written[i] = (unsigned char)(i * 7 + i / length + rank);
    MPI_Type_contiguous(length, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)length * (size + 1), &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, (MPI_Offset)rank * length, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_File_write_at(file, 0, written, length * blocks, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 0, read, length * blocks, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(memcmp(written, read, (size_t)length * blocks) == 0, "long blocks");
    MPI_Type_free(&block);
    MPI_Type_free(&tile);
    free(written);
    free(read);
}

static MPI_File open_with(const char* const pairs[][2], int count) {
    MPI_Info info;
    MPI_File file;
    MPI_Info_create(&info);
    for (int i = 0; i < count; i++)
        MPI_Info_set(info, pairs[i][0], pairs[i][1]);
    MPI_File_open(MPI_COMM_WORLD, file_name,
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file);
    MPI_Info_free(&info);
    return file;
}

static void of_an_info(void) {
    const char* const pairs[][2] = {{"romio_cb_read", "enable"},  {"romio_cb_write", "enable"},
                                    {"romio_ds_read", "enable"},  {"romio_ds_write", "enable"},
                                    {"ind_rd_buffer_size", "49"}, {"ind_wr_buffer_size", "50"},
                                    {"cb_buffer_size", "4096"},   {"romio_no_indep_rw", "false"},
                                    {"no_such_hint", "60000"},    {"striping_factor", "4"}};
    MPI_File file = open_with(pairs, 10);
    for (int i = 0; i < 8; i++)
        CHECK(is_reported(file, pairs[i][0], pairs[i][1]), "%s", pairs[i][0]);
    for (int i = 8; i < 10; i++)
        CHECK(!is_reported(file, pairs[i][0], pairs[i][1]), "%s has no effect", pairs[i][0]);
    for (int collective = 0; collective < 2; collective++) {
        access_records(file, 1, collective);
        access_records(file, 100, collective);
    }
    MPI_File_close(&file);
    const char* const large[][2] = {{"ind_rd_buffer_size", "3000000"},
                                    {"ind_wr_buffer_size", "5000000"},
                                    {"romio_ds_read", "enable"},
                                    {"romio_ds_write", "enable"}};
    file = open_with(large, 4);
    for (int i = 0; i < 4; i++)
        CHECK(is_reported(file, large[i][0], large[i][1]), "%s", large[i][0]);
    access_records(file, 100, 0);
    long_blocks(file);
    MPI_File_close(&file);
}

static void no_independent_access(void) {
    const char* const pairs[][2] = {{"romio_no_indep_rw", "true"}};
    MPI_File file = open_with(pairs, 1);
    CHECK(is_reported(file, "romio_no_indep_rw", "true"), "romio_no_indep_rw");
    CHECK(is_reported(file, "romio_cb_write", "enable"), "romio_cb_write");
    access_records(file, 2, 1);
    access_records(file, 100, 0); /* it is allowed all the same */
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "disable");
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
    CHECK(is_reported(file, "romio_no_indep_rw", "false"), "romio_no_indep_rw");
    access_records(file, 100, 1);
    MPI_File_close(&file);
}

/* They count more than those of the program. */
static void of_the_environment(void) {
    char name[200];
    snprintf(name, sizeof name, "%s.hints", file_name);
    if (rank == 0) {
        FILE* hints = fopen(name, "w");
        fputs("romio_cb_read enable\n# a comment\n\nromio_ds_read\nromio_ds_write disable now\n"
              "  ind_rd_buffer_size\t49 \nind_rd_buffer_size 60\nromio_cb_write disable",
              hints);
        fclose(hints);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    setenv("ROMIO_HINTS", name, 1);
    const char* const pairs[][2] = {{"romio_cb_read", "disable"}, {"cb_buffer_size", "8192"}};
    MPI_File file = open_with(pairs, 2);
    CHECK(is_reported(file, "romio_cb_read", "enable"), "romio_cb_read");
    CHECK(is_reported(file, "cb_buffer_size", "8192"), "cb_buffer_size");
    CHECK(is_reported(file, "romio_ds_read", "automatic"), "a key alone");
    CHECK(is_reported(file, "romio_ds_write", "automatic"), "three words");
    CHECK(is_reported(file, "ind_rd_buffer_size", "49"), "ind_rd_buffer_size");
    CHECK(is_reported(file, "romio_cb_write", "disable"), "romio_cb_write");
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_with(pairs, 1); /* no file of hints */
    CHECK(is_reported(file, "romio_cb_read", "disable"), "romio_cb_read");
    MPI_File_close(&file);
    unsetenv("ROMIO_HINTS");
}

static void check_unreachable(const char* name, const char* kind) {
    MPI_File file;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    int code =
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(check_class(code) == MPI_ERR_IO, "%s: class %d", name, check_class(code));
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, kind) != NULL, "%s", text);
    CHECK(access(name, F_OK) != 0, "%s was made", name);
}

static void prefixes(void) {
    char name[200];
    MPI_File file;
    for (int known = 0; known < 2; known++) {
        snprintf(name, sizeof name, "%s:%s", known ? "lustre" : "no_such_kind", file_name);
        MPI_File_open(MPI_COMM_WORLD, name,
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file);
        CHECK(access(known ? file_name : name, F_OK) == 0, "%s", name);
        MPI_File_close(&file);
    }
    snprintf(name, sizeof name, "daos:%s", file_name);
    check_unreachable(name, "\"daos:\"");
    CHECK(check_class(MPI_File_delete(name, MPI_INFO_NULL)) == MPI_ERR_IO, "deleting %s", name);
    setenv("ROMIO_FSTYPE_FORCE", "quobyte:", 1);
    check_unreachable(file_name, "\"quobyte:\"");
    setenv("ROMIO_FSTYPE_FORCE", "ufs:", 1);
    file = file_new();
    MPI_File_close(&file);
    unsetenv("ROMIO_FSTYPE_FORCE");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("hints");
    of_an_info();
    no_independent_access();
    of_the_environment();
    prefixes();
    MPI_Finalize();
    return 0;
}
