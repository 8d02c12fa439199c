// `warren locality flags` and `warren locality record --mode hooks`: programs that count their
// accesses themselves, by calls that the compiler has put there (analyser/hooks).
#pragma once

#include <string>
#include <vector>

#include "analyser/counts/settings.hpp"

namespace warren::tools {

// Prints what compilers and linkers are to be told. words[0] is `flags`.
int locality_flags(const std::vector<std::string>& words);

// Records `command`, whose program is the file `program`. The folder is there. Returns the exit
// status if the program is not started, or has not been this process itself.
int record_hooks(const locality::counts::Settings& settings, const std::string& program,
                 std::vector<std::string>& command);

} // namespace warren::tools
