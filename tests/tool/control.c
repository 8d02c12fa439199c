/* Each control variable that can be written changes what the library does. Ranks 0 and 1
   communicate, others wait at the end. */
#include "tool.h"

enum { large = 100000 };

static int rank, size, other, kind;

static Variable counter(const char* name) {
    return variable_open(name, MPI_T_PVAR_CLASS_COUNTER);
}

/* Rank 1 waits for rank 0 for so long. */
static void wait_once(long ms) {
    int got = 0;
    MPI_Sendrecv(&rank, 1, MPI_INT, other, 1, &got, 1, MPI_INT, other, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (rank == 0) {
        pause_ms(ms);
        MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void transfer(int bytes, int synchronous) {
    unsigned char* data = check_buffer((size_t)bytes);
    if (rank == 0) {
        check_fill(data, (size_t)bytes, 3);
        if (synchronous)
            MPI_Ssend(data, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        else
            MPI_Send(data, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_pattern(data, (size_t)bytes, 3, "transfer");
    }
    free(data);
}

static void polls_before_a_sleep(void) {
    if (kind == by_fibres)
        return; /* who polls for long holds up the other fibres of its worker */
    const char* const name =
        control_get("ranks_share_processors") ? "wait_spins_shared" : "wait_spins";
    const unsigned long long spins = control_set(name, 1);
    const unsigned long long yields = control_set("wait_yields", 0);
    Variable sleeps = counter("sleeps"), yielded = counter("yields");
    wait_once(20);
    if (rank == 1) {
        CHECK(variable_value(&sleeps) >= 1, "%s = 1: no sleep", name);
        CHECK(variable_value(&yielded) == 0, "wait_yields = 0: %g", variable_value(&yielded));
    }
    control_set(name, 2000000000);
    wait_once(1);
    MPI_T_pvar_reset(sleeps.session, sleeps.handle);
    wait_once(20);
    CHECK(variable_value(&sleeps) == 0, "%s = 2e9: %g sleeps", name, variable_value(&sleeps));
    if (control_get("ranks_share_processors")) {
        control_set(name, 1);
        control_set("wait_yields", 2000000000);
        MPI_T_pvar_reset(sleeps.session, sleeps.handle);
        wait_once(20);
        CHECK(variable_value(&sleeps) == 0, "wait_yields = 2e9: %g sleeps",
              variable_value(&sleeps));
        CHECK(rank == 0 || variable_value(&yielded) > 0, "wait_yields = 2e9: no yield");
    }
    control_set(name, spins);
    control_set("wait_yields", yields);
    variable_close(&sleeps);
    variable_close(&yielded);
}

/* All ranks: the last comes late to a barrier. */
static double sleeps_in_a_barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    Variable sleeps = counter("sleeps");
    if (rank == size - 1)
        pause_ms(30);
    MPI_Barrier(MPI_COMM_WORLD);
    return variable_close(&sleeps);
}

static void yields_in_collective_operations(void) {
    if (kind == by_fibres || !control_get("ranks_share_processors"))
        return;
    const unsigned long long before = control_set("collective_yields", 2000000000);
    double sleeps = sleeps_in_a_barrier();
    sleeps = sleeps_in_a_barrier();
    CHECK(sleeps == 0, "collective_yields = 2e9: %g sleeps", sleeps);
    MPI_Barrier(MPI_COMM_WORLD);
    control_set("collective_yields", 0);
    const unsigned long long yields = control_set("wait_yields", 0);
    sleeps_in_a_barrier();
    sleeps = sleeps_in_a_barrier();
    CHECK(rank == size - 1 || sleeps >= 1, "collective_yields = 0: no sleep");
    control_set("collective_yields", before);
    control_set("wait_yields", yields);
}

static void pair_rings(void) {
    if (control_get("pair_rings") == 0)
        return;
    Variable streams = counter("streams_sent");
    for (int i = 0; i < 20; i++)
        transfer(large, 0);
    CHECK(variable_value(&streams) == 0, "pair_ring_after = 255: %g streams",
          variable_value(&streams));
    control_set("pair_ring_after", 0);
    for (int i = 0; i < 20; i++)
        transfer(large, 0);
    CHECK(rank == 1 || variable_value(&streams) > 0, "pair_ring_after = 0: no stream");
    variable_close(&streams);
}

static void direct_limit(void) {
    if (kind == by_processes)
        return;
    Variable direct = counter("direct_sent"), eager = counter("eager_sent");
    transfer(3000, 0);
    CHECK(rank == 1 || variable_value(&direct) == 1, "3000 bytes went otherwise than directly");
    const unsigned long long before = control_set("direct_limit", 4000);
    transfer(3000, 0);
    CHECK(rank == 1 || variable_value(&direct) == 1, "3000 bytes went directly below the limit");
    CHECK(rank == 1 || variable_value(&eager) == 1, "%g messages at once", variable_value(&eager));
    control_set("direct_limit", before);
    variable_close(&direct);
    variable_close(&eager);
}

static void fetching(void) {
    if (kind != by_processes)
        return;
    Variable fetches = counter("fetches");
    const unsigned long long before = control_set("fetched_from", large + 1);
    transfer(large, 1);
    CHECK(variable_value(&fetches) == 0, "fetched below the limit");
    control_set("fetched_from", large);
    transfer(large, 1);
    CHECK(rank == 0 || variable_value(&fetches) > 0, "not fetched at the limit");
    control_set("fetched_from", before);
    variable_close(&fetches);
}

int main(int argc, char** argv) {
    tool_init();
    control_set("pair_ring_after", 255); /* from the start */
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    other = 1 - rank;
    kind = (int)control_get("ranks");
    if (rank < 2) {
        polls_before_a_sleep();
        direct_limit();
        pair_rings();
        fetching();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    yields_in_collective_operations();
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
