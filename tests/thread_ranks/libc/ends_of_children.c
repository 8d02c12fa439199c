/* Ends of children that a rank wants to hear of in its own way: not at all, by handlers that jump,
   or of children that other functions than fork have made. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "handled.h"

enum { many = 8, rounds = 10, stack_bytes = 65536 };

static sigjmp_buf place;
static volatile sig_atomic_t last_child, last_status;

static void note(int number, siginfo_t* information, void* context) {
    (void)context;
    (void)number;
    last_child = information->si_pid;
    last_status = information->si_status;
    ++calls;
}

static pid_t make_child(int status, int sleeps_us) {
    const pid_t child = fork();
    if (child == 0) {
        usleep(sleeps_us);
        _exit(status);
    }
    expect(child > 0);
    return child;
}

static int is_there(pid_t child) {
    for (int look = 0; look < 2000; ++look) {
        if (kill(child, 0) != 0 && errno == ESRCH) {
            return 0;
        }
        usleep(1000);
    }
    return 1;
}

/* Odd ranks' children leave nothing behind. */
static void children_that_nobody_waits_for(void) {
    const int odd = world_rank % 2;
    for (int how = 0; how < 3; ++how) {
        together();
        calls = 0;
        if (odd && how == 0) {
            signal(SIGCHLD, SIG_IGN);
        } else if (odd && how == 1) {
            set_default(SIGCHLD, SA_NOCLDWAIT);
        } else if (odd) {
            handle(SIGCHLD, note, SA_RESTART | SA_NOCLDWAIT);
        }
        together();
        const pid_t child = make_child(9, 1000);
        if (odd) {
            expect(!is_there(child));
            expect(calls == (how == 2 ? 1 : 0));
            const pid_t other = make_child(9, 3000);
            errno = 0;
            expect(waitpid(how == 1 ? other : -1, NULL, 0) == -1 && errno == ECHILD);
        } else {
            int status = 0;
            expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
        }
        together();
        set_default(SIGCHLD, 0);
    }
    together();
}

/* Nor do they show themselves to waitid, which waits until there are none. */
static void ends_that_nobody_hears_of(void) {
    siginfo_t information;
    together();
    if (world_rank % 2) {
        signal(SIGCHLD, SIG_IGN);
        for (int options = WEXITED; options != 0;
             options = options & WNOWAIT ? 0 : options | WNOWAIT) {
            make_child(9, 2000);
            errno = 0;
            expect(waitid(P_ALL, 0, &information, options) == -1 && errno == ECHILD);
            const pid_t other = make_child(9, 2000);
            errno = 0;
            expect(waitid(P_PID, (id_t)other, &information, options) == -1 && errno == ECHILD);
        }
        signal(SIGCHLD, SIG_DFL);
    } else {
        const pid_t child = make_child(8, 4000);
        expect(waitid(P_PID, (id_t)child, &information, WEXITED) == 0);
        expect(information.si_pid == child && information.si_status == 8);
    }
    together();
}

/* All ranks ignore the ends: the system keeps none, and later children are waited for again. */
static void ends_that_all_ignore(void) {
    signal(SIGCHLD, SIG_IGN);
    together();
    for (int i = 0; i < many; ++i) {
        expect(!is_there(make_child(9, 0)));
    }
    together();
    handle(SIGCHLD, note, SA_RESTART);
    together();
    calls = 0;
    const pid_t child = make_child(7, 1000);
    await_calls(1);
    expect(calls == 1 && last_child == child);
    int status = 0;
    expect(waitpid(-1, &status, 0) == child && WEXITSTATUS(status) == 7);
    errno = 0;
    expect(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
    set_default(SIGCHLD, 0);
    together();
}

/* A handler leaves a wait that looks once; later ends are told all the same. */
static void jump_out(int number) {
    siglongjmp(place, number);
}

static void jumps_out_of_looks(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = jump_out;
    together();
    expect(sigaction(SIGCHLD, &action, NULL) == 0);
    for (volatile int i = 0; i < rounds; ++i) {
        if (sigsetjmp(place, 1) == 0) {
            make_child(0, 500 * (i % 3));
            while (1) {
                waitpid(-1, NULL, WNOHANG);
            }
        }
    }
    while (waitpid(-1, NULL, 0) > 0) {
    }
    handle(SIGCHLD, note, SA_RESTART);
    calls = 0;
    const pid_t child = make_child(0, 2000);
    await_calls(1);
    expect(calls == 1 && last_child == child && waitpid(child, NULL, 0) == child);
    set_default(SIGCHLD, 0);
    together();
}

static int end_at_once(void* status) {
    return *(int*)status;
}

/* Made by other functions than fork: any wait finds them, and their signals come. */
static void children_of_clones(void) {
    static char stack[stack_bytes] __attribute__((aligned(16)));
    handle(SIGCHLD, note, SA_RESTART);
    together();
    for (int how = 0; how < 3; ++how) {
        int status = 50 + world_rank;
        calls = 0;
        pid_t child = -1;
        if (how < 2) {
            child = clone(end_at_once, stack + sizeof stack,
                          SIGCHLD | (how ? CLONE_VM | CLONE_VFORK : 0), &status);
        } else if ((child = _Fork()) == 0) {
            _exit(status);
        }
        expect(child > 0);
        await_calls(1);
        expect(calls == 1 && last_child == child && last_status == 50 + world_rank);
        expect(waitpid(-1, &status, 0) == child && WEXITSTATUS(status) == 50 + world_rank);
        errno = 0;
        expect(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
        together();
    }
    set_default(SIGCHLD, 0);
}

static volatile int ends;

static int lock_file(int file, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    return fcntl(file, F_SETLK, &lock);
}

static void* lock_and_close(void* path) {
    while (!ends) {
        const int file = open(path, O_RDWR);
        expect(lock_file(file, F_WRLCK) == 0);
        close(file);
    }
    return path;
}

/* A child locks and closes files, though its parent has done so at the moment of the fork. */
static void locked_files(void) {
    char path[] = "/tmp/locked-files-XXXXXX", own_path[] = "/tmp/locked-files-XXXXXX";
    const int file = mkstemp(path), own = mkstemp(own_path);
    pthread_t thread;
    together();
    expect(pthread_create(&thread, NULL, lock_and_close, path) == 0);
    expect(lock_file(own, F_WRLCK) == 0);
    for (int i = 0; i < 3 * rounds; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            const int held = lock_file(own, F_WRLCK) == -1 && errno == EAGAIN;
            lock_file(own, F_UNLCK);
            const int its = memfd_create("file", 0);
            const int locked = lock_file(its, F_WRLCK) == 0 && lock_file(its, F_UNLCK) == 0;
            _exit(close(file) == 0 && close(its) == 0 && held && locked ? 3 : 4);
        }
        int status = 0;
        expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    }
    ends = 1;
    expect(pthread_join(thread, NULL) == 0);
    close(own);
    close(file);
    unlink(path);
    unlink(own_path);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    children_that_nobody_waits_for();
    ends_that_nobody_hears_of();
    ends_that_all_ignore();
    jumps_out_of_looks();
    children_of_clones();
    locked_files();
    return finish();
}
