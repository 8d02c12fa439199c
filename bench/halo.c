/*
 * Halo exchange: two ranks exchange the faces of a three-dimensional array of doubles by subarray
 * types, as programs on grids do, and as Gerofi et al. measured it (cube, and arrays long in x, y
 * and z of the same size). x is the fastest dimension, so a face across
 *   z (x-y plane)  is contiguous,
 *   y (x-z plane)  is a row of x in every plane,
 *   x (y-z plane)  is a single double in every row.
 *
 * The array's outermost planes are its halo. In every direction each rank sends both of its inner
 * faces to the other, which receives them in its halos (a periodic ring of two): the time per face
 * is half the time of an exchange. After each measurement all doubles of both halos are compared
 * with what the other rank's faces hold, and both own faces with what they were.
 *
 *   --edge 512        the cube's edge; the long arrays are (32 x edge) x (edge / 4) x (edge / 8)
 *   --depth 1         planes of a halo
 *   --shapes cube,long-x,long-y,long-z
 */
#include "bench.h"

enum { dimensions = 3, sides = 2 };

typedef struct {
    const char* name;
    int size[dimensions]; /* x, y, z */
} Shape;

typedef struct {
    double* array;
    int other;
    MPI_Datatype face[sides]; /* the inner planes at the low and the high end */
    MPI_Datatype halo[sides];
} Exchange;

static void exchange(void* state, int repetitions) {
    const Exchange* way = state;
    for (int i = 0; i < repetitions; i++) {
        MPI_Request requests[2 * sides];
        for (int side = 0; side < sides; side++)
            MPI_Irecv(way->array, 1, way->halo[side], way->other, side, MPI_COMM_WORLD,
                      &requests[side]);
        for (int side = 0; side < sides; side++) /* a low face goes to a high halo */
            MPI_Isend(way->array, 1, way->face[side], way->other, 1 - side, MPI_COMM_WORLD,
                      &requests[sides + side]);
        MPI_Waitall(2 * sides, requests, MPI_STATUSES_IGNORE);
    }
}

/* Planes [first, first + depth) across a dimension. MPI's first dimension is the slowest. */
static MPI_Datatype planes(const Shape* shape, int across, int first, int depth) {
    int sizes[dimensions];
    int parts[dimensions];
    int starts[dimensions];
    for (int d = 0; d < dimensions; d++) {
        int at = dimensions - 1 - d;
        sizes[at] = shape->size[d];
        parts[at] = d == across ? depth : shape->size[d];
        starts[at] = d == across ? first : 0;
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(dimensions, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* What a rank's array holds at a place. */
static double value(int rank, size_t at) {
    return (double)at + (rank == 0 ? 0.25 : 0.75);
}

/* Does something with every double of planes [first, first + depth): writes its value or `halo`
 * (a number that is no value), or counts those that differ from rank's planes at `source`. */
typedef enum { write_values, write_empty, count_wrong } Task;

static size_t visit(double* array, const Shape* shape, int across, int first, int depth, Task task,
                    int rank, int source) {
    int from[dimensions] = {0, 0, 0};
    int to[dimensions] = {shape->size[0], shape->size[1], shape->size[2]};
    size_t stride[dimensions] = {1, (size_t)to[0], (size_t)to[0] * (size_t)to[1]};
    from[across] = first;
    to[across] = first + depth;
    size_t shift = (size_t)source * stride[across] - (size_t)first * stride[across];
    size_t wrong = 0;
    for (int z = from[2]; z < to[2]; z++)
        for (int y = from[1]; y < to[1]; y++)
            for (int x = from[0]; x < to[0]; x++) {
                size_t at = (size_t)x + (size_t)y * stride[1] + (size_t)z * stride[2];
                if (task == count_wrong)
                    wrong += array[at] != value(rank, at + shift);
                else
                    array[at] = task == write_empty ? -1 : value(rank, at);
            }
    return wrong;
}

static void measure(Bench* bench, double* array, const Shape* shape, int across, int depth) {
    static const char* const plane_names[dimensions] = {"yz", "xz", "xy"};
    int length = shape->size[across];
    int halo[sides] = {0, length - depth};
    int face[sides] = {depth, length - 2 * depth};
    Exchange way = {.array = array, .other = 1 - bench->rank};
    for (int side = 0; side < sides; side++) {
        visit(array, shape, across, halo[side], depth, write_empty, 0, 0);
        visit(array, shape, across, face[side], depth, write_values, bench->rank, 0);
        way.halo[side] = planes(shape, across, halo[side], depth);
        way.face[side] = planes(shape, across, face[side], depth);
    }
    BenchTimes times = bench_measure(bench, exchange, &way, bench_leader);
    size_t wrong = 0;
    for (int side = 0; side < sides; side++) {
        wrong += visit(array, shape, across, halo[side], depth, count_wrong, 1 - bench->rank,
                       face[1 - side]);
        wrong +=
            visit(array, shape, across, face[side], depth, count_wrong, bench->rank, face[side]);
        MPI_Type_free(&way.halo[side]);
        MPI_Type_free(&way.face[side]);
    }
    if (wrong != 0)
        bench_die(bench, "halos or faces hold other numbers than they should", "");
    size_t doubles = (size_t)depth;
    for (int d = 0; d < dimensions; d++)
        doubles *= d == across ? 1 : (size_t)shape->size[d];
    char mode[32];
    char more[64];
    snprintf(mode, sizeof mode, "%s %s", shape->name, plane_names[across]);
    snprintf(more, sizeof more, "\"compared\":%zu", 2 * sides * doubles);
    bench_report_times(bench, "halo", mode, (long long)(doubles * sizeof(double)), "us", &times,
                       1e6 / (double)sides, false, more);
}

/* Whether a list of names has the name. */
static bool listed(const char* list, const char* name) {
    size_t length = strlen(name);
    for (const char* at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    bench_start(&bench, "halo", argc, argv);
    int edge = (int)bench_number(&bench, "--edge", "512");
    int depth = (int)bench_number(&bench, "--depth", "1");
    const char* names = bench_option(&bench, "--shapes", "cube,long-x,long-y,long-z");
    bench_check_options(&bench);
    if (bench.ranks != 2)
        bench_die(&bench, "exactly two ranks are needed", "");
    if (edge < 32 || edge > 2048 || edge % 8 != 0 || depth < 1 || 4 * depth > edge / 8)
        bench_die(&bench, "--edge must be a multiple of 8 from 32 to 2048, --depth ≤ edge / 32",
                  "");
    const Shape shapes[] = {{"cube", {edge, edge, edge}},
                            {"long-x", {32 * edge, edge / 4, edge / 8}},
                            {"long-y", {edge / 4, 32 * edge, edge / 8}},
                            {"long-z", {edge / 4, edge / 8, 32 * edge}}};
    bench_find_pinning(&bench);
    bench_share_line(&bench);
    double* array = (double*)(void*)bench_buffer(&bench, sizeof(double) * (size_t)edge *
                                                             (size_t)edge * (size_t)edge);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (listed(names, shapes[i].name))
            for (int across = dimensions - 1; across >= 0; across--)
                measure(&bench, array, &shapes[i], across, depth);
    free(array);
    MPI_Finalize();
    return 0;
}
