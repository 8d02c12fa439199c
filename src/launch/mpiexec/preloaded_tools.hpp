// Preloaded tools: libraries that the user preloads into programs (LD_PRELOAD) and that have MPI
// procedures of their own (MPI 5.0, 15.2). Ranks that share a process get a copy of each, as
// processes would.
//
// Other preloaded libraries (allocators, MPI libraries themselves, recorders that replace functions
// of the C library as well) are the process's.
// Thread rule: mpiexec's only thread: LD_LIBRARY_PATH is the environment's meanwhile.
#pragma once

#include <string>
#include <vector>

#include "launch/mpiexec/program.hpp"

namespace warren::launch {

struct PreloadedLibraries {
    std::vector<std::string> tools;       // paths, in their order
    std::vector<std::string> of_process;  // the others, as written
    std::vector<std::string> without_mpi; // those of them that have no MPI procedures
    std::vector<std::string> recorders;   // those that have, and replace functions of the C library
};

// Those of an environment; `into` is what they are loaded into.
PreloadedLibraries preloaded_libraries(char* const* environment, const ResolvedProgram& into);

} // namespace warren::launch
