#pragma once

#include <string>
#include <vector>

namespace warren::tools {

inline constexpr const char* ranks_usage =
    "       warren ranks [PID] [--once | --json] [--interval S]   what each rank of a job does:\n"
    "                            worker, core, state, load, messages, call; on a terminal again\n"
    "                            and again (every second), until Ctrl-C or the end of the job\n";

// Runs `warren ranks` with the words behind it; returns the exit code.
int ranks_command(const std::vector<std::string>& words);

} // namespace warren::tools
