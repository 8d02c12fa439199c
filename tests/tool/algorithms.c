/* The control variables that choose the algorithm of a collective operation: each algorithm has the
   right result, goes over messages, and is another one than its neighbour; numbers without
   an algorithm stand for the automatic choice. */
#include "tool.h"

enum { elements = 64, most_ranks = 64 };

static int rank, size;

/* Messages that all ranks send in the operation, which is run and checked. */
static double messages_of(void (*operation)(void)) {
    static const char* const names[] = {"eager_sent", "streams_sent", "rendezvous_sent",
                                        "direct_sent"};
    Variable sent[4];
    for (int i = 0; i < 4; ++i)
        sent[i] = variable_open(names[i], MPI_T_PVAR_CLASS_COUNTER);
    operation();
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
        sum += variable_value(&sent[i]);
        variable_close(&sent[i]);
    }
    double all = 0;
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static int in[most_ranks * elements], out[most_ranks * elements];

static void fill(void) {
    for (int i = 0; i < size * elements; ++i) {
        in[i] = 1000 * rank + i;
        out[i] = -1;
    }
}

static void gather(void) {
    fill();
    MPI_Gather(in, elements, MPI_INT, out, elements, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size * elements; ++i)
        CHECK(out[i] == 1000 * (i / elements) + i % elements, "element %d is %d", i, out[i]);
}

static void scatter(void) {
    fill();
    MPI_Scatter(in, elements, MPI_INT, out, elements, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < elements; ++i)
        CHECK(out[i] == rank * elements + i, "element %d is %d", i, out[i]);
}

static void allgather(void) {
    fill();
    MPI_Allgather(in, elements, MPI_INT, out, elements, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size * elements; ++i)
        CHECK(out[i] == 1000 * (i / elements) + i % elements, "element %d is %d", i, out[i]);
}

static void allreduce(void) {
    fill();
    MPI_Allreduce(in, out, elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < elements; ++i)
        CHECK(out[i] == 500 * size * (size - 1) + size * i, "element %d is %d", i, out[i]);
}

static void reduce_scatter(void) {
    int counts[most_ranks];
    for (int i = 0; i < size; ++i)
        counts[i] = elements;
    fill();
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < elements; ++i)
        CHECK(out[i] == 500 * size * (size - 1) + size * (rank * elements + i), "element %d is %d",
              i, out[i]);
}

static void scan(void) {
    fill();
    MPI_Scan(in, out, elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < elements; ++i)
        CHECK(out[i] == 500 * rank * (rank + 1) + (rank + 1) * i, "element %d is %d", i, out[i]);
}

static const struct {
    const char* variable;
    void (*operation)(void);
    int values; /* beside automatic */
} choices[] = {{"gather_algorithm", gather, 2},
               {"scatter_algorithm", scatter, 2},
               {"allgather_algorithm", allgather, 3},
               {"allreduce_algorithm", allreduce, 3},
               {"reduce_scatter_algorithm", reduce_scatter, 2},
               {"scan_algorithm", scan, 2}};

/* A number without an algorithm is kept, and stands for the automatic choice. */
static void unnamed(const char* name, void (*operation)(void)) {
    int index = -1, count = -1, value = 0, scope = -1;
    MPI_T_cvar_handle handle;
    MPI_T_cvar_get_index(name, &index);
    MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &scope);
    CHECK(scope == MPI_T_SCOPE_ALL_EQ, "%s: scope %d", name, scope);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    const double automatic = messages_of(operation);
    const int numbers[] = {99, 256 + 1, -1, 0};
    for (int i = 0; i < 4; ++i) {
        CHECK(MPI_T_cvar_write(handle, &numbers[i]) == MPI_SUCCESS, "%s: %d", name, numbers[i]);
        CHECK(MPI_T_cvar_read(handle, &value) == MPI_SUCCESS && value == numbers[i], "%s is %d",
              name, value);
        const double sent = messages_of(operation);
        CHECK(sent == automatic, "%s = %d: %g messages, not %g", name, value, sent, automatic);
    }
    MPI_T_cvar_handle_free(&handle);
}

int main(int argc, char** argv) {
    tool_init();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= most_ranks, "%d ranks", size);
    for (int i = 0; i < (int)(sizeof choices / sizeof choices[0]); ++i) {
        unnamed(choices[i].variable, choices[i].operation);
        double sent[4] = {0};
        for (int value = 1; value <= choices[i].values; ++value) {
            control_set(choices[i].variable, (unsigned long long)value);
            sent[value] = messages_of(choices[i].operation);
            CHECK(size == 1 || sent[value] > 0, "%s = %d: no messages", choices[i].variable, value);
        }
        /* Elements of several messages, or other partners: what ranks send in sum differs. */
        if (size == 5 && choices[i].operation != gather && choices[i].operation != scatter)
            CHECK(sent[1] != sent[2], "%s: %g messages either way", choices[i].variable, sent[1]);
        control_set(choices[i].variable, 0);
        messages_of(choices[i].operation);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
