// Work of a library that may not survive what it is given, done in a child process: hwloc follows
// pointers that damaged XML has left null.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace warren::discovery {

// The child's result.
struct Made {
    std::vector<std::byte> image;
    std::string note;
};

// Calls `make` in a copy of this process, and fills `made` with what it has made there. Where no
// copy can be had (fork fails), calls it here. Nothing else of what it does is seen here, and its
// standard output and error go nowhere. Thread rule: anybody; glibc's fork leaves malloc usable in
// the copy of a process with threads, hwloc is loaded before, and no discovery of ours is in it at
// that time (HwlocLibrary::calls). What remains is the program's own use of the same hwloc in
// another thread: the copy may wait for that thread's lock until its minute is over.
// Errors: those of `make`, of the topology's classes; WARREN_TOPOLOGY_ERR_DAMAGED when the copy is
// killed: "WHAT: hwloc does not survive it (Segmentation fault)"; WARREN_TOPOLOGY_ERR_DISCOVERY
// when it is not ready within a minute.
Error make_isolated(const std::string& what, const std::function<Error(Made&)>& make, Made& made);

} // namespace warren::discovery
