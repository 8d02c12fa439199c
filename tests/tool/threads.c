/* Threads of a rank: the interface beside calls of MPI, waits for each other's lock, events that
   nobody takes, MPI_Finalize beside it. */
#include <pthread.h>
#include <stdatomic.h>

#include "tool.h"

enum { threads = 4 };

static int rank;
static atomic_int stop;

static void* read_state(void* unused) {
    Variable state = variable_open("wait_state", MPI_T_PVAR_CLASS_STATE);
    (void)unused;
    while (variable_value(&state) != 1)
        pause_ms(1);
    MPI_Send(&rank, 1, MPI_INT, rank, 0, MPI_COMM_WORLD); /* ends the wait */
    variable_close(&state);
    return NULL;
}

static void long_wait(void) {
    pthread_t reader;
    int got;
    Variable state = variable_open("wait_state", MPI_T_PVAR_CLASS_STATE);
    pthread_create(&reader, NULL, read_state, NULL);
    MPI_Recv(&got, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_join(reader, NULL);
    CHECK(variable_value(&state) == 0, "waiting outside MPI");
    variable_close(&state);
}

static void* work(void* unused) {
    (void)unused;
    while (!stop) { /* takes the rank's lock, and makes no progress */
        MPI_Datatype type;
        MPI_Type_contiguous(3, MPI_INT, &type);
        MPI_Type_free(&type);
    }
    return NULL;
}

static MPI_Count dropped;
static int told;

static void on_drop(MPI_Count count, MPI_T_event_registration registration, int source,
                    MPI_T_cb_safety safety, void* data) {
    (void)registration;
    CHECK(source == 0 && safety == MPI_T_CB_REQUIRE_NONE && data == &told, "source %d", source);
    dropped += count;
}

static void on_lock(MPI_T_event_instance instance, MPI_T_event_registration registration,
                    MPI_T_cb_safety safety, void* data) {
    unsigned long long duration = 0;
    (void)registration, (void)safety, (void)data;
    MPI_T_event_read(instance, 0, &duration);
    CHECK(duration > 0, "a wait of no time");
    told++;
}

static void contention(void) {
    pthread_t all[threads];
    MPI_T_event_registration registration;
    int event, flag;
    Variable waits = variable_open("thread_lock_waits", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_event_get_index("thread_lock_wait", &event);
    MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &registration);
    MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &told,
                                  on_lock);
    MPI_T_event_set_dropped_handler(registration, on_drop);
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, work, NULL);
    /* Many more than are queued. */
    while (variable_value(&waits) < 400)
        pause_ms(1);
    stop = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    const double happened = variable_value(&waits);
    CHECK(told == 0, "%d events told without progress", told);
    MPI_Iprobe(rank, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(told > 0 && told < 400, "%d events told", told);
    CHECK(dropped > 0 && (double)(told + dropped) <= happened + 1, "%lld dropped and %d told of %g",
          (long long)dropped, told, happened);
    MPI_T_event_handle_free(registration, NULL, NULL);
    variable_close(&waits);
}

/* Reads while the rank ends beside it, and after. */
static void* read_on(void* started) {
    int number;
    while (!stop) {
        Variable state = variable_open("wait_state", MPI_T_PVAR_CLASS_STATE);
        MPI_T_pvar_get_num(&number);
        variable_close(&state);
        *(atomic_int*)started = 1;
    }
    return NULL;
}

static void finalize_beside(void) {
    pthread_t all[threads];
    atomic_int started[threads];
    stop = 0;
    for (int i = 0; i < threads; i++) {
        started[i] = 0;
        pthread_create(&all[i], NULL, read_on, &started[i]);
    }
    for (int i = 0; i < threads; i++)
        while (!started[i])
            pause_ms(1);
    MPI_Finalize();
    pause_ms(5);
    stop = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    tool_init();
    long_wait();
    contention();
    finalize_beside();
    MPI_T_finalize();
    return 0;
}
