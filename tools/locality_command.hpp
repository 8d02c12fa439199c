// `warren locality`: records which thread touches which memory of a program, and reports on it.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

extern const char* const locality_usage;

// Runs `warren locality` with the words behind it; returns the exit status.
int locality_command(const std::vector<std::string>& words);

} // namespace warren::tools
