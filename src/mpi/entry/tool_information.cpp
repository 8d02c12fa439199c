// The life of the tool information interface, its enumerations and categories.
#include "mpi/entry/tool_information.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <span>

#include "mpi/entry/rank_state.hpp"
#include "mpi/entry/tool_calls.hpp"
#include "mpi/tool/categories.hpp"

namespace warren::mpi {

namespace {

tool::Subject subject_of(Context& context) {
    return {.rank = &context.rank,
            .messages = &context.messages,
            .windows = &context.windows,
            .files = &context.files};
}

bool is_thread_level(int level) {
    return level == MPI_THREAD_SINGLE || level == MPI_THREAD_FUNNELED ||
           level == MPI_THREAD_SERIALIZED || level == MPI_THREAD_MULTIPLE;
}

// Indices of the names that a category lists, in a table.
template <typename Table>
int give_indices(int cat_index, int len, int* indices,
                 std::span<const char* const> tool::Category::*list, const Table& table) {
    int code;
    const tool::Category* category = find_row(tool::categories(), cat_index, code);
    if (category == nullptr) {
        return code;
    }
    if (len < 0 || (len > 0 && indices == nullptr)) {
        return MPI_T_ERR_INVALID;
    }
    const std::span<const char* const> names = category->*list;
    for (std::size_t i = 0; i < names.size() && i < static_cast<std::size_t>(len); ++i) {
        indices[i] = tool::index_of(table, names[i]);
    }
    return MPI_SUCCESS;
}

} // namespace

tool::Tool* find_tool() {
    const RankState& rank_state = find_rank_state();
    return rank_state.tool_initialisations.load(std::memory_order_acquire) > 0
               ? rank_state.tool.load(std::memory_order_acquire)
               : nullptr;
}

void attach_tool(Context& context) {
    if (tool::Tool* its = context.rank_state.tool.load(std::memory_order_acquire)) {
        its->attach(subject_of(context));
    }
}

void detach_tool(const RankState& rank_state) {
    if (tool::Tool* its = rank_state.tool.load(std::memory_order_acquire)) {
        its->detach();
    }
}

int t_init_thread(int required, int* provided) {
    if (provided == nullptr || !is_thread_level(required)) {
        return MPI_T_ERR_INVALID;
    }
    RankState& rank_state = find_rank_state();
    if (!rank_state.bound) {
        return MPI_T_ERR_CANNOT_INIT; // a thread that is none of the process's ranks
    }
    if (rank_state.tool.load(std::memory_order_acquire) == nullptr) {
        std::unique_ptr<tool::Tool> made(new (std::nothrow) tool::Tool);
        if (made == nullptr) {
            return MPI_T_ERR_MEMORY;
        }
        tool::Tool* its = nullptr;
        // Two threads may come first; one's is taken.
        if (rank_state.tool.compare_exchange_strong(its, made.get(), std::memory_order_acq_rel)) {
            its = made.release();
            if (Context* context = rank_state.context.load(std::memory_order_acquire)) {
                its->attach(subject_of(*context));
            }
        }
    }
    rank_state.tool_initialisations.fetch_add(1, std::memory_order_release);
    *provided = required;
    return MPI_SUCCESS;
}

int t_finalize() {
    RankState& rank_state = find_rank_state();
    std::atomic<int>& initialisations = rank_state.tool_initialisations;
    int before = initialisations.load(std::memory_order_relaxed);
    do {
        if (before == 0) {
            return MPI_T_ERR_NOT_INITIALIZED;
        }
    } while (!initialisations.compare_exchange_weak(before, before - 1));
    tool::Tool* its = rank_state.tool.load(std::memory_order_acquire);
    if (before == 1 && its != nullptr) {
        its->end(); // it stays, for what has been written
    }
    return MPI_SUCCESS;
}

// --- Enumerations

int t_enum_get_info(MPI_T_enum enumtype, int* num, char* name, int* name_len) {
    if (find_tool() == nullptr) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    const tool::Enumeration* its = tool::find_enumeration(enumtype);
    if (its == nullptr) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    give(its->count, num);
    give_string(its->name, name, name_len);
    return MPI_SUCCESS;
}

int t_enum_get_item(MPI_T_enum enumtype, int indx, int* value, char* name, int* name_len) {
    if (find_tool() == nullptr) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    const tool::Enumeration* its = tool::find_enumeration(enumtype);
    if (its == nullptr) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    if (indx < 0 || indx >= its->count) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    give(its->value(indx), value);
    give_string(its->item_name(indx), name, name_len);
    return MPI_SUCCESS;
}

// --- Categories

int t_category_get_num(int* num_cat) {
    return give_number(tool::categories(), num_cat);
}

int t_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len,
                        int* num_cvars, int* num_pvars, int* num_categories) {
    int code;
    const tool::Category* its = find_row(tool::categories(), cat_index, code);
    if (its == nullptr) {
        return code;
    }
    give_string(its->name, name, name_len);
    give_string(its->description, desc, desc_len);
    give(static_cast<int>(its->control_variables.size()), num_cvars);
    give(static_cast<int>(its->performance_variables.size()), num_pvars);
    give(static_cast<int>(its->categories.size()), num_categories);
    return MPI_SUCCESS;
}

int t_category_get_num_events(int cat_index, int* num_events) {
    int code;
    const tool::Category* its = find_row(tool::categories(), cat_index, code);
    if (its == nullptr) {
        return code;
    }
    return give_number(its->events, num_events);
}

int t_category_get_index(const char* name, int* cat_index) {
    return give_index(tool::categories(), name, cat_index);
}

int t_category_get_cvars(int cat_index, int len, int indices[]) {
    return give_indices(cat_index, len, indices, &tool::Category::control_variables,
                        tool::control_variables());
}

int t_category_get_pvars(int cat_index, int len, int indices[]) {
    return give_indices(cat_index, len, indices, &tool::Category::performance_variables,
                        tool::performance_variables());
}

int t_category_get_events(int cat_index, int len, int indices[]) {
    return give_indices(cat_index, len, indices, &tool::Category::events, tool::event_types());
}

int t_category_get_categories(int cat_index, int len, int indices[]) {
    return give_indices(cat_index, len, indices, &tool::Category::categories, tool::categories());
}

int t_category_changed(int* update_number) {
    if (find_tool() == nullptr) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    if (update_number == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    *update_number = 0; // they never change
    return MPI_SUCCESS;
}

} // namespace warren::mpi
