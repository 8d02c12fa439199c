// A request to mpiexec: its command line, and those variables of other launchers that it
// understands. Thread rule: before there are threads.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/command_line.hpp"

namespace warren::launch {

Error read_request(const std::vector<std::string>& words, CommandLine& line);

} // namespace warren::launch
