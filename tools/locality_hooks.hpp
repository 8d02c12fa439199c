// `warren locality flags` and `warren locality record --mode hooks`, for programs that count their
// accesses themselves, by calls that the compiler has inserted (analyser/hooks).
#pragma once

#include <string>
#include <vector>

#include "analyser/counts/settings.hpp"

namespace warren::tools {

extern const char* const flags_usage;

// Prints the flags for compilers and linkers. words[0] is `flags`.
int locality_flags(const std::vector<std::string>& words);

// Records `command`, whose program is the file `program`; the folder exists. Returns the exit
// status, if the program is not started or runs as a child.
int record_hooks(const locality::counts::Settings& settings, const std::string& program,
                 std::vector<std::string>& command);

} // namespace warren::tools
