/* What the system knows of a process, a rank has of its own: locks of files, processor time, the
   program's file and arguments. */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>

#include "expect.h"

static int lock_bytes(int file, int command, short type, off_t start, off_t bytes) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = start;
    lock.l_len = bytes;
    const int result = fcntl(file, command, &lock);
    return command == F_GETLK ? lock.l_type : result;
}

static void locks(void) {
    int first = (int)getpid();
    char path[60];
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/tmp/mpi-test-locks.%d", first);
    const long zero = 0;
    if (world_rank == 0) {
        const int made = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
        expect(write(made, &zero, sizeof zero) == sizeof zero);
        close(made);
    }
    together();
    const int file = open(path, O_RDWR);
    if (world_rank == 0) {
        expect(lock_bytes(file, F_SETLK, F_WRLCK, 0, 100) == 0);
    }
    together();
    if (world_rank != 0) {
        expect(lock_bytes(file, F_SETLK, F_WRLCK, 50, 10) != 0);
        expect(lock_bytes(file, F_GETLK, F_RDLCK, 0, 10) == F_WRLCK);
        expect(lseek(file, 0, SEEK_SET) == 0 && lockf(file, F_TEST, 10) != 0);
        close(open(path, O_RDWR)); /* takes nobody's lock */
    }
    together();
    if (world_rank == world_size - 1) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(lock_bytes(open(path, O_RDWR), F_SETLK, F_WRLCK, 0, 10) == 0 ? 7 : 0);
        }
        int status = -1;
        expect(waitpid(child, &status, 0) == child && status == 0);
    }
    together();
    if (world_rank == 0) {
        expect(lock_bytes(file, F_SETLK, F_UNLCK, 0, 100) == 0);
    }
    together();
    for (int i = 0; i < 100; ++i) {
        long count = 0;
        expect(lseek(file, 0, SEEK_SET) == 0 && lockf(file, F_LOCK, 8) == 0);
        expect(pread(file, &count, sizeof count, 0) == sizeof count);
        ++count;
        expect(pwrite(file, &count, sizeof count, 0) == sizeof count);
        expect(lseek(file, 0, SEEK_SET) == 0 && lockf(file, F_ULOCK, 8) == 0);
    }
    together();
    long count = 0;
    expect(pread(file, &count, sizeof count, 0) == sizeof count && count == 100L * world_size);
    together();
    close(file);
    unlink(path);
}

static void close_somehow(int file, int how) {
    if (how == 0) {
        close(file);
    } else if (how == 1) {
        fclose(fdopen(file, "r"));
    } else if (how == 2) {
        expect(dup2(STDERR_FILENO, file) == file && close(file) == 0);
    } else {
        expect(close_range((unsigned)file, (unsigned)file, 0) == 0);
    }
}

/* The locks of all descriptors by which a rank has opened a file are one, and end with the first
   that it closes. */
