// The node's properties that a recording contains. Thread rule: plain functions.
#pragma once

#include <string>
#include <vector>

namespace warren::locality {

std::string host_name();

// "0-3,5" of a file in /sys; empty if there is none.
std::vector<int> numbers_in(const char* path);

} // namespace warren::locality
