// Lives of processes, threads and memory.
//     counts_lives kill         writes a page 1,000 times, says so, and waits to be killed
//     counts_lives fork         a child that writes, and one that executes this program again
//     counts_lives threads      200 threads, of which 100 are there when the process ends
//     counts_lives mappings     the same addresses, mapped again and again
//     counts_lives known        memory that was there before it is touched, then other memory in
//     its
//                               place, which was not
//     counts_lives huge         a byte of a TiB, mapped again and again
//     counts_lives exit N | signal N

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expectation.h"

static volatile char* page;
static pthread_barrier_t barrier;

static void write_times(volatile char* at, int times) {
    for (int time = 0; time < times; ++time) {
        *at = 1;
    }
}

static void* write_one(void* argument) {
    write_times(page, 10);
    if (argument != NULL) {
        pthread_barrier_wait(&barrier);
        for (;;) {
            pause();
        }
    }
    return NULL;
}

static void many_threads(void) {
    enum { half = 100 };
    pthread_t id;
    for (int thread = 0; thread < half; ++thread) {
        pthread_create(&id, NULL, write_one, NULL);
        pthread_join(id, NULL);
    }
    pthread_barrier_init(&barrier, NULL, half + 1);
    for (int thread = 0; thread < half; ++thread) {
        pthread_create(&id, NULL, write_one, &barrier);
    }
    pthread_barrier_wait(&barrier);
    printf("page %lx\n", (unsigned long)(uintptr_t)page);
    fflush(stdout);
    exit(0);
}

