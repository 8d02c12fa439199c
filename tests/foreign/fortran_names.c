/* The procedures of Fortran, called as compilers call them: everything by reference, handles as
 * INTEGERs, lengths of strings behind all arguments, constants that are places in common blocks. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* The program's own blocks, which the library shares. */
#pragma GCC visibility push(default)
#ifdef WARREN_OPENMPI
int mpi_fortran_bottom_;
int mpi_fortran_in_place_;
int mpi_fortran_status_ignore_[6];
int mpi_fortran_statuses_ignore_[6];
#define IN_PLACE (&mpi_fortran_in_place_)
#define STATUS_IGNORE mpi_fortran_status_ignore_
#define STATUSES_IGNORE mpi_fortran_statuses_ignore_
enum {
    status_size = 6,
    source_word = 0,
    tag_word = 1,
    world = 0,
    null_comm = 2,
    integer = 7,
    double_precision = 17,
    sum = 3,
    null_request = 0,
    null_info = 0,
    tag_ub = 0,
    errors_return = 2
};
#else
struct {
    int bottom, in_place, status_ignore[5];
} mpipriv1_;
struct {
    int statuses_ignore[5], errcodes_ignore[1];
} mpipriv2_;
#define IN_PLACE (&mpipriv1_.in_place)
#define STATUS_IGNORE mpipriv1_.status_ignore
#define STATUSES_IGNORE mpipriv2_.statuses_ignore
enum {
    status_size = 5,
    source_word = 2,
    tag_word = 3,
    world = 0x44000000,
    null_comm = 0x04000000,
    integer = 0x4c00041b,
    double_precision = 0x4c00081f,
    sum = 0x58000003,
    null_request = 0x2c000000,
    null_info = 0x1c000000,
    tag_ub = 0x64400002,
    errors_return = 0x54000001
};
#endif
#pragma GCC visibility pop

void mpi_init_(int*);
void mpi_finalize_(int*);
void mpi_comm_rank_(const int*, int*, int*);
void mpi_comm_size__(const int*, int*, int*);
void mpi_comm_dup(const int*, int*, int*);
void MPI_COMM_FREE(int*, int*);
void mpi_comm_split_(const int*, const int*, const int*, int*, int*);
void mpi_allreduce_(const void*, void*, const int*, const int*, const int*, const int*, int*);
void mpi_sendrecv_(const void*, const int*, const int*, const int*, const int*, void*, const int*,
                   const int*, const int*, const int*, const int*, int*, int*);
void mpi_isend_(const void*, const int*, const int*, const int*, const int*, const int*, int*,
                int*);
void mpi_irecv_(void*, const int*, const int*, const int*, const int*, const int*, int*, int*);
void mpi_waitall_(const int*, int*, int*, int*);
void mpi_waitany_(const int*, int*, int*, int*, int*);
void mpi_waitsome_(const int*, int*, int*, int*, int*, int*);
void mpi_info_create_(int*, int*);
void mpi_info_set_(const int*, const char*, const char*, int*, size_t, size_t);
void mpi_info_get_(const int*, const char*, const int*, char*, int*, int*, size_t, size_t);
void mpi_info_free_(int*, int*);
void mpi_comm_spawn_(const char*, const char*, const int*, const int*, const int*, const int*, int*,
                     int*, int*, size_t, size_t);
void mpi_type_get_contents_(const int*, const int*, const int*, const int*, int*, MPI_Aint*, int*,
                            int*);
void mpi_get_count_(int*, const int*, int*, int*);
void mpi_op_create_(void (*)(void*, void*, int*, int*), const int*, int*, int*);
void mpi_op_free_(int*, int*);
void mpi_comm_set_name_(const int*, const char*, int*, size_t);
void mpi_comm_get_name_(const int*, char*, int*, int*, size_t);
void mpi_comm_create_keyval_(void (*)(void), void (*)(void), int*, MPI_Aint*, int*);
void mpi_comm_set_attr_(const int*, const int*, MPI_Aint*, int*);
void mpi_comm_get_attr_(const int*, const int*, MPI_Aint*, int*, int*);
void mpi_comm_free_keyval_(int*, int*);
void mpi_comm_dup_fn_(void);
void mpi_comm_create_errhandler_(void (*)(int*, int*), int*, int*);
void mpi_comm_set_errhandler_(const int*, int*, int*);
void mpi_send_(const void*, const int*, const int*, const int*, const int*, const int*, int*);
void mpi_error_class_(int*, int*, int*);
void mpi_type_struct_(const int*, int*, int*, int*, int*, int*);
void mpi_type_commit_(int*, int*);
void mpi_type_extent_(int*, int*, int*);
void mpi_type_free_(int*, int*);
double mpi_wtime_(void);

