// Control variables of the tool information interface.
#include <cstdint>

#include "mpi/entry/tool_calls.hpp"

namespace warren::mpi {

using tool::ControlHandle;
using tool::ControlVariable;
using Guard = tool::Tool::Guard;

namespace {

// Calls `call` with the handle's index and variable.
template <typename Call>
int with_variable(MPI_T_cvar_handle handle, Call call) {
    return with_tool([&](Guard& guard) {
        const ControlHandle* found = guard.controls().find(handle);
        return found == nullptr
                   ? MPI_T_ERR_INVALID_HANDLE
                   : call(guard, found->variable,
                          tool::control_variables()[static_cast<std::size_t>(found->variable)]);
    });
}

} // namespace

int t_cvar_get_num(int* num_cvar) {
    return give_number(tool::control_variables(), num_cvar);
}

int t_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity,
                    MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                    int* bind, int* scope) {
    int code;
    const ControlVariable* its = find_row(tool::control_variables(), cvar_index, code);
    if (its == nullptr) {
        return code;
    }
    give_string(its->name, name, name_len);
    give_string(its->description, desc, desc_len);
    give(its->verbosity, verbosity);
    give(its->datatype, datatype);
    give(tool::handle_of(its->enumeration), enumtype);
    give(MPI_T_BIND_NO_OBJECT, bind);
    give(its->scope, scope);
    return MPI_SUCCESS;
}

int t_cvar_get_index(const char* name, int* cvar_index) {
    return give_index(tool::control_variables(), name, cvar_index);
}

int t_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
    int code;
    const ControlVariable* its = find_row(tool::control_variables(), cvar_index, code);
    if (its == nullptr) {
        return code;
    }
    if (handle == nullptr || count == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    return with_tool([&](Guard& guard) {
        ControlHandle* made = guard.controls().insert();
        if (made == nullptr) {
            return MPI_T_ERR_OUT_OF_HANDLES;
        }
        made->variable = cvar_index;
        *handle = static_cast<MPI_T_cvar_handle>(LateHandleTable<ControlHandle>::handle_of(*made));
        *count = its->count();
        return MPI_SUCCESS;
    });
}

int t_cvar_handle_free(MPI_T_cvar_handle* handle) {
    return with_tool([&](Guard& guard) {
        ControlHandle* found = handle != nullptr ? guard.controls().find(*handle) : nullptr;
        if (found == nullptr) {
            return MPI_T_ERR_INVALID_HANDLE;
        }
        guard.controls().remove(*found);
        *handle = MPI_T_CVAR_HANDLE_NULL;
        return MPI_SUCCESS;
    });
}

int t_cvar_read(MPI_T_cvar_handle handle, void* buf) {
    return with_variable(handle, [&](Guard& guard, int index, const ControlVariable& its) {
        if (buf == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        if (its.text != nullptr) {
            std::memcpy(buf, its.text(), static_cast<std::size_t>(its.count()));
            return MPI_SUCCESS;
        }
        // (Little endian: the first bytes are the low ones.)
        const std::uint64_t value = guard.settings().read(index, guard.subject());
        std::memcpy(buf, &value, its.element_bytes());
        return MPI_SUCCESS;
    });
}

int t_cvar_write(MPI_T_cvar_handle handle, const void* buf) {
    return with_variable(handle, [&](Guard& guard, int index, const ControlVariable& its) {
        if (!its.writable()) {
            return MPI_T_ERR_CVAR_SET_NEVER;
        }
        if (buf == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        std::uint64_t value = 0;
        std::memcpy(&value, buf, its.element_bytes());
        guard.settings().write(index, value, guard.subject());
        return MPI_SUCCESS;
    });
}

} // namespace warren::mpi
