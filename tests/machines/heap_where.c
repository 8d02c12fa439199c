/* An unmodified program: how much of its heap is on the NUMA node that its argument names, asked of
   the kernel. Ends with 1 when less than 99 % is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long there = 0;
static long pages = 0;

static void look_at(char* block, size_t bytes, int node) {
    for (uintptr_t page = (uintptr_t)block & ~(uintptr_t)4095; page < (uintptr_t)block + bytes;
         page += 4096) {
        void* address = (void*)page;
        int status = -1;
        if (syscall(SYS_move_pages, 0, 1UL, &address, NULL, &status, 0) == 0) {
            there += status == node;
            ++pages;
        }
    }
}

int main(int count, char** words) {
    const int node = count == 2 ? atoi(words[1]) : -1;
    for (size_t bytes = 100; bytes < 9000000; bytes *= 3) {
        for (int i = 0; i < 3; ++i) {
            char* block = malloc(bytes);
            memset(block, 1, bytes);
            look_at(block, bytes, node);
            block = realloc(block, bytes * 2);
            memset(block, 1, bytes * 2);
            look_at(block, bytes * 2, node);
            if (i != 0) {
                free(block);
            }
        }
    }
    const double percent = pages != 0 ? 100.0 * (double)there / (double)pages : 0;
    printf("heap: %.2f %% of %ld pages on node %d\n", percent, pages, node);
    return percent >= 99 ? 0 : 1;
}
