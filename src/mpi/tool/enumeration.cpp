#include "mpi/tool/enumeration.hpp"

#include <initializer_list>

#include "mpi/calls.hpp"

namespace warren::tool {

namespace {

int same(int index) {
    return index;
}

template <const auto& names>
const char* name_in(int index) {
    return names[index];
}

constexpr const char* switch_names[] = {"off", "on"};
constexpr const char* rank_names[] = {"unknown", "processes", "threads", "fibres"};
constexpr const char* wait_names[] = {"none", "long"};

const char* procedure_name(int index) {
    return mpi::call_name(static_cast<std::uint32_t>(index));
}

} // namespace

namespace enumerations {
constexpr Enumeration switches = {
    .name = "switch", .count = 2, .value = same, .item_name = name_in<switch_names>};
constexpr Enumeration ranks = {
    .name = "kind of ranks", .count = 4, .value = same, .item_name = name_in<rank_names>};
constexpr Enumeration waits = {
    .name = "wait", .count = 2, .value = same, .item_name = name_in<wait_names>};
constexpr Enumeration procedures = {.name = "procedure",
                                    .count = static_cast<int>(mpi::calls::count),
                                    .value = same,
                                    .item_name = procedure_name};
} // namespace enumerations

const Enumeration* find_enumeration(MPI_T_enum handle) {
    for (const Enumeration* known : {&enumerations::switches, &enumerations::ranks,
                                     &enumerations::waits, &enumerations::procedures}) {
        if (handle_of(known) == handle) {
            return known;
        }
    }
    return nullptr;
}

} // namespace warren::tool
