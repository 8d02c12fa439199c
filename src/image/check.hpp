// Obstacles to running a program as private images, and changes of its meaning: the file
// itself, and all libraries that it needs.
//
// Nothing is loaded. Thread rule: any thread at any time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "image/closure.hpp"
#include "image/suitability.hpp"

namespace warren::image {

// The finding for programs that bring an allocator.
inline constexpr const char* own_allocator =
    "it defines malloc, but memory that the C library allocates for it (strdup, getline, …) comes "
    "from the process's";

struct ProgramFinding {
    std::string file;
    Finding finding;
};

// The findings, the worst first. The error is the one that loading would fail with; no error says
// that the program can run as an image.
Error check_program(const std::string& path, const Sharing& sharing,
                    std::vector<ProgramFinding>& findings);

// Mappings of the process that an image of the program takes, at least; 0: it can't be one.
std::uint64_t mappings_of_program(const std::string& path, const Sharing& sharing);
// Why the process can't have so many in all, and what to do about it (vm.max_map_count); empty: it
// can.
std::string lack_of_mappings(std::uint64_t mappings);

} // namespace warren::image
