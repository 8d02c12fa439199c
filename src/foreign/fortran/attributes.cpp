// Attributes in Fortran: values are INTEGERs of an address's size, in the deprecated forms of the
// default size. C gets the address of a number that Fortran set; Fortran gets the address that C
// set as a number, and the numbers behind the addresses of predefined keys (MPI chapter 19.3).

#include "foreign/fortran/arguments.hpp"

namespace warren::foreign::fortran {

namespace {

using comm::AttributeOwner;

// Functions of a program, by the size of values: MPI_Aint or int.
template <typename Value>
using CopyFunction = void(int* object, int* keyval, Value* extra_state, Value* value, Value* copied,
                          int* wanted, int* ierror);
template <typename Value>
using DeleteFunction = void(int* object, int* keyval, Value* value, Value* extra_state,
                            int* ierror);

template <typename Conversion>
int number_of_object(void* object) {
    using Kind = typename Conversion::Kind;
    return Conversion::to(Kind::foreign(static_cast<typename Kind::Core>(object)));
}

// A value as Fortran sees it.
MPI_Aint number_of(void* value) {
    MPI_Aint number;
    return hooks.number_at(value, &number) ? number : reinterpret_cast<MPI_Aint>(value);
}

template <typename Conversion, typename Value>
int call_fortran_copy(comm::Keyval::Copy function, void* object, int keyval, void* extra_state,
                      void* value, void** copied, int* wanted) {
    int number = number_of_object<Conversion>(object);
    int key = foreign_keyval(keyval);
    auto extra = static_cast<Value>(reinterpret_cast<MPI_Aint>(extra_state));
    MPI_Aint set_by_fortran;
    const bool is_number = hooks.number_at(value, &set_by_fortran);
    auto from = static_cast<Value>(is_number ? set_by_fortran : reinterpret_cast<MPI_Aint>(value));
    Value to = 0;
    int ierror = MPI_SUCCESS;
    reinterpret_cast<CopyFunction<Value>*>(function)(&number, &key, &extra, &from, &to, wanted,
                                                     &ierror);
    *copied = reinterpret_cast<void*>(static_cast<MPI_Aint>(to));
    // A copy belongs to the language that set the original.
    if (ierror == MPI_SUCCESS && *wanted != 0 && is_number && !hooks.make_number(to, copied)) {
        return MPI_ERR_NO_MEM;
    }
    return core_error(ierror);
}

template <typename Conversion, typename Value>
int call_fortran_delete(comm::Keyval::Delete function, void* object, int keyval, void* value,
                        void* extra_state) {
    int number = number_of_object<Conversion>(object);
    int key = foreign_keyval(keyval);
    auto extra = static_cast<Value>(reinterpret_cast<MPI_Aint>(extra_state));
    auto of = static_cast<Value>(number_of(value));
    int ierror = MPI_SUCCESS;
    reinterpret_cast<DeleteFunction<Value>*>(function)(&number, &key, &of, &extra, &ierror);
    return core_error(ierror);
}

template <typename Conversion, typename Value, typename CoreCopy, typename CoreDelete>
void create_fortran_keyval(AttributeOwner owner, int (*create)(CoreCopy*, CoreDelete*, int*, void*),
                           CopyFunction<Value>* copy, DeleteFunction<Value>* remove, int* keyval,
                           const Value* extra_state, int* ierror) {
    int made = unset;
    const int code =
        create(reinterpret_cast<CoreCopy*>(reinterpret_cast<comm::Keyval::Copy>(copy)),
               reinterpret_cast<CoreDelete*>(reinterpret_cast<comm::Keyval::Delete>(remove)), &made,
               reinterpret_cast<void*>(static_cast<MPI_Aint>(*extra_state)));
    if (made != unset) { // an error handler may have turned a failure into MPI_SUCCESS
        hooks.adapt_keyval(made, owner, call_fortran_copy<Conversion, Value>,
                           call_fortran_delete<Conversion, Value>);
        *keyval = foreign_keyval(made);
    }
    finish(ierror, foreign_error(code));
}

// The number behind a found attribute of a communicator.
MPI_Aint value_of_comm(int core_key, void* found) {
    // (An error handler may have turned a failure into MPI_SUCCESS.)
    const bool predefined =
        found != nullptr && core_key >= MPI_TAG_UB && core_key <= MPI_UNIVERSE_SIZE;
    return predefined ? *static_cast<int*>(found) : number_of(found);
}

MPI_Aint value_of_window(int core_key, void* found) {
    if (found == nullptr) {
        return 0;
    }
    switch (core_key) {
    case MPI_WIN_SIZE:
        return *static_cast<MPI_Aint*>(found);
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *static_cast<int*>(found);
    case MPI_WIN_BASE:
        return reinterpret_cast<MPI_Aint>(found);
    default:
        return number_of(found);
    }
}

// Sets a number with a procedure of the core, whose error it returns.
template <typename Handle>
int set_number(int (*set)(Handle, int, void*), Handle object, int core_key, MPI_Aint number) {
    void* address;
    if (!hooks.make_number(number, &address)) {
        return no_memory();
    }
    const int code = set(object, core_key, address);
    hooks.free_number(address); // unless an attribute has it now
    return foreign_error(code);
}

extern "C" int call_Comm_get_attr(Comm, int, void*, int*) asm("PMPI_Comm_get_attr");
extern "C" int call_Win_get_attr(Win, int, void*, int*) asm("PMPI_Win_get_attr");

template <typename Value>
void get_comm_attribute(const int* comm, const int* keyval, Value* value, int* flag, int* ierror) {
    void* found = nullptr;
    const int key = c_keyval(*keyval);
    const int code = call_Comm_get_attr(integer::Comm::from(*comm), key, &found, flag);
    if (code == MPI_SUCCESS && *flag != 0) {
        *value = static_cast<Value>(value_of_comm(core_keyval(key), found));
    }
    finish(ierror, code);
}

} // namespace

WARREN_FORTRAN(comm_create_keyval, COMM_CREATE_KEYVAL,
               (CopyFunction<MPI_Aint> * copy, DeleteFunction<MPI_Aint>* remove, int* keyval,
                MPI_Aint* extra_state, int* ierror)) {
    create_fortran_keyval<integer::Comm>(AttributeOwner::communicator, core.Comm_create_keyval,
                                         copy, remove, keyval, extra_state, ierror);
}
WARREN_FORTRAN(keyval_create, KEYVAL_CREATE,
               (CopyFunction<int> * copy, DeleteFunction<int>* remove, int* keyval,
                int* extra_state, int* ierror)) {
    create_fortran_keyval<integer::Comm>(AttributeOwner::communicator, core.Keyval_create, copy,
                                         remove, keyval, extra_state, ierror);
}
WARREN_FORTRAN(type_create_keyval, TYPE_CREATE_KEYVAL,
               (CopyFunction<MPI_Aint> * copy, DeleteFunction<MPI_Aint>* remove, int* keyval,
                MPI_Aint* extra_state, int* ierror)) {
    create_fortran_keyval<integer::Type>(AttributeOwner::datatype, core.Type_create_keyval, copy,
                                         remove, keyval, extra_state, ierror);
}
WARREN_FORTRAN(win_create_keyval, WIN_CREATE_KEYVAL,
               (CopyFunction<MPI_Aint> * copy, DeleteFunction<MPI_Aint>* remove, int* keyval,
                MPI_Aint* extra_state, int* ierror)) {
    create_fortran_keyval<integer::Win>(AttributeOwner::window, core.Win_create_keyval, copy,
                                        remove, keyval, extra_state, ierror);
}

WARREN_FORTRAN(comm_get_attr, COMM_GET_ATTR,
               (int* comm, int* keyval, MPI_Aint* value, int* flag, int* ierror)) {
    get_comm_attribute(comm, keyval, value, flag, ierror);
}
WARREN_FORTRAN(attr_get, ATTR_GET, (int* comm, int* keyval, int* value, int* flag, int* ierror)) {
    get_comm_attribute(comm, keyval, value, flag, ierror);
}
WARREN_FORTRAN(comm_set_attr, COMM_SET_ATTR,
               (int* comm, int* keyval, MPI_Aint* value, int* ierror)) {
    finish(ierror, set_number(core.Comm_set_attr, handle::Comm::core(integer::Comm::from(*comm)),
                              core_keyval(c_keyval(*keyval)), *value));
}
WARREN_FORTRAN(attr_put, ATTR_PUT, (int* comm, int* keyval, int* value, int* ierror)) {
    MPI_Aint wide = *value;
    fortran_comm_set_attr(comm, keyval, &wide, ierror);
}
WARREN_FORTRAN(type_get_attr, TYPE_GET_ATTR,
               (int* type, int* keyval, MPI_Aint* value, int* flag, int* ierror)) {
    void* found = nullptr;
    const int code = core.Type_get_attr(handle::Datatype::core(integer::Type::from(*type)),
                                        core_keyval(*keyval), &found, flag);
    if (code == MPI_SUCCESS && *flag != 0) {
        *value = number_of(found);
    }
    finish(ierror, foreign_error(code));
}
WARREN_FORTRAN(type_set_attr, TYPE_SET_ATTR,
               (int* type, int* keyval, MPI_Aint* value, int* ierror)) {
    finish(ierror,
           set_number(core.Type_set_attr, handle::Datatype::core(integer::Type::from(*type)),
                      core_keyval(*keyval), *value));
}
WARREN_FORTRAN(win_get_attr, WIN_GET_ATTR,
               (int* win, int* keyval, MPI_Aint* value, int* flag, int* ierror)) {
    void* found = nullptr;
    const int key = c_keyval(*keyval);
    const int code = call_Win_get_attr(integer::Win::from(*win), key, &found, flag);
    if (code == MPI_SUCCESS && *flag != 0) {
        *value = value_of_window(core_keyval(key), found);
    }
    finish(ierror, code);
}
WARREN_FORTRAN(win_set_attr, WIN_SET_ATTR, (int* win, int* keyval, MPI_Aint* value, int* ierror)) {
    finish(ierror, set_number(core.Win_set_attr, handle::Win::core(integer::Win::from(*win)),
                              core_keyval(*keyval), *value));
}

// The predefined functions.
#define WARREN_ATTRIBUTE_FUNCTIONS(name, NAME, value_type)                                         \
    WARREN_FORTRAN(                                                                                \
        name##null_copy_fn, NAME##NULL_COPY_FN,                                                    \
        (int*, int*, value_type*, value_type*, value_type*, int* wanted, int* ierror)) {           \
        *wanted = 0;                                                                               \
        *ierror = MPI_SUCCESS;                                                                     \
    }                                                                                              \
    WARREN_FORTRAN(name##dup_fn, NAME##DUP_FN,                                                     \
                   (int*, int*, value_type*, value_type* value, value_type* copied, int* wanted,   \
                    int* ierror)) {                                                                \
        *copied = *value;                                                                          \
        *wanted = 1;                                                                               \
        *ierror = MPI_SUCCESS;                                                                     \
    }                                                                                              \
    WARREN_FORTRAN(name##null_delete_fn, NAME##NULL_DELETE_FN,                                     \
                   (int*, int*, value_type*, value_type*, int* ierror)) {                          \
        *ierror = MPI_SUCCESS;                                                                     \
    }

WARREN_ATTRIBUTE_FUNCTIONS(, , int)
WARREN_ATTRIBUTE_FUNCTIONS(comm_, COMM_, MPI_Aint)
WARREN_ATTRIBUTE_FUNCTIONS(type_, TYPE_, MPI_Aint)
WARREN_ATTRIBUTE_FUNCTIONS(win_, WIN_, MPI_Aint)
#undef WARREN_ATTRIBUTE_FUNCTIONS

} // namespace warren::foreign::fortran
