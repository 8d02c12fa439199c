// Performance variables of the tool information interface.
#include <cstdint>

#include "mpi/entry/tool_calls.hpp"

namespace warren::mpi {

using tool::PerformanceVariable;
using tool::Session;
using tool::Sessions;
using tool::Subject;
using tool::VariableHandle;
using Guard = tool::Tool::Guard;

namespace {

template <typename Call>
int with_session(MPI_T_pvar_session session, Call call) {
    return with_tool([&](Guard& guard) {
        Session* its = guard.sessions().find(session);
        return its == nullptr ? MPI_T_ERR_INVALID_SESSION : call(guard, *its);
    });
}

template <typename Call>
int with_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, Call call) {
    return with_session(session, [&](Guard& guard, Session& its) {
        VariableHandle* found = guard.sessions().find(its, handle);
        return found == nullptr ? MPI_T_ERR_INVALID_HANDLE : call(guard, *found);
    });
}

// For one handle, or all of the session. `refusal`: of one that is continuous; among all it is
// ignored.
template <typename Call>
int with_some(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int refusal, Call call) {
    return with_session(session, [&](Guard& guard, Session& its) {
        if (handle == MPI_T_PVAR_ALL_HANDLES) {
            guard.sessions().for_each(its, [&](VariableHandle& found) {
                if (!found.variable->continuous()) {
                    call(guard, found);
                }
            });
        } else {
            VariableHandle* found = guard.sessions().find(its, handle);
            if (found == nullptr) {
                return MPI_T_ERR_INVALID_HANDLE;
            }
            if (found->variable->continuous()) {
                return refusal;
            }
            call(guard, *found);
        }
        guard.look_anew();
        return MPI_SUCCESS;
    });
}

void reset(Guard& guard, VariableHandle& handle) {
    const Subject* subject = guard.subject();
    const bool begins_here = handle.variable->is_mark() && subject != nullptr;
    Sessions::write(handle, begins_here ? handle.variable->read(*subject) : 0, subject);
}

} // namespace

int t_pvar_get_num(int* num_pvar) {
    return give_number(tool::performance_variables(), num_pvar);
}

int t_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class,
                    MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                    int* bind, int* readonly, int* continuous, int* atomic) {
    int code;
    const PerformanceVariable* its = find_row(tool::performance_variables(), pvar_index, code);
    if (its == nullptr) {
        return code;
    }
    give_string(its->name, name, name_len);
    give_string(its->description, desc, desc_len);
    give(its->verbosity, verbosity);
    give(its->variable_class, var_class);
    give(its->datatype, datatype);
    give(tool::handle_of(its->enumeration), enumtype);
    give(MPI_T_BIND_NO_OBJECT, bind);
    give(its->continuous() ? 1 : 0, readonly);
    give(its->continuous() ? 1 : 0, continuous);
    give(its->continuous() ? 0 : 1, atomic);
    return MPI_SUCCESS;
}

int t_pvar_get_index(const char* name, int var_class, int* pvar_index) {
    int found = 0;
    const int code = give_index(tool::performance_variables(), name, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (pvar_index == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    // Names are unique, so no other variable has that class and the name.
    if (tool::performance_variables()[static_cast<std::size_t>(found)].variable_class !=
        var_class) {
        return MPI_T_ERR_INVALID_NAME;
    }
    *pvar_index = found;
    return MPI_SUCCESS;
}

int t_pvar_session_create(MPI_T_pvar_session* session) {
    return with_tool([&](Guard& guard) {
        if (session == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        const Session* made = guard.sessions().create();
        if (made == nullptr) {
            return MPI_T_ERR_OUT_OF_SESSIONS;
        }
        *session = Sessions::handle_of(*made);
        return MPI_SUCCESS;
    });
}

int t_pvar_session_free(MPI_T_pvar_session* session) {
    return with_session(session != nullptr ? *session : MPI_T_PVAR_SESSION_NULL,
                        [&](Guard& guard, Session& its) {
                            guard.sessions().free(its);
                            guard.look_anew();
                            *session = MPI_T_PVAR_SESSION_NULL;
                            return MPI_SUCCESS;
                        });
}

int t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*,
                        MPI_T_pvar_handle* handle, int* count) {
    return with_session(session, [&](Guard& guard, Session& its) {
        int code;
        const PerformanceVariable* variable =
            find_row(tool::performance_variables(), pvar_index, code);
        if (variable == nullptr) {
            return code;
        }
        if (handle == nullptr || count == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        const VariableHandle* made = guard.sessions().allocate(its, *variable);
        if (made == nullptr) {
            return MPI_T_ERR_OUT_OF_HANDLES;
        }
        *handle = Sessions::handle_of(*made);
        *count = 1;
        return MPI_SUCCESS;
    });
}

int t_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
    return with_handle(session, handle != nullptr ? *handle : MPI_T_PVAR_HANDLE_NULL,
                       [&](Guard& guard, VariableHandle& its) {
                           guard.sessions().free(its);
                           guard.look_anew();
                           *handle = MPI_T_PVAR_HANDLE_NULL;
                           return MPI_SUCCESS;
                       });
}

int t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return with_some(
        session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP,
        [](Guard& guard, VariableHandle& its) { guard.sessions().start(its, guard.subject()); });
}

int t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return with_some(
        session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP,
        [](Guard& guard, VariableHandle& its) { guard.sessions().stop(its, guard.subject()); });
}

int t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
    return with_handle(session, handle, [&](Guard& guard, VariableHandle& its) {
        if (buf == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        tool::store_value(*its.variable, Sessions::read(its, guard.subject()), buf);
        return MPI_SUCCESS;
    });
}

int t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buf) {
    return with_handle(session, handle, [&](Guard& guard, VariableHandle& its) {
        if (its.variable->continuous()) {
            return MPI_T_ERR_PVAR_NO_WRITE;
        }
        if (buf == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        Sessions::write(its, tool::load_value(*its.variable, buf), guard.subject());
        return MPI_SUCCESS;
    });
}

int t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return with_some(session, handle, MPI_T_ERR_PVAR_NO_WRITE, reset);
}

int t_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
    return with_handle(session, handle, [&](Guard& guard, VariableHandle& its) {
        if (its.variable->continuous()) {
            return MPI_T_ERR_PVAR_NO_ATOMIC;
        }
        if (buf == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        tool::store_value(*its.variable, Sessions::read(its, guard.subject()), buf);
        reset(guard, its);
        return MPI_SUCCESS;
    });
}

} // namespace warren::mpi
