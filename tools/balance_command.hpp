#pragma once

#include <string>
#include <vector>

namespace warren::tools {

inline constexpr const char* balance_usage =
    "       warren balance FILE [NAME …]   what balancers make of a recorded matrix (mpiexec\n"
    "                            --balance-record): imbalance of the workers, moves, bytes times\n"
    "                            distance, and their own time; all of them, or those named\n";

// Runs `warren balance` with the words behind it; returns the exit code.
int balance_command(const std::vector<std::string>& words);

} // namespace warren::tools
