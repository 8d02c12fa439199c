// What is left to do with the files that a process's tracker has written (tracker/log.hpp), when
// the process has ended: the room that was made for more is given back, losses are read, and what
// is there is summed up.
#pragma once

#include <string>

#include "locality/recording.hpp"

namespace warren::locality {

// Adds to `lost` and `files` of the description. A log that its tracker made but found no room for
// has no header: all of it is lost.
void end_logs(const std::string& folder, ProcessDescription& description);

} // namespace warren::locality
