// ProcessRanks: the ranks of one process, and which of them a thread belongs to.
//
// A process of a job has one rank, or several: threads that a program binds itself
// (warren/ranks.h), or private images, all threads of which belong to the rank that one of them was
// bound to. This room, in libwarren.so, knows the threads; the MPI library, which is not linked to
// it, keeps each rank's state in the member's `state` and finds these functions by their names when
// the launcher says that the process has several ranks. Thread rule: any thread at any time. A
// thread's member never changes once it has one.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren::process_ranks {

// The launcher's word to a process about its ranks: how many; absent: one. WARREN_RANK is the
// first.
inline constexpr const char* count_variable = "WARREN_RANKS_HERE";

struct ProcessRank {
    std::uint32_t number = 0;               // 0 to T-1
    std::atomic<void*> rank_state{nullptr}; // the MPI library's
};

} // namespace warren::process_ranks

extern "C" {
// The member that the calling thread belongs to; null: none, or the process has one rank only.
warren::process_ranks::ProcessRank* warren_member_current(void);
// The arguments of the program that the calling thread runs as an image, ended by null; null: it
// runs none.
char** warren_member_arguments(void);
// getenv for the program that the calling thread runs.
const char* warren_member_environment(const char* name);
// Writes what the calling thread's rank has printed and its streams still hold.
void warren_member_flush(void);
// Ends the calling thread's rank with this exit status as _exit would end a process: the thread's
// image, or, when it runs none, the process.
[[noreturn]] void warren_member_exit(int status);
}
