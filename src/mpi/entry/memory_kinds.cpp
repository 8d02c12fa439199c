#include "mpi/entry/memory_kinds.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/kind_list.hpp"

namespace warren::mpi {

namespace {

// The kinds of a list without the blanks around them; empty ones are among them.
std::vector<std::string_view> kinds_of(std::string_view list) {
    std::vector<std::string_view> kinds;
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        std::string_view kind = list.substr(begin, end - begin);
        kind.remove_prefix(std::min(kind.find_first_not_of(" \t"), kind.size()));
        kind.remove_suffix(kind.size() - (kind.find_last_not_of(" \t") + 1));
        kinds.push_back(kind);
        begin = end + 1;
    }
    return kinds;
}

// No memory of windows: there are none yet. So there is one restrictor, which nobody says twice.
bool is_there(std::string_view kind) {
    return kind == "system" || kind == "mpi" || kind == "mpi:alloc_mem";
}

} // namespace

std::string_view memory_kinds_of_start() {
    const char* kinds = std::getenv("WARREN_MEMORY_KINDS");
    return kinds != nullptr && is_list_of_kinds(kinds) ? kinds : "";
}

std::string granted_memory_kinds(std::string_view request) {
    std::vector<std::string_view> granted = {"mpi", "system"}; // in any case
    for (const std::string_view list : {memory_kinds_of_start(), request}) {
        for (const std::string_view kind : kinds_of(list)) {
            if (is_there(kind) &&
                std::find(granted.begin(), granted.end(), kind) == granted.end()) {
                granted.push_back(kind);
            }
        }
    }
    std::string text;
    for (const std::string_view kind : granted) {
        text.append(text.empty() ? "" : ",").append(kind);
    }
    return text;
}

bool has_memory_kinds(std::string_view list) {
    const std::vector<std::string_view> kinds = kinds_of(list);
    return std::all_of(kinds.begin(), kinds.end(), is_there);
}

} // namespace warren::mpi
