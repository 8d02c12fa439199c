// `warren run --memory CRITERIA [--rules FILE] … PROGRAM …`: an unmodified program, with its heap
// where criteria say (src/memory/preload/).
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// The arguments behind "run". Returns only when the program could not be started: the exit code.
int run_command(const std::vector<std::string>& arguments);

extern const char* const run_usage;

} // namespace warren::tools
