// Errors of the launcher. The class of an error (base/error.hpp) that mpiexec's own functions make
// is the exit code that mpiexec ends with because of it. Errors of other rooms have classes of
// theirs: Report::fail takes the exit code for them. Thread rule: constants.
#pragma once

namespace warren::launch {

inline constexpr int exit_failure = 1; // something that the job needs can't be had
inline constexpr int exit_usage = 2;   // a wrong command line
inline constexpr int exit_timeout = 124;
inline constexpr int exit_deadlock = 125;
// As a shell's.
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;

} // namespace warren::launch
