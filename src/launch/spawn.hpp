// Starting one rank: the system calls between mpiexec and the program.
//
// The child shares mpiexec's memory until it executes the program (clone with CLONE_VM and
// CLONE_VFORK), so that no page table is copied, however large mpiexec has grown, and an error of
// exec comes back in a plain variable.
// Thread rule: mpiexec's only thread, with the signals that it handles blocked.
#pragma once

#include <csignal>
#include <sys/resource.h>
#include <sys/types.h>

#include "launch/cpu_set.hpp"

namespace warren::launch {

struct SpawnRequest {
    const char* path = nullptr;
    char* const* arguments = nullptr;
    char* const* shell_arguments = nullptr; // when the kernel does not know the file's format
    char* const* environment = nullptr;
    const char* directory = nullptr; // null: mpiexec's
    int standard_input = -1;
    int standard_output = -1;
    int standard_error = -1;
    int lifeline = -1;                   // becomes descriptor lifeline_number of the rank
    int lifeline_number = -1;            // not one of the others
    pid_t group = 0;                     // process group that the rank joins
    const CpuSet* processors = nullptr;  // null: unchanged
    const sigset_t* signals = nullptr;   // blocked in the rank: those that were in mpiexec
    const rlimit* descriptors = nullptr; // null: unchanged
};

// What went wrong, if anything.
struct SpawnFailure {
    int error_number = 0;  // 0: the program runs
    const char* step = ""; // "starting a process", "changing to the working directory", …
};

// Starts the program; its process is `pid`. On a failure no process remains.
SpawnFailure spawn(const SpawnRequest& request, pid_t& pid);

} // namespace warren::launch
