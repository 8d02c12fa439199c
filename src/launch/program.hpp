// ResolvedProgram: a program of the command line, found on this machine, with the words and the
// environment that its ranks get.
//
// Everything is looked up once in mpiexec, before anything is started: a wrong name is one error,
// not one per rank, and starting a rank is then a handful of system calls. Thread rule: built once,
// then only read, but for the rank's number (set_rank).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/command_line.hpp"

namespace warren::launch {

// Exit codes of mpiexec itself; the last two are the shell's.
inline constexpr int exit_usage = 2;
inline constexpr int exit_timeout = 124;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;

// What every rank finds in its environment beside WARREN_RANK.
struct RankEnvironment {
    std::uint32_t size = 0;
    int segment = -1;
    int lifeline = -1;
    std::uint32_t ranks_here = 1; // in its process
    std::string job;              // unique: who carries it belongs to the job
};

class ResolvedProgram {
  public:
    ResolvedProgram() = default;
    ResolvedProgram(const ResolvedProgram&) = delete; // holds pointers into itself
    ResolvedProgram& operator=(const ResolvedProgram&) = delete;

    // Looks the program up. On failure `exit_code` is the one to end with.
    static Error resolve(const Program& program, ResolvedProgram& made, int& exit_code);

    // Builds the environment from mpiexec's own. The last setting of a name wins.
    void build_environment(const std::vector<EnvironmentSetting>& global,
                           const RankEnvironment& rank, char** inherited);

    const std::string& path() const { return path_; }
    const std::string& name() const { return program_.arguments[0]; }
    const std::string& directory() const { return program_.directory; }
    std::uint32_t ranks() const { return program_.ranks; }
    char* const* arguments() { return argument_pointers_.data(); }
    // The first entry is the place of WARREN_RANK.
    char* const* environment() { return environment_pointers_.data(); }

    // `/bin/sh path arguments…`, for files that are executable but in no format that the kernel
    // knows: scripts without a first line that names their interpreter.
    char* const* shell_arguments() { return shell_pointers_.data(); }

  private:
    void set(const std::string& name, const std::string& value);

    Program program_;
    std::string path_;
    std::vector<std::string> environment_; // NAME=VALUE; the rank's number is the first
    std::vector<char*> argument_pointers_;
    std::vector<char*> shell_pointers_;
    std::vector<char*> environment_pointers_;
};

} // namespace warren::launch
