/* What libraries of other ABIs have beside the standard: handles as Fortran's integers, removed
 * calls, conversions of statuses, limits of strings; and wrong input of all sorts. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* Not in the generated header. */
typedef void OldHandler(MPI_Comm*, int*, ...);
int MPI_Comm_c2f(MPI_Comm);
MPI_Comm MPI_Comm_f2c(int);
int MPI_Type_c2f(MPI_Datatype);
MPI_Datatype MPI_Type_f2c(int);
int MPI_Op_c2f(MPI_Op);
MPI_Op MPI_Op_f2c(int);
int MPI_Group_c2f(MPI_Group);
MPI_Group MPI_Group_f2c(int);
int MPI_Request_c2f(MPI_Request);
MPI_Request MPI_Request_f2c(int);
int MPI_Status_c2f(const MPI_Status*, int*);
int MPI_Status_f2c(const int*, MPI_Status*);
int MPI_Address(void*, MPI_Aint*);
int MPI_Type_extent(MPI_Datatype, MPI_Aint*);
int MPI_Type_lb(MPI_Datatype, MPI_Aint*);
int MPI_Type_ub(MPI_Datatype, MPI_Aint*);
int MPI_Type_struct(int, int*, MPI_Aint*, MPI_Datatype*, MPI_Datatype*);
int MPI_Type_hvector(int, int, MPI_Aint, MPI_Datatype, MPI_Datatype*);
int MPI_Type_hindexed(int, int*, MPI_Aint*, MPI_Datatype, MPI_Datatype*);
int MPI_Errhandler_create(OldHandler*, MPI_Errhandler*);
int MPI_Errhandler_set(MPI_Comm, MPI_Errhandler);
int MPI_Errhandler_get(MPI_Comm, MPI_Errhandler*);
int MPIX_Query_cuda_support(void);
#ifdef WARREN_OPENMPI
int MPIX_Barrier_init(MPI_Comm, MPI_Info, MPI_Request*);
#else
int MPIX_GPU_query_support(int, int*);
#endif

static int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

static int handled;
static int handled_class;

static void handler(MPI_Comm* comm, int* code, ...) {
    CHECK(*comm == MPI_COMM_WORLD);
    handled_class = class_of(*code);
    ++handled;
}

/* Of extensions: programs look up all that their mpi.h names, and use types of the compiler. */
static void more_than_the_standard(void) {
#ifdef WARREN_OPENMPI
    static const int classes[] = {75, 76, 77};
    extern char ompi_mpi_short_float[];
    const MPI_Datatype half = (MPI_Datatype)(void*)ompi_mpi_short_float;
#else
    static const int classes[] = {101, 102, 103, 104, 105, 106, 107};
    const MPI_Datatype half = (MPI_Datatype)0x4c000246;
#endif
    for (unsigned i = 0; i < sizeof classes / sizeof *classes; ++i) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        CHECK(class_of(classes[i]) == classes[i]);
        CHECK(MPI_Error_string(classes[i], text, &length) == MPI_SUCCESS);
        CHECK(strncmp(text, "MPI", 3) == 0 && (int)strlen(text) == length);
    }
    int bytes = 0;
    MPI_Datatype copy;
    CHECK(MPI_Type_size(half, &bytes) == MPI_SUCCESS && bytes == 2);
    CHECK(MPI_Type_dup(half, &copy) == MPI_SUCCESS && MPI_Type_free(&copy) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(2, half, &copy) == MPI_SUCCESS);
    int integer;
    MPI_Aint address;
    MPI_Datatype inner;
    CHECK(MPI_Type_get_contents(copy, 1, 0, 1, &integer, &address, &inner) == MPI_SUCCESS);
    CHECK(inner == half && MPI_Type_free(&copy) == MPI_SUCCESS);
#if defined(__FLT16_MAX__) /* clang 14 has no such numbers on x86-64, and Warren compiled by it    \
                              none */
    __extension__ _Float16 ones[2] = {1, 1}, sums[2] = {0, 0};
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(MPI_Allreduce(ones, sums, 2, half, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sums[0] == size && sums[1] == size);
#endif
}

static void fortran_integers(void) {
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_NULL)) == MPI_COMM_NULL);
    CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
    CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_MAXLOC)) == MPI_MAXLOC);
    CHECK(MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(made)) == made);
    MPI_Group group;
    MPI_Comm_group(made, &group);
    CHECK(MPI_Group_f2c(MPI_Group_c2f(group)) == group);
    MPI_Group_free(&group);
    CHECK(group == MPI_GROUP_NULL);
    MPI_Datatype type;
    MPI_Type_contiguous(3, MPI_INT, &type);
    CHECK(MPI_Type_f2c(MPI_Type_c2f(type)) == type);
    MPI_Type_free(&type);
    MPI_Comm_free(&made);
    CHECK(made == MPI_COMM_NULL);
}

