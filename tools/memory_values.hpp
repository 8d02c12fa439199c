// Keeping values of memory's attributes: files of this user.
#pragma once

#include <string>

#include "topology/values_file.hpp"

namespace warren::tools {

// Takes over the values that a file has already, if it is there; when it is damaged or of another
// machine that is said, and false.
bool continue_values(const std::string& path, topology::ValuesFile& file);

// Writes the file, whole or not at all, and makes its folder; what fails is said, and false.
bool write_values(const std::string& path, const topology::ValuesFile& file);

} // namespace warren::tools
