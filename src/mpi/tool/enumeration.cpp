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
// In the order of mpi/coll/choice.hpp.
constexpr const char* tree_names[] = {"automatic", "linear", "binomial"};
constexpr const char* allgather_names[] = {"automatic", "ring", "bruck", "by root"};
constexpr const char* allreduce_names[] = {"automatic", "doubling", "halving", "by root"};
constexpr const char* reduce_scatter_names[] = {"automatic", "by root", "pairwise"};
constexpr const char* scan_names[] = {"automatic", "chain", "doubling"};

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
constexpr Enumeration tree_algorithms = {.name = "algorithm of gathers and scatters",
                                         .count = 3,
                                         .value = same,
                                         .item_name = name_in<tree_names>};
constexpr Enumeration allgather_algorithms = {.name = "algorithm of allgathers",
                                              .count = 4,
                                              .value = same,
                                              .item_name = name_in<allgather_names>};
constexpr Enumeration allreduce_algorithms = {.name = "algorithm of allreduces",
                                              .count = 4,
                                              .value = same,
                                              .item_name = name_in<allreduce_names>};
constexpr Enumeration reduce_scatter_algorithms = {.name = "algorithm of reduce-scatters",
                                                   .count = 3,
                                                   .value = same,
                                                   .item_name = name_in<reduce_scatter_names>};
constexpr Enumeration scan_algorithms = {
    .name = "algorithm of scans", .count = 3, .value = same, .item_name = name_in<scan_names>};
constexpr Enumeration procedures = {.name = "procedure",
                                    .count = static_cast<int>(mpi::calls::count),
                                    .value = same,
                                    .item_name = procedure_name};
} // namespace enumerations

const Enumeration* find_enumeration(MPI_T_enum handle) {
    for (const Enumeration* known :
         {&enumerations::switches, &enumerations::ranks, &enumerations::waits,
          &enumerations::tree_algorithms, &enumerations::allgather_algorithms,
          &enumerations::allreduce_algorithms, &enumerations::reduce_scatter_algorithms,
          &enumerations::scan_algorithms, &enumerations::procedures}) {
        if (handle_of(known) == handle) {
            return known;
        }
    }
    return nullptr;
}

} // namespace warren::tool