static void removed_calls(void) {
    MPI_Aint address = 0;
    CHECK(MPI_Address(&address, &address) == MPI_SUCCESS && address == (MPI_Aint)&address);
    /* An address is a value, whatever constants of the ABI have the same. */
    MPI_Get_address((void*)-1, &address);
    CHECK(address == -1);
    int lengths[2] = {1, 2};
    MPI_Aint places[2] = {4, 16};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype made;
    MPI_Aint lower, upper, extent;
    MPI_Type_struct(2, lengths, places, types, &made);
    MPI_Type_lb(made, &lower);
    MPI_Type_ub(made, &upper);
    MPI_Type_extent(made, &extent);
    /* The extent is a multiple of the largest alignment, that of double. */
    CHECK(lower == 4 && upper == 36 && extent == 32);
    MPI_Type_free(&made);
    MPI_Type_hvector(2, 1, 20, MPI_INT, &made);
    MPI_Type_extent(made, &extent);
    CHECK(extent == 24);
    MPI_Type_free(&made);
    MPI_Type_hindexed(2, lengths, places, MPI_INT, &made);
    MPI_Type_extent(made, &extent);
    CHECK(extent == 20);
    MPI_Type_free(&made);

    MPI_Errhandler old, own;
    MPI_Errhandler_create(handler, &own);
    MPI_Errhandler_get(MPI_COMM_WORLD, &old);
    CHECK(old == MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_set(MPI_COMM_WORLD, own);
    handled = 0;
    int rank;
    CHECK(class_of(MPI_Send(&rank, -1, MPI_INT, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
    CHECK(handled == 1 && handled_class == MPI_ERR_COUNT);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&own);
    CHECK(own == MPI_ERRHANDLER_NULL);
}

/* Each refused with the class of the ABI, and nothing crashes. */
static void wrong_handles(void) {
    int value = 0;
    const long inventions[] = {
        0,  1,          7,          0x44000007, 0x4c00ffff, 0xc0000000, 0xdeadbeef,
        -1, 0x8c00000f, 0x7fffffff, 0x1000,     0x400000,   0x1fff,     (long)0x8000000000000203};
    for (size_t i = 0; i < sizeof inventions / sizeof *inventions; ++i) {
        const long bits = inventions[i];
        CHECK(class_of(MPI_Send(&value, 1, MPI_INT, 0, 0, (MPI_Comm)bits)) == MPI_ERR_COMM);
        CHECK(class_of(MPI_Send(&value, 1, (MPI_Datatype)bits, 0, 0, MPI_COMM_WORLD)) ==
              MPI_ERR_TYPE);
        CHECK(class_of(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, (MPI_Op)bits,
                                     MPI_COMM_WORLD)) == MPI_ERR_OP);
        MPI_Request request = (MPI_Request)bits;
        CHECK(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_REQUEST);
        CHECK(request == (MPI_Request)bits);
        MPI_Request requests[] = {MPI_REQUEST_NULL, request};
        CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
        CHECK(requests[1] == request);
        MPI_Group group = (MPI_Group)bits;
        CHECK(class_of(MPI_Group_size(group, &value)) == MPI_ERR_GROUP);
    }
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Comm_rank(MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_dup(MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Waitall(-2, NULL, MPI_STATUSES_IGNORE)) != MPI_SUCCESS);
    /* A handle that is gone, and one that has come in its place. */
    MPI_Comm first, second;
    MPI_Comm_dup(MPI_COMM_SELF, &first);
    const MPI_Comm gone = first;
    MPI_Comm_free(&first);
    CHECK(class_of(MPI_Comm_rank(gone, &value)) == MPI_ERR_COMM);
    MPI_Comm_dup(MPI_COMM_SELF, &second);
    CHECK(class_of(MPI_Comm_rank(gone, &value)) == MPI_ERR_COMM);
    CHECK(MPI_Comm_rank(second, &value) == MPI_SUCCESS);
    MPI_Comm_free(&second);
}

/* Numbers that are constants of the standard ABI only mean nothing here. */
static void wrong_numbers(void) {
    int value = 0;
    for (int peer = -5; peer < 0; ++peer) {
        if (peer != MPI_PROC_NULL) {
            CHECK(class_of(MPI_Send(&value, 1, MPI_INT, peer, 0, MPI_COMM_WORLD)) == MPI_ERR_RANK);
        }
    }
    for (int tag = -5; tag < 0; ++tag) {
        CHECK(class_of(MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD)) == MPI_ERR_TAG);
    }
    int keyval = 501;
    CHECK(class_of(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &keyval, &value)) == MPI_ERR_KEYVAL);
}

