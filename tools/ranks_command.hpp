#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// Runs `warren ranks` with the words behind it; returns the exit code.
int ranks_command(const std::vector<std::string>& words);

} // namespace warren::tools