static const int comm = world;

static void in_steps_of_type(void* in, void* inout, int* count, int* type) {
    CHECK(*type == integer);
    for (int i = 0; i < *count; ++i) {
        ((int*)inout)[i] += ((int*)in)[i];
    }
}

static int deleted;
static void on_delete(int* object, int* keyval, MPI_Aint* value, MPI_Aint* extra, int* ierror) {
    CHECK(*value == 42 && *extra == 7);
    (void)object;
    (void)keyval;
    ++deleted;
    *ierror = MPI_SUCCESS;
}

static int handled;
static void on_error(int* object, int* code) {
    int error_class, ierror;
    mpi_error_class_(code, &error_class, &ierror);
    CHECK(*object == world && error_class == MPI_ERR_TAG);
    ++handled;
}

static void messages(int rank, int size) {
    const int one = 1, three = 3, five = 5;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int ierror, status[status_size], count = 0, sent[3] = {rank, 2, 3}, received[5];
    mpi_sendrecv_(sent, &three, &(int){integer}, &right, &five, received, &five, &(int){integer},
                  &left, &five, &comm, status, &ierror);
    mpi_get_count_(status, &(int){integer}, &count, &ierror);
    CHECK(count == 3 && received[0] == left && received[2] == 3);
    CHECK(status[source_word] == left && status[tag_word] == 5);
    mpi_sendrecv_(sent, &three, &(int){integer}, &right, &five, received, &five, &(int){integer},
                  &left, &five, &comm, STATUS_IGNORE, &ierror);
    int requests[2];
    const int two = 2;
    mpi_irecv_(received, &one, &(int){integer}, &left, &one, &comm, &requests[0], &ierror);
    mpi_isend_(sent, &one, &(int){integer}, &right, &one, &comm, &requests[1], &ierror);
    mpi_waitall_(&two, requests, STATUSES_IGNORE, &ierror);
    CHECK(requests[0] == null_request && requests[1] == null_request && received[0] == left);
    /* Indices count from 1. */
    requests[0] = null_request;
    mpi_irecv_(received, &one, &(int){integer}, &rank, &one, &comm, &requests[1], &ierror);
    mpi_send_(sent, &one, &(int){integer}, &rank, &one, &comm, &ierror);
    int index = 0;
    mpi_waitany_(&two, requests, &index, status, &ierror);
    CHECK(index == 2);
    mpi_waitany_(&two, requests, &index, status, &ierror);
    CHECK(index == MPI_UNDEFINED);
}

static void functions(int rank, int size) {
    const int one = 1, yes = 1;
    int ierror, op, value = rank + 1;
    mpi_allreduce_(IN_PLACE, &value, &one, &(int){integer}, &(int){sum}, &comm, &ierror);
    CHECK(value == size * (size + 1) / 2);
    /* Many of them, of which none may be used up. */
    for (int i = 0; i < 200; ++i) {
        mpi_op_create_(in_steps_of_type, &yes, &op, &ierror);
        CHECK(ierror == MPI_SUCCESS);
        value = rank;
        mpi_allreduce_(IN_PLACE, &value, &one, &(int){integer}, &op, &comm, &ierror);
        CHECK(value == size * (size - 1) / 2);
        if (i % 2 == 0) {
            mpi_op_free_(&op, &ierror);
        }
    }
    int keyval, found = 0, copy;
    MPI_Aint extra = 7, attribute = 42, got = 0;
    mpi_comm_create_keyval_(mpi_comm_dup_fn_, (void (*)(void))on_delete, &keyval, &extra, &ierror);
    mpi_comm_set_attr_(&comm, &keyval, &attribute, &ierror);
    mpi_comm_dup(&comm, &copy, &ierror);
    mpi_comm_get_attr_(&copy, &keyval, &got, &found, &ierror);
    CHECK(found && got == 42 && copy != null_comm);
    MPI_COMM_FREE(&copy, &ierror);
    CHECK(copy == null_comm && deleted == 1);
    mpi_comm_free_keyval_(&keyval, &ierror);
    mpi_comm_get_attr_(&comm, &(int){tag_ub}, &got, &found, &ierror);
    CHECK(found && got == 0x7fffffff);
    int handler;
    mpi_comm_create_errhandler_(on_error, &handler, &ierror);
    mpi_comm_set_errhandler_(&comm, &handler, &ierror);
    mpi_send_(&value, &one, &(int){integer}, &rank, &(int){-7}, &comm, &ierror);
    CHECK(handled == 1 && ierror != MPI_SUCCESS);
    mpi_comm_split_(&comm, &(int){MPI_UNDEFINED}, &one, &copy, &ierror);
    CHECK(copy == null_comm);
}

