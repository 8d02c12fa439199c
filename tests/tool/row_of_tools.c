/* Two profiling tools in a row, libraries that the program is linked to, or that are preloaded into
   it (PRELOADED): each sees each call once, and of its own rank only, whatever ranks are. */
#define _GNU_SOURCE
#include "../point_to_point/check.h"

#include <dlfcn.h>

typedef void (*Ask)(int* sends, int* reductions);

#ifdef PRELOADED
static Ask asked(const char* name) {
    Ask found;
    *(void**)&found = dlsym(RTLD_DEFAULT, name);
    CHECK(found != NULL, "no library that defines %s has been preloaded", name);
    return found;
}
#define ASK(name) asked(#name)

/* The tool that the list names first is called first, by the other or the program. */
static void expect_order(void) {
    Dl_info caller;
    Dl_info tool;
    CHECK(dladdr(dlsym(RTLD_DEFAULT, "MPI_Send"), &caller) != 0 &&
              dladdr(dlsym(RTLD_DEFAULT, "calls_of_first"), &tool) != 0 &&
              caller.dli_fbase == tool.dli_fbase,
          "MPI_Send is that of %s, not of %s", caller.dli_fname, tool.dli_fname);
}
#else
void calls_of_first(int* sends, int* reductions);
void calls_of_second(int* sends, int* reductions);
#define ASK(name) name
static void expect_order(void) {}
#endif

static void expect_calls(const char* tool, Ask ask, int sends, int reductions) {
    int seen_sends = -1;
    int seen_reductions = -1;
    if (ask != NULL) {
        ask(&seen_sends, &seen_reductions);
    }
    CHECK(seen_sends == sends && seen_reductions == reductions,
          "the %s tool has seen %d sends and %d reductions, not %d and %d", tool, seen_sends,
          seen_reductions, sends, reductions);
}

int main(int argc, char** argv) {
    int rank = -1;
    int size = 0;
    int value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Every rank sends another number of messages: rank r sends r of them to rank 0. */
    for (int sent = 0; sent < rank; ++sent) {
        MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    for (int left = rank == 0 ? size * (size - 1) / 2 : 0; left > 0; --left) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int turn = 0; turn < 5; ++turn) {
        MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    expect_order();
    CHECK(value == size * (size - 1) / 2, "the sum of the ranks is %d", value);
    expect_calls("first", ASK(calls_of_first), rank, 5);
    expect_calls("second", ASK(calls_of_second), rank, 5);
    MPI_Finalize();
    return 0;
}
