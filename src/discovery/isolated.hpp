// Work of a library that may not survive what it is given, done in a child process: hwloc follows
// pointers that damaged XML has left null.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace warren::discovery {

// What the child hands over.
struct Made {
    std::vector<std::byte> image;
    std::string note;
};

// Calls `make` in a copy of this process, and fills `made` with what it has made there. Where no
// copy can be had (fork fails), calls it here. Nothing else of what it does is seen here, and its
// standard error goes nowhere. Thread rule: anybody; glibc's fork leaves malloc usable in the copy
// of a process with threads.
// Errors: those of `make`; WARREN_TOPOLOGY_ERR_DAMAGED when the copy is killed, or not ready within
// a minute: "WHAT: hwloc does not survive it (Segmentation fault)".
Error make_isolated(const std::string& what, const std::function<Error(Made&)>& make, Made& made);

} // namespace warren::discovery