static void strings_and_types(void) {
    int ierror, length = 0, type, extent = 0;
    char name[24];
    mpi_comm_set_name_(&comm, "a name   ", &ierror, 9);
    mpi_comm_get_name_(&comm, name, &length, &ierror, sizeof name);
    CHECK(length == 6 && memcmp(name, "a name                  ", sizeof name) == 0);
    int lengths[2] = {1, 1}, places[2] = {0, 8}, types[2] = {integer, double_precision};
    mpi_type_struct_(&(int){2}, lengths, places, types, &type, &ierror);
    mpi_type_commit_(&type, &ierror);
    mpi_type_extent_(&type, &extent, &ierror);
    CHECK(extent == 16);
    int numbers[3], made_of[3] = {-1, -1, -1};
    MPI_Aint addresses[2];
    mpi_type_get_contents_(&type, &(int){3}, &(int){2}, &(int){3}, numbers, addresses, made_of,
                           &ierror);
    CHECK(made_of[0] == integer && made_of[1] == double_precision && made_of[2] == -1);
    CHECK(numbers[0] == 2 && addresses[1] == 8);
    mpi_type_free_(&type, &ierror);
    CHECK(mpi_wtime_() > 0);
}

/* Calls that fail have results too. */
static void failures_with_results(int rank) {
    const int one = 1, two = 2, three = 3;
    int ierror, sent[3] = {1, 2, 3}, received = 0, number = -1;
    int requests[2] = {null_request, null_request}, indices[2] = {77, 77};
    mpi_comm_set_errhandler_(&comm, &(int){errors_return}, &ierror);
    mpi_irecv_(&received, &one, &(int){integer}, &rank, &three, &comm, &requests[1], &ierror);
    mpi_send_(sent, &three, &(int){integer}, &rank, &three, &comm, &ierror);
    int statuses[2 * status_size], error_class = -1;
    mpi_waitsome_(&two, requests, &number, indices, statuses, &ierror);
    mpi_error_class_(&ierror, &error_class, &(int){0});
    CHECK(error_class == MPI_ERR_IN_STATUS && number == 1 && indices[0] == 2 && indices[1] == 77);
    int intercomm = 7, codes[1];
    mpi_comm_spawn_("no program", " ", &one, &(int){null_info}, &(int){0}, &comm, &intercomm, codes,
                    &ierror, 10, 1);
    CHECK(ierror != MPI_SUCCESS && intercomm == null_comm);
}

/* Blanks before and behind don't count; what is not found leaves the place alone. */
static void information(void) {
    const int most = 12;
    int ierror, info, found = 0;
    char value[12];
    mpi_info_create_(&info, &ierror);
    mpi_info_set_(&info, "  a key ", " its value  ", &ierror, 8, 12);
    mpi_info_get_(&info, "a key", &most, value, &found, &ierror, 5, sizeof value);
    CHECK(found && memcmp(value, "its value   ", sizeof value) == 0);
    mpi_info_get_(&info, "another", &most, value, &found, &ierror, 7, sizeof value);
    CHECK(!found && memcmp(value, "its value   ", sizeof value) == 0);
    mpi_info_free_(&info, &ierror);
}

int main(void) {
    int ierror = -1, rank = -1, size = -1;
    mpi_init_(&ierror);
    CHECK(ierror == MPI_SUCCESS);
    mpi_comm_rank_(&comm, &rank, &ierror);
    mpi_comm_size__(&comm, &size, &ierror);
    messages(rank, size);
    functions(rank, size);
    strings_and_types();
    failures_with_results(rank);
    information();
    mpi_finalize_(&ierror);
    return failures != 0;
}
