/* MPI_Alloc_mem with the info keys that say what memory is wanted, and how it is aligned. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            ++failures;                                                                            \
        }                                                                                          \
    } while (0)

static int class_of(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static int allocate(const char* key, const char* value, MPI_Aint bytes, char** memory) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    int code = MPI_Alloc_mem(bytes, info, (void*)memory);
    MPI_Info_free(&info);
    return code;
}

/* The value of a key, "" if it is not there; until the next call. Frees the info. */
static const char* value_of(MPI_Info info, const char* key) {
    static char text[256];
    int length = sizeof text, found = 0;
    MPI_Info_get_string(info, key, &length, text, &found);
    if (info != MPI_INFO_ENV) {
        MPI_Info_free(&info);
    }
    return found ? text : "";
}

/* What kinds of memory buffers may be in: as mpiexec was asked, and a session. */
static void kinds_of_memory(const char* expected) {
    const char* key = "mpi_memory_alloc_kinds";
    const char* assertion = "mpi_assert_memory_alloc_kinds";
    MPI_Info info;
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    EXPECT(strcmp(value_of(info, key), expected != NULL ? expected : "mpi,system") == 0);
    EXPECT((value_of(MPI_INFO_ENV, key)[0] != '\0') == (expected != NULL));

    MPI_Session session;
    MPI_Info_create(&info);
    MPI_Info_set(info, key,
                 "stone, mpi:alloc_mem ,system:special,mpi:stone,system:,mpi:alloc_mem:,,"
                 "mpi:alloc_mem:alloc_mem,mpi:,mpi");
    EXPECT(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    EXPECT(strcmp(value_of(info, key), "mpi,system,mpi:alloc_mem") == 0);
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "kinds", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Comm_get_info(comm, &info);
    EXPECT(strcmp(value_of(info, key), "mpi,system,mpi:alloc_mem") == 0);

    /* What buffers will be in, of kinds that there are. */
    MPI_Info_create(&info);
    MPI_Info_set(info, assertion, "mpi:alloc_mem");
    MPI_Comm_set_info(comm, info);
    MPI_Info used;
    MPI_Comm_get_info(comm, &used);
    EXPECT(strcmp(value_of(used, assertion), "mpi:alloc_mem") == 0);
    const char* wrong[] = {"system,stone", "mpi,", "system:", "mpi:alloc_mem:", ",mpi"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        MPI_Info_set(info, assertion, wrong[i]);
        MPI_Comm_set_info(comm, info);
        MPI_Comm_get_info(comm, &used);
        EXPECT(strcmp(value_of(used, assertion), "") == 0);
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char* plain = NULL;
    char* memory = NULL;
    EXPECT(MPI_Alloc_mem(0, MPI_INFO_NULL, (void*)&plain) == MPI_SUCCESS && plain != NULL);
    for (MPI_Aint bytes = 0; bytes < 10000000; bytes = bytes * 7 + 1) {
        EXPECT(allocate("warren_memory", "bandwidth,capacity", bytes, &memory) == MPI_SUCCESS);
        if (failures != 0) {
            break;
        }
        EXPECT((uintptr_t)memory % 64 == 0);
        memset(memory, 1, (size_t)bytes);
        EXPECT(MPI_Free_mem(memory) == MPI_SUCCESS);
    }
    EXPECT(allocate("warren_memory", "full=perhaps", 10, &memory) != MPI_SUCCESS &&
           class_of(allocate("warren_memory", "full=perhaps", 10, &memory)) == MPI_ERR_INFO_VALUE);
    EXPECT(class_of(allocate("warren_memory", "latency full=strict", (MPI_Aint)1 << 44, &memory)) ==
           MPI_ERR_NO_MEM);
    EXPECT(allocate("mpi_minimum_memory_alignment", "8192", 10, &memory) == MPI_SUCCESS);
    EXPECT((uintptr_t)memory % 8192 == 0);
    MPI_Free_mem(memory);
    EXPECT(class_of(allocate("mpi_minimum_memory_alignment", "100", 10, &memory)) ==
           MPI_ERR_INFO_VALUE);
    EXPECT(allocate("a_key_of_others", "whatever", 10, &memory) == MPI_SUCCESS);
    MPI_Free_mem(memory);
    MPI_Free_mem(plain);

    kinds_of_memory(getenv("EXPECT_KINDS"));
    MPI_Finalize();
    return failures != 0;
}