static void locks_of_several_descriptors(void) {
    int first = (int)getpid();
    char path[60];
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/tmp/mpi-test-closes.%d", first);
    if (world_rank == 0) {
        close(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600));
    }
    together();
    const int file = open(path, O_RDWR);
    const int to_read = open(path, O_RDONLY);
    together();
    if (world_rank == 0) {
        const int before = dup(file);
        close(before);
        expect(lock_bytes(file, F_SETLK, F_WRLCK, 0, 100) == 0);
        expect(lock_bytes(to_read, F_SETLK, F_WRLCK, 0, 10) != 0); /* it can't be written */
        expect(lock_bytes(to_read, F_SETLK, F_RDLCK, 50, 50) == 0);
        expect(lock_bytes(to_read, F_GETLK, F_WRLCK, 0, 100) == F_UNLCK);
        const int next = dup(file);
        expect(next == before); /* programs may know which number comes next */
        expect(lock_bytes(file, F_SETLK, F_WRLCK, 0, 100) == 0);
        close(next);
        expect(lock_bytes(file, F_SETLK, F_WRLCK, 0, 100) == 0);
    }
    together();
    for (int how = 0; how < 4; ++how) {
        if (world_rank == 1) {
            expect(lock_bytes(file, F_SETLK, F_WRLCK, 60, 1) != 0);
        }
        together();
        if (world_rank == 0) {
            close_somehow(open(path, O_RDONLY), how);
        }
        together();
        if (world_rank == 1) { /* nobody has it any more */
            expect(lock_bytes(file, F_SETLK, F_WRLCK, 60, 1) == 0);
            expect(lock_bytes(file, F_SETLK, F_UNLCK, 60, 1) == 0);
        }
        together();
        if (world_rank == 0) {
            if (how == 2) {
                expect(lseek(file, 50, SEEK_SET) == 50 && lockf(file, F_LOCK, 20) == 0);
            } else {
                expect(lock_bytes(file, F_SETLK, F_WRLCK, 0, 100) == 0);
            }
        }
        together();
    }
    if (world_rank == 0) { /* a child has none of them, and takes none away */
        const pid_t child = fork();
        if (child == 0) {
            close(open(path, O_RDONLY));
            _exit(lock_bytes(file, F_SETLK, F_WRLCK, 60, 1) == 0 ? 7 : 0);
        }
        int status = -1;
        expect(waitpid(child, &status, 0) == child && status == 0);
    }
    together();
    if (world_rank == 1) {
        expect(lock_bytes(file, F_GETLK, F_WRLCK, 60, 1) == F_WRLCK);
    }
    together();
    close(to_read);
    close(file);
    unlink(path);
}

