/* A target that waits in MPI does accumulate operations, short puts and gets and writes of many
   pieces itself, sooner than the kernel. Here the kernel refuses to copy memory of other processes
   for the origin, so whatever succeeds was done by the target. Offers are taken back soon, so there
   may be many tries. */
#define _GNU_SOURCE
#include "window.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { pieces = 100, first_word = 8, words = first_word + 2 * pieces, kinds = 6 };
static const double limit_s = 20;

static int refuse_copies(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EFAULT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int try(int kind, const Window* window, MPI_Datatype spread, const int64_t* ones) {
    const int64_t zero = 0, one = 1;
    int64_t before = -1;
    int code = MPI_SUCCESS;
    const MPI_Aint at = window_at(window, 1, kind);
    switch (kind) {
    case 0:
        return MPI_Accumulate(&one, 1, MPI_INT64_T, 1, at, 1, MPI_INT64_T, MPI_SUM, window->win);
    case 1:
        code = MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 1, at, MPI_SUM, window->win);
        break;
    case 2:
        code = MPI_Compare_and_swap(&one, &zero, &before, MPI_INT64_T, 1, at, window->win);
        break;
    case 3:
        return MPI_Put(&one, 1, MPI_INT64_T, 1, at, 1, MPI_INT64_T, window->win);
    case 4:
        code = MPI_Get(&before, 1, MPI_INT64_T, 1, at, 1, MPI_INT64_T, window->win);
        break;
    default:
        return MPI_Put(ones, pieces, MPI_INT64_T, 1, window_at(window, 1, first_word), 1, spread,
                       window->win);
    }
    CHECK(code != MPI_SUCCESS || before == 0, "kind %d: %ld was there", kind, (long)before);
    return code;
}

static void origin(const Window* window) {
    int64_t ones[pieces];
    MPI_Datatype spread;
    MPI_Type_vector(pieces, 1, 2, MPI_INT64_T, &spread);
    MPI_Type_commit(&spread);
    for (int i = 0; i < pieces; i++)
        ones[i] = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window->win);
    for (int kind = 0; kind < kinds; kind++) {
        const double end = MPI_Wtime() + limit_s;
        int code;
        while ((code = try(kind, window, spread, ones)) != MPI_SUCCESS && MPI_Wtime() < end)
            CHECK(check_class(code) == MPI_ERR_RMA_RANGE, "class %d", check_class(code));
        CHECK(code == MPI_SUCCESS, "%s: kind %d was never done", flavour_names[window->flavour],
              kind);
    }
    MPI_Win_unlock(1, window->win);
    MPI_Type_free(&spread);
}

/* Whether each rank has a processor: they may be bound to one each, or to all. */
static int have_two_processors(void) {
    cpu_set_t usable;
    CHECK(sched_getaffinity(0, sizeof usable, &usable) == 0, "no processors: %s", strerror(errno));
    int first = 0;
    while (!CPU_ISSET(first, &usable))
        first++;
    int ends[2] = {first, -first};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return CPU_COUNT(&usable) > 1 || ends[0] != -ends[1];
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    /* Nobody waits for a target that needs the origin's processor. */
    const int enough = have_two_processors();
    for (int flavour = created; enough && flavour < flavours; flavour += dynamic) {
        Window window = window_make(flavour, words, MPI_COMM_WORLD);
        MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
        int told = 0;
        if (rank == 0) {
            CHECK(refuse_copies(), "no filter: %s", strerror(errno));
            origin(&window);
            MPI_Send(&told, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&told, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < words; i++) {
                const int is_one = i < 4 || (i >= first_word && i % 2 == 0);
                CHECK(window.words[i] == is_one, "word %d is %ld", i, (long)window.words[i]);
            }
        }
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
