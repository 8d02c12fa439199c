// What is left to do with the files that a process's tracker has written (tracker/log.hpp), when
// the process has ended: the room that was made for more is given back, and losses are read.
#pragma once

#include <string>
#include <vector>

#include "locality/recording.hpp"

namespace warren::locality {

void end_logs(const std::string& folder, std::vector<Loss>& losses);

} // namespace warren::locality