static double seconds(clockid_t clock_id) {
    struct timespec time;
    expect(clock_gettime(clock_id, &time) == 0);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double seconds_used(void) {
    struct rusage usage;
    expect(getrusage(RUSAGE_SELF, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double seconds_of_times(void) {
    struct tms parts;
    times(&parts);
    return (double)(parts.tms_utime + parts.tms_stime) / (double)sysconf(_SC_CLK_TCK);
}

/* A thread knows its stack and its processors. */
static void own_thread(void) {
    pthread_attr_t attributes;
    void* stack = NULL;
    size_t bytes = 0;
    expect(pthread_getattr_np(pthread_self(), &attributes) == 0);
    expect(pthread_attr_getstack(&attributes, &stack, &bytes) == 0);
    expect((char*)&bytes >= (char*)stack && (char*)&bytes < (char*)stack + bytes);
    pthread_attr_destroy(&attributes);
    cpu_set_t own, asked;
    expect(pthread_getaffinity_np(pthread_self(), sizeof own, &own) == 0);
    expect(sched_getaffinity(0, sizeof asked, &asked) == 0 && CPU_COUNT(&own) > 0);
    struct sched_param parameters;
    int policy = -1;
    expect(pthread_getschedparam(pthread_self(), &policy, &parameters) == 0 && policy >= 0);
}

/* The odd ranks compute for a while, the even ones wait: none counts the time of others. (What a
   fibre runs is longer when others have its processor meanwhile.) */
static void times_of_ranks(void) {
    const int computes = world_rank % 2;
    const double before[] = {seconds(CLOCK_PROCESS_CPUTIME_ID), seconds(CLOCK_THREAD_CPUTIME_ID),
                             (double)clock() / CLOCKS_PER_SEC, seconds_used(), seconds_of_times()};
    if (computes) {
        while (seconds(CLOCK_PROCESS_CPUTIME_ID) < before[0] + 0.4) {
            for (volatile int i = 0; i < 100000; ++i) {
            }
        }
    } else {
        usleep(300 * 1000);
    }
    const double after[] = {seconds(CLOCK_PROCESS_CPUTIME_ID), seconds(CLOCK_THREAD_CPUTIME_ID),
                            (double)clock() / CLOCKS_PER_SEC, seconds_used(), seconds_of_times()};
    for (int i = 0; i < 5; ++i) {
        const double spent = after[i] - before[i];
        expect(computes ? spent >= 0.35 && spent < 3 : spent < 0.2);
        if (computes ? spent < 0.35 || spent >= 3 : spent >= 0.2) {
            dprintf(2, "clock %d: %f s\n", i, spent);
        }
    }
    together();
}

static void program(const char* given) {
    char link[PATH_MAX] = "", own[PATH_MAX] = "", words[1000] = "";
    expect(realpath(given, own) == own);
    const ssize_t bytes = readlink("/proc/self/exe", link, sizeof link - 1);
    expect(bytes == (ssize_t)strlen(own) && strcmp(link, own) == 0);
    expect(realpath("/proc/self/exe", link) == link && strcmp(link, own) == 0);
    char by_number[60];
    snprintf(by_number, sizeof by_number, "/proc/%d/exe", (int)getpid());
    memset(link, 0, sizeof link);
    expect(readlink(by_number, link, sizeof link - 1) > 0 && strcmp(link, own) == 0);
    int file = open("/proc/self/cmdline", O_RDONLY);
    const ssize_t count = read(file, words, sizeof words);
    expect(count == (ssize_t)(strlen(given) + 1 + strlen("word") + 1));
    expect(strcmp(words, given) == 0 && strcmp(words + strlen(given) + 1, "word") == 0);
    close(file);
    FILE* stream = fopen("/proc/self/comm", "r");
    expect(fgets(words, sizeof words, stream) == words && strcmp(words, "process\n") == 0);
    fclose(stream);
    stream = fopen("/proc/self/status", "r");
    expect(fgets(words, sizeof words, stream) == words && strcmp(words, "Name:\tprocess\n") == 0);
    expect(fgets(words, sizeof words, stream) == words && strncmp(words, "Umask:", 6) == 0);
    fclose(stream);
    int number = 0;
    stream = fopen("/proc/self/stat", "r");
    expect(fscanf(stream, "%d (%15[^)]) %c", &number, words, words + 20) == 3);
    expect(number == (int)getpid() && strcmp(words, "process") == 0);
    fclose(stream);
    char name[16] = "";
    expect(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "process") == 0);
    snprintf(words, sizeof words, "a much longer name %d", world_rank);
    expect(pthread_setname_np(pthread_self(), words) == ERANGE);
    snprintf(words, sizeof words, "name %d", world_rank);
    expect(prctl(PR_SET_NAME, words) == 0);
    together();
    expect(pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strcmp(name, words) == 0);
    strcat(words, "\n");
    stream = fopen("/proc/self/comm", "r");
    expect(fgets(link, sizeof link, stream) == link && strcmp(link, words) == 0);
    fclose(stream);
    stream = fopen("/proc/self/exe", "r");
    FILE* same = fopen(own, "r");
    fseek(stream, 0, SEEK_END);
    fseek(same, 0, SEEK_END);
    expect(ftell(stream) == ftell(same));
    fclose(stream);
    fclose(same);
    const char* executed = (const char*)getauxval(AT_EXECFN);
    expect(strcmp(executed, given) == 0);
    const pid_t child = fork();
    if (child == 0) {
        memset(link, 0, sizeof link);
        _exit(readlink("/proc/self/exe", link, sizeof link - 1) > 0 && strcmp(link, own) == 0 ? 3
                                                                                              : 4);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
}

static int has_entry(const char* folder, int number) {
    DIR* entries = opendir(folder);
    int found = 0;
    for (struct dirent* entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        found |= entry->d_name[0] != '.' && atoi(entry->d_name) == number;
    }
    expect(entries != NULL && closedir(entries) == 0);
    return found;
}

/* Paths of the system's for its descriptors mean the calling rank's. */
static void paths_of_descriptors(void) {
    char name[60], link[PATH_MAX], text[60], other[60], process[40];
    snprintf(name, sizeof name, "/tmp/mpi-test-paths.%d.%d", (int)getpid(), world_rank);
    snprintf(other, sizeof other, "%s.linked", name);
    snprintf(process, sizeof process, "/proc/%d/fd", (int)getpid());
    /* Ranks have other files by the same numbers. */
    for (int i = 0; i < world_rank; ++i) {
        expect(open("/dev/null", O_RDONLY) >= 0);
    }
    const int file = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
    const ssize_t bytes = (ssize_t)strlen(name);
    expect(write(file, name, (size_t)bytes) == bytes);
    together();
    const char* const folders[] = {"/proc/self/fd", "/dev/fd", "/proc/thread-self/fd", process};
    for (int i = 0; i < 4; ++i) {
        char path[80];
        struct stat status;
        snprintf(path, sizeof path, "%s/%d", folders[i], file);
        memset(text, 0, sizeof text);
        const int again = open(path, O_RDONLY);
        expect(again >= 0 && read(again, text, sizeof text) == bytes && strcmp(text, name) == 0);
        close(again);
        memset(link, 0, sizeof link);
        expect(readlink(path, link, sizeof link - 1) == bytes && strcmp(link, name) == 0);
        expect(realpath(path, link) == link && strcmp(link, name) == 0);
        expect(access(path, R_OK) == 0 && stat(path, &status) == 0 && status.st_size == bytes);
        expect(lstat(path, &status) == 0 && S_ISLNK(status.st_mode));
        expect(chmod(path, 0640) == 0 && fstat(file, &status) == 0);
        expect((status.st_mode & 0777) == 0640);
        expect(fchmodat(AT_FDCWD, name, 0600, AT_SYMLINK_NOFOLLOW) == 0);
        expect(fstat(file, &status) == 0 && (status.st_mode & 0777) == 0600);
        expect(has_entry(folders[i], file));
        FILE* stream = fopen(path, "r");
        expect(stream != NULL && fgets(text, sizeof text, stream) == text);
        expect(strcmp(text, name) == 0 && fclose(stream) == 0);
    }
    snprintf(link, sizeof link, "/proc/self/fdinfo/%d", file);
    expect(access(link, R_OK) == 0);
    expect(symlink(name, other) == 0);
    expect(fchmodat(AT_FDCWD, other, 0600, AT_SYMLINK_NOFOLLOW) == -1 && errno == EOPNOTSUPP);
    expect(unlink(other) == 0);
    /* A file without a name, which gets one. */
    const int unnamed = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    snprintf(link, sizeof link, "/proc/self/fd/%d", unnamed);
    expect(unnamed < 0 || linkat(AT_FDCWD, link, AT_FDCWD, other, AT_SYMLINK_FOLLOW) == 0);
    expect(unnamed < 0 || (close(unnamed) == 0 && unlink(other) == 0));
    /* Its stream in another mode. */
    FILE* stream = fopen(name, "r");
    stream = freopen(NULL, "r+", stream);
    expect(stream != NULL && fputs("new", stream) >= 0 && fclose(stream) == 0);
    memset(text, 0, sizeof text);
    expect(pread(file, text, 3, 0) == 3 && strcmp(text, "new") == 0);
    together();
    expect(unlink(name) == 0 && close(file) == 0);
}

static FILE* left_open;

static void note_exit(void) {
    if (left_open != NULL) {
        fputs(" functions", left_open);
    }
}

/* A child whose last thread ends by pthread_exit ends by exit(0), and writes what is its own. */
static void ends_of_threads_in_children(void) {
    int ends[2];
    char text[100] = "", wanted[100];
    expect(pipe(ends) == 0);
    atexit(note_exit);
    FILE* own = tmpfile();
    fprintf(own, "buffered by rank %d", world_rank);
    together();
    const pid_t child = fork();
    if (child == 0) {
        left_open = fdopen(ends[1], "w");
        fprintf(left_open, "rank %d", world_rank);
        pthread_exit(NULL);
    }
    int status = -1;
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    snprintf(wanted, sizeof wanted, "rank %d functions", world_rank);
    expect(read(ends[0], text, sizeof text - 1) == (ssize_t)strlen(wanted));
    expect(strcmp(text, wanted) == 0);
    together();
    fclose(own);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    own_thread();
    locks();
    locks_of_several_descriptors();
    times_of_ranks();
    program(argv[0]);
    paths_of_descriptors();
    ends_of_threads_in_children();
    together();
    /* The locks of a rank end with it. */
    char path[60];
    int first = (int)getpid();
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/tmp/mpi-test-ends.%d", first);
    const int file = open(path, O_CREAT | O_RDWR, 0600);
    if (world_rank == 0) {
        expect(lock_bytes(file, F_SETLK, F_WRLCK, 0, 100) == 0);
    }
    together();
    finish();
    if (world_rank == 1) {
        expect(lock_bytes(file, F_SETLKW, F_WRLCK, 0, 100) == 0);
        unlink(path);
    }
    return failures != 0;
}
