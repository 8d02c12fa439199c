// The tool information interface: procedures with enumerations among their arguments, and functions
// of the program that get one.

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

MPI_T_cb_safety core_level(MPI_T_cb_safety safety) {
    return static_cast<MPI_T_cb_safety>(core_safety(safety));
}

} // namespace

WARREN_FOREIGN(int, T_source_get_info,
               (int source_index, char* name, int* name_len, char* desc, int* desc_len,
                MPI_T_source_order* ordering, MPI_Count* ticks_per_second, MPI_Count* max_ticks,
                Info* info)) {
    HandlePointer<handle::Info, Way::out> info_(info);
    const int code = core.T_source_get_info(source_index, name, name_len, desc, desc_len, ordering,
                                            ticks_per_second, max_ticks, info_.data());
    if (code == MPI_SUCCESS && ordering != nullptr) {
        *ordering = static_cast<MPI_T_source_order>(foreign_source_order(*ordering));
    }
    return foreign_error(code);
}

WARREN_FOREIGN(int, T_event_register_callback,
               (MPI_T_event_registration registration, MPI_T_cb_safety safety, Info info,
                void* user_data, MPI_T_event_cb_function* function)) {
    hooks.adapt_event(registration, foreign_safety); // before it can be called
    return foreign_error(core.T_event_register_callback(
        registration, core_level(safety), handle::Info::core(info), user_data, function));
}

WARREN_FOREIGN(int, T_event_callback_set_info,
               (MPI_T_event_registration registration, MPI_T_cb_safety safety, Info info)) {
    return foreign_error(
        core.T_event_callback_set_info(registration, core_level(safety), handle::Info::core(info)));
}

WARREN_FOREIGN(int, T_event_callback_get_info,
               (MPI_T_event_registration registration, MPI_T_cb_safety safety, Info* info)) {
    HandlePointer<handle::Info, Way::out> info_(info);
    return foreign_error(
        core.T_event_callback_get_info(registration, core_level(safety), info_.data()));
}

} // namespace warren::foreign
