// Checks whether a program can be recorded, and refuses before the start what would fail later,
// silently or without a reason. Thread rule: plain functions.
#pragma once

#include <string>

#include "base/error.hpp"

namespace warren::locality {

// Finds a program as a shell does. The error says that there is none, or what is wrong with it.
Error find_program(const std::string& name, std::string& path);

// Refuses files that are no programs, static programs, and programs that change their user when
// they start or are for another machine. For a script it checks the interpreter.
Error check_program(const std::string& path);

} // namespace warren::locality
