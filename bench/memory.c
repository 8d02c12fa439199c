/*
 * Memory of a rank after it has exchanged one message with every peer, in kB.
 *
 *   private dirty   pages that only this rank has: what one more rank costs
 *   library's own   of it, the MPI library's: private dirty minus that of `memory_baseline`, the
 *                   same kind of process without MPI (it lies beside this program and is run by
 *                   rank 0 when all is measured)
 *   PSS             private memory plus this rank's share of what ranks share
 *   PSS of all      the job's whole memory: the sum over its processes when all have exchanged
 * Ranks that are threads of one process have its memory each, all of it, in every figure but the
 * last. The figure is the median over the ranks, "best" the smallest; "largest" and the parts of
 * the private dirty memory by kind of mapping (memory_map.h) are in the same line.
 *
 *   --baseline PATH   the program without MPI
 */
#include "bench.h"
#include "memory_map.h"

#include <errno.h>
#include <stddef.h>

static int compare_ints(const void* a, const void* b) {
    return (*(const int*)a > *(const int*)b) - (*(const int*)a < *(const int*)b);
}

typedef struct {
    int median;
    int smallest;
    int largest;
} Spread;

/* Of one field of all ranks' maps, at byte offset `field`. */
static Spread spread(const Bench* bench, const MemoryMap* maps, size_t field) {
    int* values = malloc((size_t)bench->ranks * sizeof *values);
    if (values == NULL)
        bench_die(bench, "no memory", "");
    for (int rank = 0; rank < bench->ranks; rank++)
        memcpy(&values[rank], (const char*)&maps[rank] + field, sizeof values[rank]);
    qsort(values, (size_t)bench->ranks, sizeof values[0], compare_ints);
    Spread result = {values[bench->ranks / 2], values[0], values[bench->ranks - 1]};
    free(values);
    return result;
}

/* kB of the process without MPI: all, then by kind. */
static bool read_baseline(const Bench* bench, const char* given, int baseline[1 + memory_kinds]) {
    char path[4096 + 32];
    if (given != NULL) {
        snprintf(path, sizeof path, "%s", given);
    } else if (strchr(bench->argv[0], '/') != NULL) { /* a thread's program is not the process's */
        snprintf(path, 4096, "%s", bench->argv[0]);
        strcpy(strrchr(path, '/') + 1, "memory_baseline");
    } else {
        ssize_t length = readlink("/proc/self/exe", path, 4096);
        if (length <= 0)
            return false;
        path[length] = '\0';
        strcpy(strrchr(path, '/') + 1, "memory_baseline");
    }
    char command[sizeof path + 4];
    snprintf(command, sizeof command, "'%s'", path);
    FILE* output = popen(command, "r");
    if (output == NULL)
        return false;
    int count = 0;
    while (count < 1 + memory_kinds && fscanf(output, "%d", &baseline[count]) == 1)
        count++;
    pclose(output);
    return count == 1 + memory_kinds;
}

/* Sum of the PSS of the job's processes, at rank 0. All ranks are there, and none has ended yet,
 * while any is read: a page's share depends on that. */
