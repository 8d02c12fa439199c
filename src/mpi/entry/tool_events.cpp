// Events of the tool information interface, and their source.
#include <limits>
#include <mutex>

#include "mpi/entry/process.hpp"
#include "mpi/entry/tool_calls.hpp"

namespace warren::mpi {

using tool::EventKind;
using tool::Events;
using tool::EventType;
using tool::Instance;
using tool::Registration;
using Guard = tool::Tool::Guard;

namespace {

// A new info object without keys: there are no hints.
int give_info(MPI_Info* info) {
    if (info == nullptr) {
        return MPI_SUCCESS;
    }
    Process& process = find_process();
    const std::lock_guard lock(process.mutex);
    const comm::Info* made = process.infos.insert();
    if (made == nullptr) {
        return MPI_T_ERR_MEMORY;
    }
    *info = process.infos.handle_of(*made);
    return MPI_SUCCESS;
}

// Hints are ignored, but their object must be one.
bool is_info(MPI_Info info) {
    Process& process = find_process();
    const std::lock_guard lock(process.mutex);
    return info == MPI_INFO_NULL || process.infos.find(info) != nullptr;
}

template <typename Call>
int with_registration(MPI_T_event_registration handle, Call call) {
    return with_tool([&](Guard& guard) {
        Registration* its = guard.events().find(handle);
        return its == nullptr ? MPI_T_ERR_INVALID_HANDLE : call(guard, *its);
    });
}

template <typename Call>
int with_instance(MPI_T_event_instance handle, Call call) {
    return with_tool([&](Guard& guard) {
        const Instance* its = guard.events().find(handle);
        return its == nullptr ? MPI_T_ERR_INVALID_HANDLE : call(*its);
    });
}

const EventType& type_of(const Instance& instance) {
    return tool::event_types()[static_cast<std::size_t>(instance.kind)];
}

int check_source(int source_index) {
    return find_tool() == nullptr ? MPI_T_ERR_NOT_INITIALIZED
           : source_index != 0    ? MPI_T_ERR_INVALID_INDEX
                                  : MPI_SUCCESS;
}

} // namespace

// --- The source

int t_source_get_num(int* num_sources) {
    if (find_tool() == nullptr) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    if (num_sources == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    *num_sources = 1;
    return MPI_SUCCESS;
}

int t_source_get_info(int source_index, char* name, int* name_len, char* desc, int* desc_len,
                      MPI_T_source_order* ordering, MPI_Count* ticks_per_second,
                      MPI_Count* max_ticks, MPI_Info* info) {
    if (const int code = check_source(source_index); code != MPI_SUCCESS) {
        return code;
    }
    give_string(tool::source_name, name, name_len);
    give_string(tool::source_description, desc, desc_len);
    give(MPI_T_SOURCE_ORDERED, ordering);
    give(tool::source_ticks_per_second, ticks_per_second);
    give(std::numeric_limits<MPI_Count>::max(), max_ticks);
    return give_info(info);
}

int t_source_get_timestamp(int source_index, MPI_Count* timestamp) {
    if (const int code = check_source(source_index); code != MPI_SUCCESS) {
        return code;
    }
    if (timestamp == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    *timestamp = tool::source_time();
    return MPI_SUCCESS;
}

// --- Types of events

int t_event_get_num(int* num_events) {
    return give_number(tool::event_types(), num_events);
}

int t_event_get_info(int event_index, char* name, int* name_len, int* verbosity,
                     MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
                     int* num_elements, MPI_T_enum* enumtype, MPI_Info* info, char* desc,
                     int* desc_len, int* bind) {
    int code;
    const EventType* its = find_row(tool::event_types(), event_index, code);
    if (its == nullptr) {
        return code;
    }
    give_string(its->name, name, name_len);
    give_string(its->description, desc, desc_len);
    give(its->verbosity, verbosity);
    if (num_elements != nullptr) {
        for (int i = 0; i < *num_elements && i < static_cast<int>(its->elements.size()); ++i) {
            const tool::EventElement& element = its->elements[static_cast<std::size_t>(i)];
            if (array_of_datatypes != nullptr) {
                array_of_datatypes[i] = element.datatype;
            }
            if (array_of_displacements != nullptr) {
                array_of_displacements[i] = element.displacement;
            }
        }
        *num_elements = static_cast<int>(its->elements.size());
    }
    give(tool::handle_of(its->enumeration), enumtype);
    give(MPI_T_BIND_NO_OBJECT, bind);
    return give_info(info);
}

int t_event_get_index(const char* name, int* event_index) {
    return give_index(tool::event_types(), name, event_index);
}

// --- Registrations

int t_event_handle_alloc(int event_index, void*, MPI_Info info,
                         MPI_T_event_registration* event_registration) {
    int code;
    if (find_row(tool::event_types(), event_index, code) == nullptr) {
        return code;
    }
    if (event_registration == nullptr || !is_info(info)) {
        return MPI_T_ERR_INVALID;
    }
    return with_tool([&](Guard& guard) {
        const Registration* made = guard.events().add(static_cast<EventKind>(event_index));
        if (made == nullptr) {
            return MPI_T_ERR_OUT_OF_HANDLES;
        }
        *event_registration = Events::handle_of(*made);
        return MPI_SUCCESS;
    });
}

int t_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info) {
    return with_registration(event_registration, [&](Guard&, const Registration&) {
        return is_info(info) ? MPI_SUCCESS : MPI_T_ERR_INVALID;
    });
}

int t_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info* info_used) {
    return with_registration(event_registration, [&](Guard&, const Registration&) {
        return info_used != nullptr ? give_info(info_used) : MPI_T_ERR_INVALID;
    });
}

int t_event_register_callback(MPI_T_event_registration event_registration,
                              MPI_T_cb_safety cb_safety, MPI_Info info, void* user_data,
                              MPI_T_event_cb_function* event_cb_function) {
    return with_registration(event_registration, [&](Guard& guard, Registration& its) {
        const int level = tool::safety_index(cb_safety);
        if (level < 0 || !is_info(info)) {
            return MPI_T_ERR_INVALID;
        }
        try {
            guard.events().set_callback(its, level, event_cb_function, user_data);
        } catch (const std::bad_alloc&) {
            return MPI_T_ERR_MEMORY;
        }
        guard.look_anew();
        return MPI_SUCCESS;
    });
}

int t_event_callback_set_info(MPI_T_event_registration event_registration,
                              MPI_T_cb_safety cb_safety, MPI_Info info) {
    return with_registration(event_registration, [&](Guard&, const Registration& its) {
        const int level = tool::safety_index(cb_safety);
        return level >= 0 && its.callbacks[level].function != nullptr && is_info(info)
                   ? MPI_SUCCESS
                   : MPI_T_ERR_INVALID;
    });
}

int t_event_callback_get_info(MPI_T_event_registration event_registration,
                              MPI_T_cb_safety cb_safety, MPI_Info* info_used) {
    return with_registration(event_registration, [&](Guard&, const Registration& its) {
        const int level = tool::safety_index(cb_safety);
        return level >= 0 && its.callbacks[level].function != nullptr && info_used != nullptr
                   ? give_info(info_used)
                   : MPI_T_ERR_INVALID;
    });
}

int t_event_handle_free(MPI_T_event_registration event_registration, void* user_data,
                        MPI_T_event_free_cb_function* free_cb_function) {
    return with_registration(event_registration, [&](Guard& guard, Registration& its) {
        guard.without_rank_lock([&](std::unique_lock<std::mutex>& lock) {
            guard.events().remove(its, free_cb_function, user_data, lock);
        });
        guard.look_anew();
        return MPI_SUCCESS;
    });
}

int t_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                MPI_T_event_dropped_cb_function* dropped_cb_function) {
    return with_registration(event_registration, [&](Guard&, Registration& its) {
        its.dropped_function = dropped_cb_function;
        return MPI_SUCCESS;
    });
}

