/* Attributes that one language sets and the other reads, for all kinds of objects, with functions
 * of either language. Fortran's procedures are called as compilers call them. For any number of
 * ranks. */
#include <mpi.h>

#include "check.h"

#if defined(WARREN_MPICH) || defined(WARREN_OPENMPI)
int MPI_Comm_c2f(MPI_Comm);
int MPI_Type_c2f(MPI_Datatype);
int MPI_Win_c2f(MPI_Win);
#else
#define MPI_Comm_c2f MPI_Comm_toint
#define MPI_Type_c2f MPI_Type_toint
#define MPI_Win_c2f MPI_Win_toint
#endif

/* A predefined key in Fortran. */
#ifdef WARREN_MPICH
#define FORTRAN_KEY(keyval) ((keyval) + 1)
#else
#define FORTRAN_KEY(keyval) (keyval)
#endif

void mpi_comm_create_keyval_(void (*)(void), void (*)(void), int*, MPI_Aint*, int*);
void mpi_comm_set_attr_(const int*, const int*, MPI_Aint*, int*);
void mpi_comm_get_attr_(const int*, const int*, MPI_Aint*, int*, int*);
void mpi_type_set_attr_(const int*, const int*, MPI_Aint*, int*);
void mpi_type_get_attr_(const int*, const int*, MPI_Aint*, int*, int*);
void mpi_win_set_attr_(const int*, const int*, MPI_Aint*, int*);
void mpi_win_get_attr_(const int*, const int*, MPI_Aint*, int*, int*);
void mpi_attr_put_(const int*, const int*, int*, int*);
void mpi_attr_get_(const int*, const int*, int*, int*, int*);

static const MPI_Aint large = -3 * ((MPI_Aint)1 << 40) + 5;

/* --- The program's functions. */

static int copies, deletes;
static MPI_Aint last_deleted;

static int share(MPI_Comm comm, int keyval, void* extra, void* value, void* copied, int* wanted) {
    (void)comm, (void)keyval, (void)extra;
    ++copies;
    *(void**)copied = value;
    *wanted = 1;
    return MPI_SUCCESS;
}
static int see_address(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)extra;
    ++deletes;
    last_deleted = *(MPI_Aint*)value;
    return MPI_SUCCESS;
}
static int refuse(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)value;
    return *(int*)extra;
}
static void add_extra(int* comm, int* keyval, MPI_Aint* extra, MPI_Aint* value, MPI_Aint* copied,
                      int* wanted, int* ierror) {
    (void)comm, (void)keyval;
    ++copies;
    *copied = *value + *extra;
    *wanted = 1;
    *ierror = MPI_SUCCESS;
}
static void see_number(int* comm, int* keyval, MPI_Aint* value, MPI_Aint* extra, int* ierror) {
    (void)comm, (void)keyval, (void)extra;
    ++deletes;
    last_deleted = *value;
    *ierror = MPI_SUCCESS;
}

/* --- Tests. `code` is an ierror. */

typedef void Setter(const int*, const int*, MPI_Aint*, int*);
typedef void Getter(const int*, const int*, MPI_Aint*, int*, int*);

static MPI_Aint number_of(Getter* get, int object, int keyval) {
    MPI_Aint number = 0;
    int found = 0, code;
    get(&object, &keyval, &number, &found, &code);
    CHECK(code == MPI_SUCCESS && found);
    return number;
}
static void set(Setter* setter, int object, int keyval, MPI_Aint number) {
    int code;
    setter(&object, &keyval, &number, &code);
    CHECK(code == MPI_SUCCESS);
}
static void* address_of(MPI_Comm comm, int keyval) {
    void* address = NULL;
    int found = 0;
    MPI_Comm_get_attr(comm, keyval, (void*)&address, &found);
    CHECK(found);
    return address;
}

static void values_of_communicators(void) {
    const int self = MPI_Comm_c2f(MPI_COMM_SELF);
    int keyval, other, code;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);

    set(mpi_comm_set_attr_, self, keyval, large);
    MPI_Aint* place = address_of(MPI_COMM_SELF, keyval);
    CHECK(*place == large && number_of(mpi_comm_get_attr_, self, keyval) == large);
    set(mpi_comm_set_attr_, self, other, 1);
    CHECK(address_of(MPI_COMM_SELF, keyval) == place);
    *place = 6;
    CHECK(number_of(mpi_comm_get_attr_, self, keyval) == 6);

    /* The deprecated forms: C gets the address of an int. */
    int small = -7, found = 0;
    mpi_attr_put_(&self, &keyval, &small, &code);
    CHECK(*(int*)address_of(MPI_COMM_SELF, keyval) == -7);
    CHECK(number_of(mpi_comm_get_attr_, self, keyval) == -7);
    small = 0;
    mpi_attr_get_(&self, &keyval, &small, &found, &code);
    CHECK(small == -7 && found);
    set(mpi_comm_set_attr_, self, keyval, large);
    mpi_attr_get_(&self, &keyval, &small, &found, &code);
    CHECK(small == 5 && found); /* the lower half */

    /* What C sets is a number in Fortran, also the address of nothing. */
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &small);
    CHECK(number_of(mpi_comm_get_attr_, self, keyval) == (MPI_Aint)&small);
    CHECK(address_of(MPI_COMM_SELF, keyval) == (void*)&small);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    CHECK(number_of(mpi_comm_get_attr_, self, keyval) == 0);
    CHECK(address_of(MPI_COMM_SELF, keyval) == NULL);

    MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    MPI_Comm_delete_attr(MPI_COMM_SELF, other);
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_free_keyval(&other);
}

