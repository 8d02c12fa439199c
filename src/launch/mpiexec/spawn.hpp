// Spawner: starts the processes of ranks, several at once.
//
// A child shares mpiexec's memory until it executes its program (clone with CLONE_VM), so that no
// page table is copied and an error of exec comes back in a plain variable. mpiexec does not wait
// for that moment: exec takes longer than everything before it, and on other processors. Each child
// that has not come to it yet occupies a slot with its stack and its environment; the kernel clears
// the slot's word when the child leaves the shared memory.
// Thread rule: mpiexec's only thread, with the signals that it handles blocked. A child makes raw
// system calls only: it has mpiexec's thread-local storage, and so its errno.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include "launch/mpiexec/cpu_set.hpp"
#include "launch/rank_variables.hpp"

namespace warren::launch {

// A process to start. All pointers must stay valid until finish().
struct SpawnRequest {
    std::uint32_t rank = 0;       // on its node: for the failure
    std::uint32_t world_rank = 0; // WARREN_RANK
    const char* path = nullptr;
    char* const* arguments = nullptr;
    char* const* shell_arguments = nullptr; // when the kernel does not know the file's format
    char* const* environment = nullptr;     // rank_variables first: their values are put in
    const char* directory = nullptr;        // null: mpiexec's
    int standard_input = -1;
    int standard_output = -1;
    int standard_error = -1;
    int lifeline = -1;                   // becomes descriptor lifeline_number of the rank
    int lifeline_number = -1;            // not one of the others
    int forked_start = -1;               // keeps its number (forked_start.hpp); -1: none
    pid_t group = 0;                     // process group that the rank joins
    const CpuSet* processors = nullptr;  // null: unchanged
    const sigset_t* signals = nullptr;   // blocked in the rank: those that were in mpiexec
    const rlimit* descriptors = nullptr; // null: unchanged
};

// The step at which a start failed, if it did.
struct SpawnFailure {
    int error_number = 0;  // 0: nothing
    const char* step = ""; // "starting a process", "changing to the working directory", …
    std::uint32_t rank = 0;
};

class Spawner {
  public:
    // Up to `at_once` children on their way to their programs.
    explicit Spawner(std::uint32_t at_once);
    ~Spawner();
    Spawner(const Spawner&) = delete;
    Spawner& operator=(const Spawner&) = delete;

    // Starts a rank's process. The failure may be an earlier rank's; `pid` is -1 when this rank has
    // not been started. A process that does not come to its program ends with 127: the caller waits
    // for it as for any other.
    SpawnFailure start(const SpawnRequest& request, pid_t& pid);

    // Waits until all programs run. The failure is the first.
    SpawnFailure finish();

  private:
    static constexpr std::size_t stack_bytes = 16 * 1024; // for a dozen calls, none of them deep

    struct Slot {
        alignas(16) std::array<std::byte, stack_bytes> stack;
        std::atomic<std::uint32_t> shares_memory{0}; // cleared by the kernel
        SpawnRequest request;
        SpawnFailure failure;
        std::array<std::array<char, 48>, rank_variable_count> rank_settings;
        std::vector<char*> environment;
        pid_t parent = 0;
    };

    static int run_child(void* slot);
    static SpawnFailure release(Slot& slot); // waits for it

    std::deque<Slot> slots_;
    std::size_t next_ = 0;
};

} // namespace warren::launch