static int pss_of_all(const Bench* bench) {
    typedef struct {
        int process;
        int pss_kb;
    } Share;
    static MemoryMap mine;
    int go = 1;
    if (bench->rank != 0) {
        MPI_Recv(&go, 1, MPI_INT, 0, bench_steering_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memory_read(&mine);
        Share share = {(int)getpid(), mine.pss_kb};
        MPI_Send(&share, 2, MPI_INT, 0, bench_steering_tag, MPI_COMM_WORLD);
        MPI_Recv(&go, 1, MPI_INT, 0, bench_steering_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    Share* shares = malloc((size_t)bench->ranks * sizeof *shares);
    if (shares == NULL)
        bench_die(bench, "no memory", "");
    memory_read(&mine);
    shares[0] = (Share){(int)getpid(), mine.pss_kb};
    for (int rank = 1; rank < bench->ranks; rank++) { /* one after the other, the others wait */
        MPI_Send(&go, 1, MPI_INT, rank, bench_steering_tag, MPI_COMM_WORLD);
        MPI_Recv(&shares[rank], 2, MPI_INT, rank, bench_steering_tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    int sum = 0;
    for (int rank = 0; rank < bench->ranks; rank++) {
        bool counted = false;
        for (int before = 0; before < rank; before++)
            counted = counted || shares[before].process == shares[rank].process;
        sum += counted ? 0 : shares[rank].pss_kb;
    }
    for (int rank = 1; rank < bench->ranks; rank++)
        MPI_Send(&go, 1, MPI_INT, rank, bench_steering_tag, MPI_COMM_WORLD);
    free(shares);
    return sum;
}

static void report(const Bench* bench, const MemoryMap* maps, int all_kb, const char* given) {
    int baseline[1 + memory_kinds];
    bool has_baseline = read_baseline(bench, given, baseline);
    Spread all = spread(bench, maps, offsetof(MemoryMap, private_dirty_kb_all));
    char more[512];
    int length = snprintf(more, sizeof more, "\"largest\":%d,\"by_mapping\":{", all.largest);
    for (int kind = 0; kind < memory_kinds; kind++) {
        size_t field = offsetof(MemoryMap, private_dirty_kb) + sizeof(int) * (size_t)kind;
        length += snprintf(more + length, sizeof more - (size_t)length, "%s\"%s\":%d",
                           kind > 0 ? "," : "", memory_kind_names[kind],
                           spread(bench, maps, field).median);
    }
    snprintf(more + length, sizeof more - (size_t)length, "}");
    bench_report(bench, "private dirty", "", -1, "kB", all.median, all.smallest, 1, more);
    if (has_baseline) {
        length = snprintf(more, sizeof more, "\"largest\":%d,\"baseline\":%d,\"by_mapping\":{",
                          all.largest - baseline[0], baseline[0]);
        for (int kind = 0; kind < memory_kinds; kind++) {
            size_t field = offsetof(MemoryMap, private_dirty_kb) + sizeof(int) * (size_t)kind;
            length += snprintf(more + length, sizeof more - (size_t)length, "%s\"%s\":%d",
                               kind > 0 ? "," : "", memory_kind_names[kind],
                               spread(bench, maps, field).median - baseline[1 + kind]);
        }
        snprintf(more + length, sizeof more - (size_t)length, "}");
        bench_report(bench, "library's own", "", -1, "kB", all.median - baseline[0],
                     all.smallest - baseline[0], 1, more);
    } else {
        fprintf(stderr, "memory: memory_baseline does not run: no figure for the library alone\n");
    }
    Spread pss = spread(bench, maps, offsetof(MemoryMap, pss_kb));
    snprintf(more, sizeof more, "\"largest\":%d", pss.largest);
    bench_report(bench, "PSS", "", -1, "kB", pss.median, pss.smallest, 1, more);
    bench_report(bench, "PSS of all", "", -1, "kB", all_kb, all_kb, 1, "");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    /* Nothing that is not the question before the measurement: bench_start comes later. */
    int rank;
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double sent = rank;
    double received = -1;
    for (int distance = 1; distance < ranks; distance++)
        MPI_Sendrecv(&sent, 1, MPI_DOUBLE, (rank + distance) % ranks, bench_tag, &received, 1,
                     MPI_DOUBLE, (rank - distance + ranks) % ranks, bench_tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    static MemoryMap mine;
    bool readable = memory_read(&mine);

    Bench bench;
    bench_start(&bench, "memory", argc, argv);
    const char* given = bench_option(&bench, "--baseline", NULL);
    bench_check_options(&bench);
    if (!readable)
        bench_die(&bench, "cannot read /proc/self/smaps: ", strerror(errno));
    bench_find_pinning(&bench);
    MemoryMap* maps = NULL;
    if (rank != 0) {
        MPI_Send(&mine, (int)sizeof mine, MPI_BYTE, 0, bench_tag, MPI_COMM_WORLD);
    } else {
        maps = malloc((size_t)ranks * sizeof *maps);
        if (maps == NULL)
            bench_die(&bench, "no memory", "");
        maps[0] = mine;
        for (int other = 1; other < ranks; other++)
            MPI_Recv(&maps[other], (int)sizeof mine, MPI_BYTE, other, bench_tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    int all = pss_of_all(&bench);
    MPI_Finalize();
    if (rank == 0)
        report(&bench, maps, all, given); /* after Finalize: it starts another process */
    free(maps);
    return 0;
}
