// `warren bench`: figures of this machine, beside those of other MPI libraries that are found on
// it.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// Becomes the Python program that compares (bench/quick_comparison.py). Returns an exit code only
// if that fails.
int bench_command(const std::vector<std::string>& words);

} // namespace warren::tools