/* Exactly as many statuses as requests, in memory of their own: sanitizers see what is written
 * else. */
static void statuses(int rank, int size) {
    enum { most = 200 };
    static int sent[most], received[most];
    for (int number = 1; number <= most; number = number * 3 + 1) {
        MPI_Request* requests = malloc(2 * (size_t)number * sizeof *requests);
        MPI_Status* array = malloc(2 * (size_t)number * sizeof *array);
        memset(array, 0x77, 2 * (size_t)number * sizeof *array);
        for (int i = 0; i < number; ++i) {
            MPI_Irecv(&received[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD,
                      &requests[i]);
            sent[i] = rank * 1000 + i;
            MPI_Isend(&sent[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD,
                      &requests[number + i]);
        }
        CHECK(MPI_Waitall(2 * number, requests, array) == MPI_SUCCESS);
        for (int i = 0; i < number; ++i) {
            int count = -1;
            MPI_Get_count(&array[i], MPI_INT, &count);
            CHECK(array[i].MPI_SOURCE == (rank + size - 1) % size && array[i].MPI_TAG == i);
            CHECK(count == 1 && requests[i] == MPI_REQUEST_NULL);
            CHECK(requests[number + i] == MPI_REQUEST_NULL);
            CHECK(received[i] == (rank + size - 1) % size * 1000 + i);
        }
        free(array);
        free(requests);
    }
    /* To Fortran and back. */
    MPI_Status status, copy;
    int words[sizeof(MPI_Status) / sizeof(int)];
    memset(&status, 0, sizeof status);
    MPI_Sendrecv(&sent[0], 3, MPI_INT, rank, 5, &received[0], 5, MPI_INT, rank, 5, MPI_COMM_WORLD,
                 &status);
    MPI_Status_c2f(&status, words);
    MPI_Status_f2c(words, &copy);
    int count = -1;
    MPI_Get_count(&copy, MPI_INT, &count);
    CHECK(count == 3 && copy.MPI_SOURCE == rank && copy.MPI_TAG == 5);
}

/* The longest strings come with their null character into places of the ABI's length. */
static void strings(void) {
    struct {
        char text[MPI_MAX_OBJECT_NAME];
        char guard[8];
    } name;
    char longest[400];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    memset(name.guard, 0x55, sizeof name.guard);
    int length = -1;
    MPI_Comm_set_name(MPI_COMM_SELF, longest);
    MPI_Comm_get_name(MPI_COMM_SELF, name.text, &length);
    CHECK(length <= MPI_MAX_OBJECT_NAME - 1 && name.text[length] == 0 && name.guard[0] == 0x55);
    CHECK(length >= 63 && strlen(name.text) == (size_t)length);
    struct {
        char text[MPI_MAX_ERROR_STRING];
        char guard[8];
    } error;
    memset(error.guard, 0x55, sizeof error.guard);
    const int code = MPI_Send(NULL, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Error_string(code, error.text, &length);
    CHECK(strlen(error.text) == (size_t)length && strstr(error.text, "count") != NULL);
    CHECK(error.guard[0] == 0x55);
    char* processor = malloc(MPI_MAX_PROCESSOR_NAME);
    MPI_Get_processor_name(processor, &length);
    CHECK(length > 0 && strlen(processor) == (size_t)length);
    free(processor);
    char* version = malloc(MPI_MAX_LIBRARY_VERSION_STRING);
    MPI_Get_library_version(version, &length);
    CHECK(length > 0 && strlen(version) == (size_t)length);
    free(version);
}

/* The longest key and value come back whole; places of the ABI's lengths suffice for all. */
static void strings_of_infos(void) {
    char* key = malloc(MPI_MAX_INFO_KEY);
    char* value = malloc(MPI_MAX_INFO_VAL);
    char* found_key = malloc(MPI_MAX_INFO_KEY);
    char* found_value = malloc(MPI_MAX_INFO_VAL);
    memset(key, 'k', MPI_MAX_INFO_KEY - 1);
    key[MPI_MAX_INFO_KEY - 1] = 0;
    memset(value, 'v', MPI_MAX_INFO_VAL - 1);
    value[MPI_MAX_INFO_VAL - 1] = 0;
    MPI_Info info;
    int found = 0;
    MPI_Info_create(&info);
    CHECK(MPI_Info_set(info, key, value) == MPI_SUCCESS);
    CHECK(MPI_Info_get_nthkey(info, 0, found_key) == MPI_SUCCESS && strcmp(found_key, key) == 0);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL - 1, found_value, &found);
    CHECK(found && strcmp(found_value, value) == 0);
    MPI_Info_free(&info);
    free(key);
    free(value);
    free(found_key);
    free(found_value);
}

static void errors_of_the_program(void) {
    int error_class = 0, code = 0, found = 0;
    int* last;
    MPI_Add_error_class(&error_class);
    CHECK(error_class > MPI_ERR_LASTCODE);
    MPI_Add_error_code(error_class, &code);
    CHECK(code > MPI_ERR_LASTCODE && class_of(code) == error_class);
    MPI_Add_error_string(code, "a failure of the program");
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(strcmp(text, "a failure of the program") == 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found);
    CHECK(found && *last >= code);
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
}

/* What Warren lacks is there, and its error comes through the handler. */
static void missing(void) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Errhandler own;
    MPI_Errhandler_create(handler, &own);
    MPI_Errhandler_set(MPI_COMM_WORLD, own);
    handled = 0;
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_spawn_multiple(0, NULL, NULL, NULL, NULL, 0, MPI_COMM_WORLD, &other, NULL);
    CHECK(handled >= 1);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&own);
    (void)port;
    CHECK(MPIX_Query_cuda_support() == 0);
}

