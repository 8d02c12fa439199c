#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// Runs `warren balance` with the words behind it; returns the exit code.
int balance_command(const std::vector<std::string>& words);

} // namespace warren::tools