// --- Events that are being told

int t_event_read(MPI_T_event_instance event_instance, int element_index, void* buffer) {
    return with_instance(event_instance, [&](const Instance& its) {
        const auto elements = type_of(its).elements;
        if (element_index < 0 || static_cast<std::size_t>(element_index) >= elements.size()) {
            return MPI_T_ERR_INVALID_INDEX;
        }
        if (buffer == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        const tool::EventElement& element = elements[static_cast<std::size_t>(element_index)];
        std::memcpy(buffer, reinterpret_cast<const std::byte*>(&its.data) + element.displacement,
                    element.bytes);
        return MPI_SUCCESS;
    });
}

int t_event_copy(MPI_T_event_instance event_instance, void* buffer) {
    return with_instance(event_instance, [&](const Instance& its) {
        if (buffer == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        std::memcpy(buffer, &its.data, type_of(its).bytes);
        return MPI_SUCCESS;
    });
}

int t_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count* event_timestamp) {
    return with_instance(event_instance, [&](const Instance& its) {
        if (event_timestamp == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        *event_timestamp = its.time;
        return MPI_SUCCESS;
    });
}

int t_event_get_source(MPI_T_event_instance event_instance, int* source_index) {
    return with_instance(event_instance, [&](const Instance&) {
        if (source_index == nullptr) {
            return MPI_T_ERR_INVALID;
        }
        *source_index = 0;
        return MPI_SUCCESS;
    });
}

} // namespace warren::mpi
