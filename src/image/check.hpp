// Obstacles to running a program as private images, and changes of its meaning: the file
// itself, and all libraries that it needs.
//
// Nothing is loaded. Thread rule: any thread at any time.
#pragma once

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

} // namespace warren::image
