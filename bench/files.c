/*
 * Files: what all ranks together read and write, in MB/s, and single calls in us. The file's pages
 * are in the cache; nothing is synchronised.
 *
 *   --folder DIR      where the file is made (.)
 *   --bytes SIZE      of each rank's data where calls are long (8M)
 *
 * "own": each rank a block of its own; "inter": records of 64 B, 4 KiB and 64 KiB, one of each rank
 * in turn; "matrix": 1,024 × 1,024 doubles over a grid of ranks. What is read is compared with what
 * was written.
 */
#include "bench.h"

typedef struct {
    MPI_File file;
    MPI_Offset offset; /* of this rank's data, in etypes */
    MPI_Datatype type;
    char* data;
    int count;
    const char* name;
} Game;

static void write_at(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++)
        MPI_File_write_at(game->file, game->offset, game->data, game->count, game->type,
                          MPI_STATUS_IGNORE);
}

static void read_at(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++)
        MPI_File_read_at(game->file, game->offset, game->data, game->count, game->type,
                         MPI_STATUS_IGNORE);
}

static void write_at_all(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++)
        MPI_File_write_at_all(game->file, game->offset, game->data, game->count, game->type,
                              MPI_STATUS_IGNORE);
}

static void read_at_all(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++)
        MPI_File_read_at_all(game->file, game->offset, game->data, game->count, game->type,
                             MPI_STATUS_IGNORE);
}

static void iwrite_at(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++) {
        MPI_Request request;
        MPI_File_iwrite_at(game->file, game->offset, game->data, game->count, game->type, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void write_shared(void* state, int repetitions) {
    Game* game = state;
    MPI_File_seek_shared(game->file, 0, MPI_SEEK_SET);
    for (int i = 0; i < repetitions; i++)
        MPI_File_write_shared(game->file, game->data, game->count, game->type, MPI_STATUS_IGNORE);
}

static void write_ordered(void* state, int repetitions) {
    Game* game = state;
    MPI_File_seek_shared(game->file, 0, MPI_SEEK_SET);
    for (int i = 0; i < repetitions; i++)
        MPI_File_write_ordered(game->file, game->data, game->count, game->type, MPI_STATUS_IGNORE);
}

static void open_and_close(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++) {
        MPI_File file;
        MPI_File_open(MPI_COMM_WORLD, game->name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &file);
        MPI_File_close(&file);
    }
}

static void measure(Bench* bench, Game* game, const char* figure, BenchWork work, double bytes) {
    BenchTimes times = bench_measure(bench, work, game, bench_span);
    if (bytes > 0)
        bench_report_times(bench, figure, "", (size_t)bytes, "MB/s", &times,
                           bytes * bench->ranks * 1e-6, true, "");
    else
        bench_report_times(bench, figure, "", 64, "us", &times, 1e6, false, "");
}

static void check(Bench* bench, const Game* game, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 509)
        if (game->data[i] != (char)(bench->rank + 1))
            bench_die(bench, "what was read is not what was written", "");
}

static void read_back(Bench* bench, Game* game, const char* figure, BenchWork work, size_t bytes) {
    memset(game->data, 0, bytes);
    measure(bench, game, figure, work, (double)bytes);
    check(bench, game, bytes);
}

static void own_blocks(Bench* bench, Game* game, size_t bytes) {
    game->offset = (MPI_Offset)bytes * bench->rank;
    game->type = MPI_BYTE;
    game->count = (int)bytes;
    measure(bench, game, "own write", write_at, (double)bytes);
    read_back(bench, game, "own read", read_at, bytes);
    measure(bench, game, "own write_all", write_at_all, (double)bytes);
    read_back(bench, game, "own read_all", read_at_all, bytes);
}

static void interleaved(Bench* bench, Game* game, size_t bytes) {
    const int records[] = {64, 4096, 65536};
    const char* names[] = {"64", "4K", "64K"};
    for (int i = 0; i < 3; i++) {
        const size_t all = i == 0 ? bytes / 8 : bytes;
        char figure[40];
        MPI_Datatype one, tile;
        MPI_Type_contiguous(records[i], MPI_BYTE, &one);
        MPI_Type_create_resized(one, 0, (MPI_Aint)records[i] * bench->ranks, &tile);
        MPI_Type_commit(&tile);
        MPI_File_set_view(game->file, (MPI_Offset)bench->rank * records[i], MPI_BYTE, tile,
                          "native", MPI_INFO_NULL);
        game->offset = 0;
        game->count = (int)all;
        snprintf(figure, sizeof figure, "inter %s write_all", names[i]);
        measure(bench, game, figure, write_at_all, (double)all);
        snprintf(figure, sizeof figure, "inter %s read_all", names[i]);
        read_back(bench, game, figure, read_at_all, all);
        snprintf(figure, sizeof figure, "inter %s write", names[i]);
        measure(bench, game, figure, write_at, (double)all);
        snprintf(figure, sizeof figure, "inter %s read", names[i]);
        read_back(bench, game, figure, read_at, all);
        MPI_File_set_view(game->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
        MPI_Type_free(&one);
        MPI_Type_free(&tile);
    }
}

static void matrix(Bench* bench, Game* game) {
    int grid[2] = {0, 0}, sizes[2] = {1024, 1024}, part[2], start[2];
    MPI_Dims_create(bench->ranks, 2, grid);
    for (int i = 0; i < 2; i++)
        part[i] = sizes[i] / grid[i];
    start[0] = bench->rank / grid[1] * part[0];
    start[1] = bench->rank % grid[1] * part[1];
    MPI_Datatype block;
    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &block);
    MPI_Type_commit(&block);
    MPI_File_set_view(game->file, 0, MPI_DOUBLE, block, "native", MPI_INFO_NULL);
    game->offset = 0;
    game->type = MPI_DOUBLE;
    game->count = part[0] * part[1];
    measure(bench, game, "matrix write_all", write_at_all, 8.0 * game->count);
    read_back(bench, game, "matrix read_all", read_at_all, 8 * (size_t)game->count);
    MPI_File_set_view(game->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Type_free(&block);
}

static void single_calls(Bench* bench, Game* game) {
    game->offset = bench->rank * 64;
    game->type = MPI_BYTE;
    game->count = 64;
    measure(bench, game, "write_at", write_at, 0);
    measure(bench, game, "read_at", read_at, 0);
    measure(bench, game, "write_at_all", write_at_all, 0);
    measure(bench, game, "iwrite_at", iwrite_at, 0);
    measure(bench, game, "write_shared", write_shared, 0);
    measure(bench, game, "write_ordered", write_ordered, 0);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    Game game = {0};
    char name[512];
    bench_start(&bench, "files", argc, argv);
    const char* folder = bench_option(&bench, "--folder", ".");
    const size_t bytes = (size_t)bench_number(&bench, "--bytes", "8388608");
    bench_check_options(&bench);
    snprintf(name, sizeof name, "%s/bench_files", folder);
    game.name = name;
    game.data = bench_buffer(&bench, bytes > 8 << 20 ? bytes : 8 << 20);
    memset(game.data, bench.rank + 1, bytes > 8 << 20 ? bytes : 8 << 20);
    measure(&bench, &game, "open and close", open_and_close, 0);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &game.file);
    own_blocks(&bench, &game, bytes);
    interleaved(&bench, &game, bytes);
    matrix(&bench, &game);
    single_calls(&bench, &game);
    MPI_File_close(&game.file);
    MPI_Finalize();
    return 0;
}