static void copies_by_c(void) {
    MPI_Comm comm, copy;
    int keyval, predefined;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_keyval(share, see_address, &keyval, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &predefined, NULL);
    set(mpi_comm_set_attr_, MPI_Comm_c2f(comm), keyval, 11);
    set(mpi_comm_set_attr_, MPI_Comm_c2f(comm), predefined, 12);
    copies = deletes = 0;
    MPI_Comm_dup(comm, &copy);
    CHECK(copies == 1);
    /* Its own number, or the one that the program's function shares. */
    MPI_Aint* own = address_of(copy, predefined);
    CHECK(own != address_of(comm, predefined) && *own == 12);
    MPI_Aint* shared = address_of(copy, keyval);
    CHECK(shared == address_of(comm, keyval));
    MPI_Comm_free(&comm);
    CHECK(deletes == 1 && last_deleted == 11 && *shared == 11);
    CHECK(number_of(mpi_comm_get_attr_, MPI_Comm_c2f(copy), keyval) == 11);
    CHECK(number_of(mpi_comm_get_attr_, MPI_Comm_c2f(copy), predefined) == 12);
    set(mpi_comm_set_attr_, MPI_Comm_c2f(copy), keyval, 13);
    CHECK(deletes == 2 && last_deleted == 11);
    MPI_Comm_free(&copy);
    CHECK(deletes == 3 && last_deleted == 13);
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_free_keyval(&predefined);
}

static void copies_by_fortran(void) {
    MPI_Comm comm, copy;
    int keyval, code;
    MPI_Aint extra = 4;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    mpi_comm_create_keyval_((void (*)(void))add_extra, (void (*)(void))see_number, &keyval, &extra,
                            &code);
    set(mpi_comm_set_attr_, MPI_Comm_c2f(comm), keyval, large);
    copies = deletes = 0;
    MPI_Comm_dup(comm, &copy);
    CHECK(copies == 1 && *(MPI_Aint*)address_of(copy, keyval) == large + 4);
    MPI_Comm_free(&copy);
    CHECK(deletes == 1 && last_deleted == large + 4);
    /* A copy of an address is one. */
    char memory[8];
    MPI_Comm_set_attr(comm, keyval, memory);
    CHECK(deletes == 2 && last_deleted == large);
    MPI_Comm_dup(comm, &copy);
    CHECK(address_of(copy, keyval) == memory + 4);
    MPI_Comm_free(&copy);
    CHECK(deletes == 3 && last_deleted == (MPI_Aint)(memory + 4));
    MPI_Comm_free(&comm);
    CHECK(deletes == 4 && last_deleted == (MPI_Aint)memory);
    MPI_Comm_free_keyval(&keyval);
}

static void other_objects(void) {
    MPI_Datatype type, copy;
    int keyval, found = 0;
    MPI_Aint* place = NULL;
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL);
    set(mpi_type_set_attr_, MPI_Type_c2f(type), keyval, large);
    MPI_Type_dup(type, &copy);
    MPI_Type_get_attr(copy, keyval, (void*)&place, &found);
    CHECK(found && *place == large);
    CHECK(number_of(mpi_type_get_attr_, MPI_Type_c2f(copy), keyval) == large);
    MPI_Type_set_attr(type, keyval, &found);
    CHECK(number_of(mpi_type_get_attr_, MPI_Type_c2f(type), keyval) == (MPI_Aint)&found);
    MPI_Type_free(&type);
    MPI_Type_free(&copy);
    MPI_Type_free_keyval(&keyval);

    MPI_Win win;
    char memory[16];
    MPI_Win_create(memory, sizeof memory, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL);
    set(mpi_win_set_attr_, MPI_Win_c2f(win), keyval, 9);
    found = 0;
    MPI_Win_get_attr(win, keyval, (void*)&place, &found);
    CHECK(found && *place == 9);
    CHECK(number_of(mpi_win_get_attr_, MPI_Win_c2f(win), keyval) == 9);
    MPI_Win_set_attr(win, keyval, &found);
    CHECK(number_of(mpi_win_get_attr_, MPI_Win_c2f(win), keyval) == (MPI_Aint)&found);
    CHECK(number_of(mpi_win_get_attr_, MPI_Win_c2f(win), FORTRAN_KEY(MPI_WIN_BASE)) ==
          (MPI_Aint)memory);
    CHECK(number_of(mpi_win_get_attr_, MPI_Win_c2f(win), FORTRAN_KEY(MPI_WIN_SIZE)) ==
          sizeof memory);
    CHECK(number_of(mpi_win_get_attr_, MPI_Win_c2f(win), FORTRAN_KEY(MPI_WIN_DISP_UNIT)) == 2);
    MPI_Win_free(&win);
    MPI_Win_free_keyval(&keyval);
}

static void failures_of_setting(void) {
    const int self = MPI_Comm_c2f(MPI_COMM_SELF);
    int keyval, code, class, refusal = MPI_ERR_OTHER;
    MPI_Aint number = 1;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &keyval, &refusal);
    set(mpi_comm_set_attr_, self, keyval, 20);
    mpi_comm_set_attr_(&self, &keyval, &number, &code); /* the delete function refuses */
    CHECK(code != MPI_SUCCESS);
    CHECK(number_of(mpi_comm_get_attr_, self, keyval) == 20);
    refusal = MPI_SUCCESS;
    MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    const int freed = keyval;
    MPI_Comm_free_keyval(&keyval);
    mpi_comm_set_attr_(&self, &freed, &number, &code);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_KEYVAL);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    values_of_communicators();
    copies_by_c();
    copies_by_fortran();
    other_objects();
    failures_of_setting();
    MPI_Finalize();
    return failures != 0;
}
