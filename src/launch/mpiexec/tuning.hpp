// Limits and times of mpiexec, with their reasons. `bench/launch` measures the start of jobs
// (bench/README.md). The machine: README.md's, a 2-core virtual EPYC (Zen 4).
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::launch {

// --- Start. bench/compare --only launch

// Most processes that are on their way to their program at once, on a machine with as many
// processors. With more, starting them is no faster.
inline constexpr std::uint32_t starts_at_once = 32;
// A program with more processes per processor than this is executed once and forked. With fewer,
// all processors execute at once, and forks would only wait for each other.
inline constexpr std::uint32_t most_executed_per_processor = 2;
// The time, ms, that a program's loading may take before the others are executed.
inline constexpr int ready_ms = 500;
// The time, ms, that a fork may take. One takes a tenth of a millisecond, but a machine may be
// busy.
inline constexpr int fork_ms = 30'000;
// Most requests to fork under way at once: the kernel limits descriptors that wait in sockets.
inline constexpr std::size_t fork_window = 16;
// How long, ms, an agent waits for its plan, and for mpiexec to take its last words.
inline constexpr int plan_timeout_ms = 60'000;
inline constexpr int last_words_timeout_ms = 5'000;
// The time, ns, after which mpiexec looks again for ranks that want processes started, when it had
// no descriptor left to take or refuse a request.
inline constexpr std::uint64_t request_pause_ns = 100'000'000;

// --- Output

// A line longer than this is passed on in pieces, so that a rank cannot fill mpiexec's memory.
inline constexpr std::size_t line_limit_bytes = 64 * 1024;
// Bytes that a Sink holds for a slow reader before mpiexec stops reading from the ranks.
inline constexpr std::size_t sink_limit_bytes = 1024 * 1024;
// An unfinished line is held for this time, ns, after its first byte, so that the pieces of a line
// stay together, and then passed on: progress bars and questions are seen while they matter.
inline constexpr std::uint64_t line_hold_ns = 100'000'000;
// Bytes that one read takes from a rank's output.
inline constexpr std::size_t read_bytes = 64 * 1024;

// Bytes of standard input that are on their way to rank 0.
inline constexpr std::uint64_t input_window_bytes = 256 * 1024;
// Time, ms, between questions whether the terminal is this job's again.
inline constexpr int look_at_terminal_ms = 500;

// --- End

// After a failure ranks get SIGTERM, so that handlers can put things in order, and this time, ns.
inline constexpr std::uint64_t failure_grace_ns = 1'000'000'000;
// After a signal of the user's that was passed on, ns: ranks may write a checkpoint.
inline constexpr std::uint64_t signal_grace_ns = 10'000'000'000;
// Agents of other nodes get this time, ns, after a failure and after a signal: a little
// more than agents give their ranks. All is over within 10 s of a failure.
inline constexpr std::uint64_t agents_grace_ns = 5'000'000'000;
inline constexpr std::uint64_t agents_signal_grace_ns = 12'000'000'000;
// Time, ns, for a launcher's end, which comes a little after its output's and says what went wrong.
inline constexpr std::uint64_t launcher_patience_ns = 500'000'000;
// Children in the background may still write for this time, ns, when all ranks have succeeded
// ("prog | tee log &").
inline constexpr std::uint64_t linger_ns = 500'000'000;
// How long, ns, a job whose ranks have lost another world waits for that one's mpiexec, which knows
// why. It says so at once, but a machine may be busy.
inline constexpr std::uint64_t reason_patience_ns = 5'000'000'000;
// Time, ns, between looks for ranks that wait for one that has finalised and failed.
inline constexpr std::uint64_t look_for_waits_ns = 250'000'000;
// Such a wait has to last for this time, ns: what was sent before has arrived by then.
inline constexpr std::uint64_t vain_wait_ns = 1'000'000'000;
// Tries, one a millisecond, to lock bytes of a file that ranks of other nodes may have locked.
inline constexpr int lock_trials = 500;
// Time, ns, between looks for initialised ranks while a rank that ended without MPI_Init is
// missing.
inline constexpr std::uint64_t look_again_ns = 250'000'000;

// --- Profiles (profile_report.hpp)

// Lines of each list of waits and pairs in the table.
inline constexpr std::uint32_t table_lines = 10;
// …on the page.
inline constexpr std::uint32_t waits_kept = 40;
inline constexpr std::uint32_t pairs_kept = 40;
// Rows and columns of a matrix on the page: cells that can be seen and pointed at. More ranks are
// condensed.
inline constexpr std::uint32_t matrix_most = 64;
// Ranks that have a bar of their own on the page.
inline constexpr std::uint32_t bars_most = 64;

} // namespace warren::launch