static void mappings(void) {
    enum { turns = 5 };
    char* const place = mmap((void*)0x300000000000, 4 * page_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int turn = 0; turn < turns; ++turn) {
        write_times(place, 100);
        munmap(place, 4 * page_bytes);
        mmap(place, 4 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0);
        expect_first(place, 0, 1); // each time
    }
    expect(place, 0, 0, turns * 100, 0, turns * 100);
    write_times(place + page_bytes, 10);
    madvise(place + page_bytes, page_bytes, MADV_DONTNEED);
    write_times(place + page_bytes, 10);
    expect(place + page_bytes, 0, 0, 20, 0, 20);
    expect_first(place + page_bytes, 0, 1);
    expect_first(place + page_bytes, 0, 1);
    enum { dontneed_locked = 24 }; // since Linux 5.18
    if (madvise(place + 3 * page_bytes, page_bytes, dontneed_locked) == 0) {
        for (int turn = 0; turn < 2; ++turn) {
            write_times(place + 3 * page_bytes, 10);
            madvise(place + 3 * page_bytes, page_bytes, dontneed_locked);
            expect_first(place + 3 * page_bytes, 0, 1);
        }
    }
    // The mapping is refused a second page, gives back what lies behind, and only then moves.
    char* const moved = place + 2 * page_bytes;
    write_times(moved, 10);
    mremap(moved, page_bytes, 2 * page_bytes, 0);
    write_times(moved, 10);
    mremap(moved, 2 * page_bytes, page_bytes, 0);
    write_times(moved, 10);
    expect_first(moved, 0, 1);
    mremap(moved, page_bytes, page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place + 8 * page_bytes);
    mmap(moved, page_bytes, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    write_times(moved, 10);
    expect_first(moved, 0, 1);
    expect(moved, 0, 0, 40, 0, 40);
}

enum { known_pages = 64 }; // from a multiple of so many: what is asked about at once

// Maps new memory at a free place.
static void map_new(char* place) {
    if (mmap(place, (size_t)known_pages * page_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != place) {
        exit(1);
    }
}

// One access to an existing page makes all neighbouring pages known. This knowledge must end when
// the pages do.
static void known(void) {
    char* const place = (char*)0x300000000000;
    const size_t bytes = (size_t)known_pages * page_bytes;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_FIXED_NOREPLACE;
    mmap(place, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    write_times(place, 10);
    expect_late(place);
    munmap(place, bytes);
    map_new(place);
    write_times(place + page_bytes, 10);
    expect_first(place + page_bytes, 0, 1);

    const int zeros = open("/dev/zero", O_RDONLY);
    if (read(zeros, place, bytes) != (ssize_t)bytes) {
        exit(1);
    }
    write_times(place + 2 * page_bytes, 10);
    expect_late(place + 2 * page_bytes);
    madvise(place, bytes, MADV_DONTNEED);
    write_times(place + 3 * page_bytes, 10);
    expect_first(place + 3 * page_bytes, 0, 1);
    munmap(place, bytes);

    const int segment = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    if (segment >= 0) {
        char* const shared = shmat(segment, NULL, 0);
        memset(shared, 1, bytes); // so it has pages
        shmdt(shared);
        shmat(segment, place, 0);
        shmctl(segment, IPC_RMID, NULL);
        write_times(place + 4 * page_bytes, 10);
        expect_late(place + 4 * page_bytes);
        shmdt(place);
        map_new(place);
        write_times(place + 5 * page_bytes, 10);
        expect_first(place + 5 * page_bytes, 0, 1);
    }
}

// With units of 64 bytes the tables repeat every 128 GiB. The byte's unit must not share a piece of
// them with the program's other memory.
static volatile char* alone_in(char* tebibyte) {
    const uintptr_t piece = (uintptr_t)512 << 20;
    const uintptr_t pieces = 256;
    unsigned char taken[256] = {0};
    FILE* const maps = fopen("/proc/self/maps", "r");
    unsigned long begin = 0;
    unsigned long end = 0;
    while (fscanf(maps, "%lx-%lx%*[^\n]", &begin, &end) == 2) {
        for (uintptr_t at = begin / piece; at <= (end - 1) / piece && end - begin < 64 * piece;
             ++at) {
            taken[at % pieces] = 1;
        }
    }
    fclose(maps);
    char* at = (char*)(((uintptr_t)tebibyte / piece + 600) * piece + 5 * page_bytes);
    while (taken[(uintptr_t)at / piece % pieces] != 0) {
        at += piece;
    }
    return at;
}

static void huge(void) {
    enum { lives = 8 };
    const size_t tebibyte = (size_t)1 << 40;
    char* const place = (char*)0x300000000000;
    volatile char* byte = NULL;
    for (int life = 0; life < lives; ++life) {
        if (mmap(place, tebibyte, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                 0) != place) {
            exit(77); // of this machine's address space, or its limits
        }
        byte = byte == NULL ? alone_in(place) : byte;
        write_times(byte, 100 + life);
        expect_first(byte, 0, 1);
        expect_in(place, life, byte, 0, 0, 100 + life, 0, 100 + life);
        munmap(place, tebibyte);
    }
    const unsigned long writes = lives * 100 + lives * (lives - 1) / 2;
    expect(byte, 0, 0, writes, 0, writes);
}

int main(int count, char** words) {
    page = aligned_alloc(page_bytes, page_bytes);
    const char* const what = count > 1 ? words[1] : "";
    const int number = count > 2 ? atoi(words[2]) : 0;
    if (strcmp(what, "kill") == 0) {
        write_times(page, 1000);
        printf("page %lx\n", (unsigned long)(uintptr_t)page);
        fflush(stdout);
        for (;;) {
            usleep(20000); // it is saved in system calls
        }
    } else if (strcmp(what, "fork") == 0) {
        write_times(page, 1);
        printf("page %lx\n", (unsigned long)(uintptr_t)page);
        fflush(stdout);
        if (fork() == 0) {
            write_times(page, 2000);
            _exit(3);
        }
        wait(NULL);
        if (fork() == 0) {
            execl(words[0], words[0], "exit", "4", (char*)NULL);
            _exit(127);
        }
        wait(NULL);
    } else if (strcmp(what, "threads") == 0) {
        many_threads();
    } else if (strcmp(what, "mappings") == 0) {
        mappings();
    } else if (strcmp(what, "known") == 0) {
        known();
    } else if (strcmp(what, "huge") == 0) {
        huge();
    } else if (strcmp(what, "exit") == 0) {
        exit(number);
    } else if (strcmp(what, "signal") == 0) {
        write_times(page, 500);
        printf("page %lx\n", (unsigned long)(uintptr_t)page);
        fflush(stdout);
        raise(number);
    }
    return 0;
}
