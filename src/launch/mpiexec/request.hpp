// What mpiexec is asked to do: its command line, and what other launchers take from the
// environment, too. Thread rule: before there are threads.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/command_line.hpp"

namespace warren::launch {

Error read_request(const std::vector<std::string>& words, CommandLine& line);

} // namespace warren::launch
