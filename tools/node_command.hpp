// `warren version`, `node`, `info` and `state`: what a user asks about the installation, the node
// and what the ranks of a job wait for.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// They run with the words behind the command's name and return the exit code, or wrong_words.
int version_command(const std::vector<std::string>& words);
int node_command(const std::vector<std::string>& words);
int info_command(const std::vector<std::string>& words);
int state_command(const std::vector<std::string>& words);

} // namespace warren::tools
