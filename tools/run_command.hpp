// `warren run --memory CRITERIA [--rules FILE] … PROGRAM …` runs an unmodified program with its
// heap placed by criteria (src/memory/preload/).
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// Runs `warren run` with the arguments behind it. Returns the exit code, only if the program could
// not be started.
int run_command(const std::vector<std::string>& arguments);

extern const char* const run_usage;

} // namespace warren::tools
