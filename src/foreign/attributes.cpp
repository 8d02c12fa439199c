// Attributes: functions of the program get foreign handles, and some predefined attributes have
// values that are constants of the ABI.

#include "attribute_functions.hpp"
#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

using comm::AttributeOwner;

template <typename Kind>
using CopyFunction = int(typename Kind::Foreign, int, void*, void*, void**, int*);
template <typename Kind>
using DeleteFunction = int(typename Kind::Foreign, int, void*, void*);

template <typename Kind>
int call_copy(comm::Keyval::Copy function, void* object, int keyval, void* extra_state, void* value,
              void** copied, int* wanted) {
    return core_error(reinterpret_cast<CopyFunction<Kind>*>(function)(
        Kind::foreign(static_cast<typename Kind::Core>(object)), foreign_keyval(keyval),
        extra_state, value, copied, wanted));
}

template <typename Kind>
int call_delete(comm::Keyval::Delete function, void* object, int keyval, void* value,
                void* extra_state) {
    return core_error(reinterpret_cast<DeleteFunction<Kind>*>(function)(
        Kind::foreign(static_cast<typename Kind::Core>(object)), foreign_keyval(keyval), value,
        extra_state));
}

template <typename Kind, typename CoreCopy, typename CoreDelete>
int create_keyval(AttributeOwner owner, int (*create)(CoreCopy*, CoreDelete*, int*, void*),
                  CopyFunction<Kind>* copy, DeleteFunction<Kind>* remove, int* keyval,
                  void* extra_state) {
    int made = unset;
    const int code = create(reinterpret_cast<CoreCopy*>(core_copy_function(copy)),
                            reinterpret_cast<CoreDelete*>(core_delete_function(remove)),
                            keyval != nullptr ? &made : nullptr, extra_state);
    if (made != unset) {
        hooks.adapt_keyval(made, owner, call_copy<Kind>, call_delete<Kind>);
        *keyval = foreign_keyval(made);
    }
    return foreign_error(code);
}

// Where the foreign values of an attribute are that the core has no variable for.
struct Values {
    int host;
    int io;
    int last_used_code;
};
Values values;

// Puts a pointer to the foreign value in the place of one to the core's, in the void* at `place`.
void replace(void* place, int& value, int (*translate)(int)) {
    int* found;
    std::memcpy(&found, place, sizeof found);
    value = translate(*found);
    found = &value;
    std::memcpy(place, &found, sizeof found);
}

int last_code(int code) {
    return code == core_last_code ? foreign_last_code : foreign_error(code);
}

int get_attribute(Comm comm, int comm_keyval, void* attribute_val, int* flag) {
    const int keyval = core_keyval(comm_keyval);
    const int code = core.Comm_get_attr(handle::Comm::core(comm), keyval, attribute_val, flag);
    if (code != MPI_SUCCESS || *flag == 0) {
        return foreign_error(code);
    }
    if (keyval == MPI_HOST) {
        replace(attribute_val, values.host, foreign_rank);
    } else if (keyval == MPI_IO) {
        replace(attribute_val, values.io, foreign_rank);
    } else if (keyval == MPI_LASTUSEDCODE) {
        replace(attribute_val, values.last_used_code, last_code);
    }
    return code;
}

// Values of MPI_WIN_CREATE_FLAVOR and MPI_WIN_MODEL: windows differ, so one variable for each
// value.
int* variable_of(int value) {
    static int numbers[] = {0, 1, 2, 3, 4};
    return value >= 0 && value < static_cast<int>(std::size(numbers)) ? &numbers[value] : nullptr;
}

} // namespace

WARREN_FOREIGN(int, Comm_create_keyval,
               (CopyFunction<handle::Comm> * copy, DeleteFunction<handle::Comm>* remove,
                int* keyval, void* extra_state)) {
    return create_keyval<handle::Comm>(AttributeOwner::communicator, core.Comm_create_keyval, copy,
                                       remove, keyval, extra_state);
}

WARREN_FOREIGN(int, Keyval_create,
               (CopyFunction<handle::Comm> * copy, DeleteFunction<handle::Comm>* remove,
                int* keyval, void* extra_state)) {
    return create_keyval<handle::Comm>(AttributeOwner::communicator, core.Keyval_create, copy,
                                       remove, keyval, extra_state);
}

WARREN_FOREIGN(int, Type_create_keyval,
               (CopyFunction<handle::Datatype> * copy, DeleteFunction<handle::Datatype>* remove,
                int* keyval, void* extra_state)) {
    return create_keyval<handle::Datatype>(AttributeOwner::datatype, core.Type_create_keyval, copy,
                                           remove, keyval, extra_state);
}

WARREN_FOREIGN(int, Win_create_keyval,
               (CopyFunction<handle::Win> * copy, DeleteFunction<handle::Win>* remove, int* keyval,
                void* extra_state)) {
    return create_keyval<handle::Win>(AttributeOwner::window, core.Win_create_keyval, copy, remove,
                                      keyval, extra_state);
}

WARREN_FOREIGN(int, Comm_get_attr, (Comm comm, int keyval, void* attribute_val, int* flag)) {
    return get_attribute(comm, keyval, attribute_val, flag);
}

WARREN_FOREIGN(int, Attr_get, (Comm comm, int keyval, void* attribute_val, int* flag)) {
    return get_attribute(comm, keyval, attribute_val, flag);
}

WARREN_FOREIGN(int, Win_get_attr, (Win win, int win_keyval, void* attribute_val, int* flag)) {
    const int keyval = core_keyval(win_keyval);
    const int code = core.Win_get_attr(handle::Win::core(win), keyval, attribute_val, flag);
    if (code == MPI_SUCCESS && *flag != 0 &&
        (keyval == MPI_WIN_CREATE_FLAVOR || keyval == MPI_WIN_MODEL)) {
        int* found;
        std::memcpy(&found, attribute_val, sizeof found);
        found = variable_of(keyval == MPI_WIN_MODEL ? foreign_window_model(*found)
                                                    : foreign_window_flavour(*found));
        std::memcpy(attribute_val, &found, sizeof found);
    }
    return foreign_error(code);
}

} // namespace warren::foreign
