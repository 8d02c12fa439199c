// The ranks of this process: what each has become, told to mpiexec.
//
// A rank is known by its number within the process. Threads that its program makes are its own.
// Thread rule: any thread; report_crash and rank_of_thread from signal handlers as well.
#pragma once

#include <cstdint>

namespace warren::launch {

inline constexpr std::uint32_t no_rank = UINT32_MAX;

// Once, before any other. `reports` is the descriptor to which reports go.
void prepare_ranks(std::uint32_t count, int reports);

// The rank to which the calling thread belongs, or no_rank.
std::uint32_t rank_of_thread();

// The calling thread, which runs another rank, acts for this one from now on, in a signal handler;
// no_rank: for its own again. For whom it has acted before.
std::uint32_t act_for(std::uint32_t rank);

// Reports the start of a rank. Its thread calls this before it has descriptors of its own.
void report_start(std::uint32_t rank);
// The rank will run no more: closes the thread's descriptors, and ends the process with the last
// rank.
void report_end(std::uint32_t rank, int exit_code);
// Reports the end of a fibre, which shares the process's descriptors.
void report_end_of_fibre(std::uint32_t rank, int exit_code);
// The signal is about to end the process, because of this rank; its stack is full.
void report_crash(std::uint32_t rank, int signal, bool overflow = false);
// All ranks wait for each other.
void report_stuck();

// The main thread's life once all ranks are started: it writes the reports of ends and crashes, for
// which their threads wait.
[[noreturn]] void pass_reports_on();

} // namespace warren::launch
