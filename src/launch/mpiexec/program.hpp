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

#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/foreign_abi.hpp"

namespace warren::launch {

// Variables that every rank finds in its environment beside those of its own (rank_variables.hpp).
struct RankEnvironment {
    std::uint32_t size = 0;
    std::uint32_t size_on_node = 0;
    int segment = -1; // -1, and so the next: a thread's program, whose process has both
    int lifeline = -1;
    std::uint32_t ranks_here = 0;              // in its process, when these may be several; else 0
    std::string job;                           // unique: who carries it belongs to the job
    std::vector<EnvironmentSetting> more = {}; // of mpiexec's own
    std::string preload = {};                  // a library that processes load first; empty: none
    std::string libraries = {};                // folders that come first in LD_LIBRARY_PATH
};

// The environment of a process of the job.
class Environment {
  public:
    Environment() = default;
    Environment(const Environment&) = delete; // holds pointers into itself
    Environment& operator=(const Environment&) = delete;

    // Built from mpiexec's own; the last setting of a name wins.
    void build(const std::vector<EnvironmentSetting>& global,
               const std::vector<EnvironmentSetting>& own, const RankEnvironment& rank,
               char** inherited);

    // Preloads these libraries only, if any were.
    void limit_preload(const std::vector<std::string>& libraries);

    // The first entries are the places of rank_variables.
    char* const* pointers() { return pointers_.data(); }

  private:
    void set(const EnvironmentSetting& setting);
    void preload(const std::string& library);
    void put_first(const std::string& folders);

    std::vector<std::string> entries_; // NAME=VALUE
    std::vector<char*> pointers_;
};

class ResolvedProgram {
  public:
    ResolvedProgram() = default;
    ResolvedProgram(const ResolvedProgram&) = delete; // holds pointers into itself
    ResolvedProgram& operator=(const ResolvedProgram&) = delete;

    // Looks the program up.
    static Error resolve(const Program& program, ResolvedProgram& made);

    void build_environment(const std::vector<EnvironmentSetting>& global,
                           const RankEnvironment& rank, char** inherited) {
        environment_.build(global, program_.environment, rank, inherited);
    }

    const std::string& path() const { return path_; } // as seen from the directory
    std::string full_path() const;                    // as seen from mpiexec's
    // Which MPI library it is built for.
    const ForeignNeed& foreign() const { return foreign_; }
    const std::string& name() const { return program_.arguments[0]; }
    const std::string& directory() const { return program_.directory; }
    std::uint32_t ranks() const { return program_.ranks; }
    char* const* arguments() { return argument_pointers_.data(); }
    char* const* environment() { return environment_.pointers(); }
    const std::vector<EnvironmentSetting>& settings() const { return program_.environment; }

    // `/bin/sh path arguments…`, for files that are executable but in no format that the kernel
    // knows: scripts without a first line that names their interpreter.
    char* const* shell_arguments() { return shell_pointers_.data(); }

  private:
    Program program_;
    std::string path_;
    ForeignNeed foreign_;
    Environment environment_;
    std::vector<char*> argument_pointers_;
    std::vector<char*> shell_pointers_;
};

} // namespace warren::launch
