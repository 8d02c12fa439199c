// The procedures of the tool information interface share this: the rank's tool, and results that
// may be left out. Thread rule: as of the procedures.
#pragma once

#include <cstring>

#include "mpi/entry/tool_information.hpp"
#include "mpi/tool/categories.hpp"
#include "mpi/tool/tool.hpp"

namespace warren::mpi {

// The tool of the calling thread's rank; null: the interface is not initialised.
tool::Tool* find_tool();

// Runs a call under the tool's guard: `call(guard)` returns its code.
template <typename Call>
int with_tool(Call call) {
    tool::Tool* const its = find_tool();
    if (its == nullptr) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    tool::Tool::Guard guard(*its);
    return call(guard);
}

// Returns a string by the rules of the chapter: cut to the room; its whole length, with its end.
inline void give_string(const char* text, char* place, int* length) {
    if (length == nullptr) {
        return;
    }
    const std::size_t whole = std::strlen(text);
    if (place != nullptr && *length > 0) {
        const auto room = static_cast<std::size_t>(*length) - 1;
        const std::size_t copied = whole < room ? whole : room;
        std::memcpy(place, text, copied);
        place[copied] = '\0';
    }
    *length = static_cast<int>(whole) + 1;
}

template <typename Value>
void give(Value value, Value* place) {
    if (place != nullptr) {
        *place = value;
    }
}

// The number of rows of a table.
template <typename Table>
int give_number(const Table& table, int* number) {
    if (find_tool() == nullptr) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    if (number == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    *number = static_cast<int>(table.size());
    return MPI_SUCCESS;
}

// The row of an index, or null and the code of the failure.
template <typename Table>
auto* find_row(const Table& table, int index, int& code) {
    code = find_tool() == nullptr ? MPI_T_ERR_NOT_INITIALIZED
           : index < 0 || static_cast<std::size_t>(index) >= table.size() ? MPI_T_ERR_INVALID_INDEX
                                                                          : MPI_SUCCESS;
    return code == MPI_SUCCESS ? &table[static_cast<std::size_t>(index)] : nullptr;
}

// The index of a name.
template <typename Table>
int give_index(const Table& table, const char* name, int* index) {
    if (find_tool() == nullptr) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    if (name == nullptr || index == nullptr) {
        return MPI_T_ERR_INVALID;
    }
    const int found = tool::index_of(table, name);
    if (found < 0) {
        return MPI_T_ERR_INVALID_NAME;
    }
    *index = found;
    return MPI_SUCCESS;
}

} // namespace warren::mpi
