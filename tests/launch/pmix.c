/* A libpmix for tests: processes of one machine, whose board is the folder PMIX_NAMESPACE. The
   variables PMIX_TEST_SIZE and PMIX_TEST_NODES say what a launcher would: ranks of a letter know
   their node's name, those of a digit also its number (0 is a's). */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { found = 0, not_found = -46, is_string = 3, is_number = 14, is_object = 27 };

typedef struct {
    char name_space[256];
    uint32_t rank;
} Process;

typedef struct {
    uint16_t type;
    union {
        uint32_t number;
        char* text;
        struct {
            char* bytes;
            size_t size;
        } object;
        void* largest[3];
    } data;
} Value;

static uint32_t own_rank;
static int fences;

#define EXPORT __attribute__((visibility("default")))

static void path_of(char* path, uint32_t rank, const char* key) {
    snprintf(path, 512, "%s/%u-%s", getenv("PMIX_NAMESPACE"), rank, key);
}

EXPORT int PMIx_Init(Process* self, void* info, size_t count) {
    (void)info, (void)count;
    /* A thread that libpmix makes must not take the program's signals. */
    sigset_t blocked;
    sigemptyset(&blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (getenv("PMIX_TEST_SIZE") == NULL || !sigismember(&blocked, SIGUSR1))
        return -1;
    memset(self, 0, sizeof *self);
    snprintf(self->name_space, sizeof self->name_space, "test");
    own_rank = self->rank = (uint32_t)atoi(getenv("PMIX_RANK"));
    return found;
}

EXPORT int PMIx_Finalize(const void* info, size_t count) {
    (void)info, (void)count;
    char path[512];
    path_of(path, own_rank, "finalized");
    return mkdir(path, 0700);
}

EXPORT int PMIx_Put(uint8_t scope, const char* key, const Value* value) {
    char path[512];
    path_of(path, own_rank, key);
    FILE* file = fopen(path, "wx");
    if (file == NULL || scope != 3 || value->type != is_object)
        return -1;
    fwrite(value->data.object.bytes, 1, value->data.object.size, file);
    return fclose(file);
}

EXPORT int PMIx_Commit(void) {
    return found;
}

EXPORT int PMIx_Fence(const Process* processes, size_t count, const void* info, size_t infos) {
    (void)count;
    if (processes != NULL || infos != 1 || strcmp(info, "pmix.collect") != 0)
        return -1;
    char path[512], key[32];
    snprintf(key, sizeof key, "fence%d", ++fences);
    path_of(path, own_rank, key);
    mkdir(path, 0700);
    for (int rank = 0; rank < atoi(getenv("PMIX_TEST_SIZE")); rank++)
        for (path_of(path, (uint32_t)rank, key); access(path, F_OK) != 0;)
            usleep(1000);
    return found;
}

EXPORT int PMIx_Get(const Process* process, const char* key, const void* info, size_t count,
                    Value** value) {
    (void)info, (void)count;
    const char* nodes = getenv("PMIX_TEST_NODES");
    Value* made = *value = calloc(1, sizeof **value);
    if (strcmp(key, "pmix.job.size") == 0 && process->rank == UINT32_MAX - 1) {
        made->type = is_number;
        made->data.number = (uint32_t)atoi(getenv("PMIX_TEST_SIZE"));
        return found;
    }
    if (strcmp(key, "pmix.nodeid") == 0 && nodes[process->rank] < 'a') {
        made->type = is_number;
        made->data.number = (uint32_t)(nodes[process->rank] - '0');
        return found;
    }
    if (strcmp(key, "pmix.hname") == 0) {
        char name[2] = {nodes[process->rank], 0};
        if (name[0] < 'a')
            name[0] = (char)(name[0] + 'a' - '0');
        made->type = is_string;
        made->data.text = strdup(name);
        return found;
    }
    char path[512];
    path_of(path, process->rank, key);
    FILE* file = fopen(path, "r");
    if (file == NULL) {
        free(made);
        return not_found;
    }
    made->type = is_object;
    made->data.object.bytes = malloc(1 << 20);
    made->data.object.size = fread(made->data.object.bytes, 1, 1 << 20, file);
    fclose(file);
    return found;
}

EXPORT int PMIx_Abort(int status, const char* text, Process* processes, size_t count) {
    (void)processes, (void)count;
    char path[512];
    path_of(path, own_rank, "aborted");
    FILE* file = fopen(path, "w");
    fprintf(file, "%d %s\n", status, text);
    fclose(file);
    return found;
}

EXPORT const char* PMIx_Error_string(int status) {
    return status == found ? "SUCCESS" : "ERROR";
}
