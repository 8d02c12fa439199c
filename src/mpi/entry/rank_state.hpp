// RankState: where all of the library's state of one rank begins.
//
// A process with one rank has one state. In a process with several (thread ranks, warren/ranks.h)
// the room process_ranks, in libwarren.so, knows which rank a thread belongs to, and keeps that
// rank's state for us. The library has no other mutable state but what the ranks of a process have
// in common (mpi/entry/enrolment.hpp) and each thread's pointer to its context. Thread rule:
// find_rank_state by any thread at any time; the members say their own.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren::tool {
class Tool;
}

namespace warren::mpi {

struct Context;
struct Process;

// Where the rank stands.
enum class Life : std::uint8_t { before_init, running, finalising, after_finalize };

struct RankState {
    std::atomic<Context*> context{nullptr};
    std::atomic<Life> life{Life::before_init};
    std::atomic<Process*> process{nullptr};
    // The last session's context, which another session takes up. Under the process's mutex.
    Context* sleeping_context = nullptr;
    std::uint32_t number = 0; // among the ranks of this process
    // Initialisations of the tool information interface, whose life is independent of MPI_Init and
    // MPI_Finalize.
    std::atomic<int> tool_initialisations{0};
    std::atomic<tool::Tool*> tool{nullptr}; // from the first of them on
    bool bound = true;                      // false: the state of threads that belong to no rank
};

// The state of the calling thread's rank.
RankState& find_rank_state();

// The arguments of the calling thread's program, ended by null, when it is not the process's: the
// process runs several. Null: it is the process's.
char** program_arguments();

// getenv for the calling thread's program.
const char* rank_environment(const char* name);

// Writes what the calling thread's program has printed, and ends its rank as _exit does.
void flush_output();
[[noreturn]] void exit_rank(int status);

} // namespace warren::mpi
