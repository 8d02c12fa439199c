// Categories: control variables, performance variables and events by subject. They never change.
//
// A category lists names, from which the indices are found. Thread rule: constant.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace warren::tool {

struct Category {
    const char* name;
    const char* description;
    std::span<const char* const> control_variables;
    std::span<const char* const> performance_variables;
    std::span<const char* const> events;
    std::span<const char* const> categories; // below it
};

std::span<const Category> categories();

// The place of a name in a table; -1: it is not there.
template <typename Row>
int index_of(std::span<const Row> table, const char* name) {
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (std::string_view(table[i].name) == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

} // namespace warren::tool
