// `warren topo …` shows the node, or a recorded one, and writes topology images.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// Runs `warren topo` with the words behind it; returns the exit code.
int topology_command(const std::vector<std::string>& words);

} // namespace warren::tools
