// Keeps values of memory attributes in files of this user.
#pragma once

#include <string>

#include "topology/values_file.hpp"

namespace warren::tools {

// Reads the values of an existing file. False: the file is damaged or of another machine, and that
// has been printed.
bool continue_values(const std::string& path, topology::ValuesFile& file);

// Writes the file, whole or not at all, and makes its folder. False: it failed, and that has been
// printed.
bool write_values(const std::string& path, const topology::ValuesFile& file);

} // namespace warren::tools