static void forgiving(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    *code = MPI_SUCCESS;
    ++handled;
}

/* A failed call that returns MPI_SUCCESS, as the error handler wants it, has written nothing. */
static void forgiven(void) {
    const int size = 4, part = 2, start = 1;
    MPI_Errhandler own;
    MPI_Errhandler_create(forgiving, &own);
    MPI_Errhandler_set(MPI_COMM_SELF, own);
    MPI_Datatype made, of_which = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(1, &size, &part, &start, MPI_ORDER_C, MPI_INT, &made);
    const int untouched = 12; /* the standard ABI's MPI_ORDER_C, which would be translated */
    int integers[5] = {untouched, -1, -2, -3, -4};
    handled = 0;
    CHECK(MPI_Type_get_contents(made, 1, 0, 1, integers, NULL, &of_which) == MPI_SUCCESS);
    CHECK(handled == 1 && integers[0] == untouched && of_which == MPI_DATATYPE_NULL);
    CHECK(MPI_Type_get_contents(made, 5, 0, 1, integers, NULL, &of_which) == MPI_SUCCESS);
    CHECK(handled == 1 && integers[4] == MPI_ORDER_C && of_which == MPI_INT);
    MPI_Type_free(&made);
    MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&own);
}

/* What one of the libraries has beside the standard. */
static void extensions(void) {
#ifdef WARREN_OPENMPI
    MPI_Request request;
    CHECK(MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
#else
    int size = 0, integers = 0, addresses = 0, types = 0, combiner = 0;
    MPI_Datatype copy, original;
    CHECK(MPI_Type_size(MPIX_C_FLOAT16, &size) == MPI_SUCCESS && size == 2);
    MPI_Type_dup(MPIX_C_FLOAT16, &copy);
    MPI_Type_get_envelope(copy, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_DUP && types == 1);
    MPI_Type_get_contents(copy, 0, 0, 1, NULL, NULL, &original);
    CHECK(original == MPIX_C_FLOAT16);
    MPI_Type_free(&copy);
    int supported = -1;
    CHECK(MPIX_GPU_query_support(0, &supported) == MPI_SUCCESS && supported == 0);
    void* buffer = NULL;
    int bytes = -1;
    CHECK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    CHECK(MPI_Buffer_detach(&buffer, &bytes) == MPI_SUCCESS && buffer == MPI_BUFFER_AUTOMATIC);
#endif
}

int main(int argc, char** argv) {
    int rank, size, level = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    more_than_the_standard();
    fortran_integers();
    removed_calls();
    wrong_handles();
    wrong_numbers();
    statuses(rank, size);
    strings();
    strings_of_infos();
    errors_of_the_program();
    missing();
    forgiven();
    extensions();
    MPI_Finalize();
    return failures != 0;
}
