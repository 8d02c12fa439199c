// Values of options and variables: reads them from text. `what` names the option or variable in
// errors, which are of class exit_usage. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "launch/mpiexec/command_line.hpp"

namespace warren::launch {

// Reads a decimal number from 1 to `limit`. False: the text is none.
bool whole_number(const std::string& text, std::uint32_t limit, std::uint32_t& number);

// Reads a time limit in seconds.
Error parse_timeout(const std::string& what, const std::string& value, double& seconds);

// Reads a size in bytes, also with k, M or G behind it.
Error parse_size(const std::string& what, const std::string& value, std::uint64_t& bytes);

Error parse_rank_kind(const std::string& what, const std::string& value, RankKind& kind);

Error parse_bind_to(const std::string& what, const std::string& value, BindTo& bind_to);

// Reads the words behind --hwloc-shmem=.
Error parse_hwloc_sharing(const std::string& what, const std::string& value, HwlocSharing& sharing);

// Reads when balancers run: hints, collectives, collectives=N, or seconds.
Error parse_balance_at(const std::string& what, const std::string& value, CommandLine& line);

// Makes the path of a file absolute, and tests that this process can replace that file: ranks may
// have other working directories.
Error parse_written_file(const std::string& what, const std::string& value, std::string& path);

} // namespace warren::launch
