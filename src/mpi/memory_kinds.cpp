#include "mpi/memory_kinds.hpp"

#include <algorithm>
#include <cstdlib>

#include "mpi.h"

namespace warren::mpi {

namespace {

std::string_view next_of(std::string_view& list, char separator) {
    const std::size_t end = std::min(list.find(separator), list.size());
    const std::string_view first = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    return first;
}

// No memory of windows: there are none yet.
bool is_there(std::string_view kind) {
    const std::string_view name = next_of(kind, ':');
    bool known = name == "system" || name == "mpi";
    while (!kind.empty()) {
        known = next_of(kind, ':') == "alloc_mem" && name == "mpi" && known;
    }
    return known;
}

bool is_in(std::string_view list, std::string_view kind) {
    while (!list.empty()) {
        if (next_of(list, ',') == kind) {
            return true;
        }
    }
    return false;
}

} // namespace

std::string_view memory_kinds_of_start() {
    const char* kinds = std::getenv("WARREN_MEMORY_KINDS");
    return kinds != nullptr ? kinds : "";
}

std::string granted_memory_kinds(std::string_view request) {
    std::string granted = "mpi,system"; // in any case
    for (std::string_view list : {memory_kinds_of_start(), request}) {
        while (!list.empty()) {
            const std::string_view kind = next_of(list, ',');
            if (is_there(kind) && !is_in(granted, kind) &&
                granted.size() + kind.size() + 1 < MPI_MAX_INFO_VAL) {
                granted.append(",").append(kind);
            }
        }
    }
    return granted;
}

bool has_memory_kinds(std::string_view list) {
    bool all = !list.empty();
    while (!list.empty()) {
        all = is_there(next_of(list, ',')) && all;
    }
    return all;
}

} // namespace warren::mpi
