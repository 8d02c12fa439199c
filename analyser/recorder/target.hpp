// Whether a program can be recorded: what would fail later, silently or without a reason, is
// refused before it is started. Thread rule: plain functions.
#pragma once

#include <string>

#include "base/error.hpp"

namespace warren::locality {

// Finds a program as a shell does. The error says that it isn't there, or what is wrong with it.
Error find_program(const std::string& name, std::string& path);

// Refuses programs that load no libraries (static), change their user when they start, are for
// another machine, or no programs at all. Of a script its interpreter is looked at.
Error check_program(const std::string& path);

} // namespace warren::locality
