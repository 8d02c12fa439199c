#include "mpi/entry/tool_information.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "mpi/entry/rank_state.hpp"

namespace warren::mpi {

namespace {

int give_none(int* number) {
    if (!tool_interface_initialised()) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    if (number == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    *number = 0;
    return MPI_SUCCESS;
}

// Any address that is neither null nor MPI_T_PVAR_ALL_HANDLES: sessions hold nothing.
MPI_T_pvar_session the_session() {
    return reinterpret_cast<MPI_T_pvar_session>(std::uintptr_t{0x1000});
}

} // namespace

bool tool_interface_initialised() {
    return find_rank_state().tool_initialisations.load(std::memory_order_relaxed) > 0;
}

int t_init_thread(int required, int* provided) {
    if (provided == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    find_rank_state().tool_initialisations.fetch_add(1, std::memory_order_relaxed);
    *provided = std::clamp(required, MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE);
    return MPI_SUCCESS;
}

int t_finalize() {
    std::atomic<int>& initialisations = find_rank_state().tool_initialisations;
    int before = initialisations.load(std::memory_order_relaxed);
    do {
        if (before == 0) {
            return MPI_T_ERR_NOT_INITIALIZED;
        }
    } while (!initialisations.compare_exchange_weak(before, before - 1));
    return MPI_SUCCESS;
}

int t_cvar_get_num(int* num_cvar) {
    return give_none(num_cvar);
}
int t_pvar_get_num(int* num_pvar) {
    return give_none(num_pvar);
}
int t_category_get_num(int* num_cat) {
    return give_none(num_cat);
}
int t_category_changed(int* update_number) {
    return give_none(update_number);
}
int t_event_get_num(int* num_events) {
    return give_none(num_events);
}
int t_source_get_num(int* num_sources) {
    return give_none(num_sources);
}

int t_pvar_session_create(MPI_T_pvar_session* session) {
    if (!tool_interface_initialised()) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    if (session == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    *session = the_session();
    return MPI_SUCCESS;
}

int t_pvar_session_free(MPI_T_pvar_session* session) {
    if (!tool_interface_initialised()) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    if (session == nullptr || *session != the_session()) {
        return MPI_T_ERR_INVALID_SESSION;
    }
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

} // namespace warren::mpi
