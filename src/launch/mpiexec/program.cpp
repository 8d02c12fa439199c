#include "launch/mpiexec/program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "launch/rank_variables.hpp"

namespace warren::launch {

namespace {

bool is_file(const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool runs(const std::string& path) {
    return is_file(path) && access(path.c_str(), X_OK) == 0;
}

std::string in_directory(const std::string& directory, const std::string& path) {
    return directory.empty() || path[0] == '/' ? path : directory + "/" + path;
}

// Looks a bare name up in these folders, or in PATH, as the shell does. `blocked` gets a file that
// is there but not executable.
std::string find_in_path(const std::string& name, const std::string& directory,
                         const std::string& folders, std::string& blocked) {
    const char* path = std::getenv("PATH");
    std::string rest = !folders.empty()  ? folders
                       : path != nullptr ? path
                                         : "/usr/local/bin:/usr/bin:/bin";
    while (true) {
        const std::size_t colon = rest.find(':');
        std::string folder = rest.substr(0, colon);
        if (folder.empty()) {
            folder = ".";
        }
        std::string candidate = folder;
        candidate.append("/").append(name);
        if (runs(in_directory(directory, candidate))) {
            return candidate;
        }
        if (blocked.empty() && is_file(in_directory(directory, candidate))) {
            blocked = candidate;
        }
        if (colon == std::string::npos) {
            return "";
        }
        rest.erase(0, colon + 1);
    }
}

// Variables of an mpiexec whose rank started this one are not for its ranks.
bool is_of_outer_job(const char* entry) {
    const auto is = [entry](const char* name) {
        const std::size_t length = std::strlen(name);
        return std::strncmp(entry, name, length) == 0 && entry[length] == '=';
    };
    const auto names = [&is](const RankVariable& variable) { return is(variable.name); };
    static constexpr const char* others[] = {
        "WARREN_SEGMENT",         "WARREN_LIFELINE",     "WARREN_RANKS_HERE", "WARREN_JOB",
        "WARREN_HWLOC",           "WARREN_HWLOC_SHMEM",  "WARREN_HWLOC_XML",  "WARREN_TOPOLOGY",
        "WARREN_TOPOLOGY_SOCKET", "WARREN_MEMORY_KINDS", "WARREN_BOOK"};
    return std::ranges::any_of(rank_variables, names) ||
           std::ranges::any_of(size_variables, names) || std::ranges::any_of(others, is);
}

} // namespace

Error ResolvedProgram::resolve(const Program& program, ResolvedProgram& made) {
    made.program_ = program;
    const std::string& name = program.arguments[0];
    const std::string& directory = program.directory;
    struct stat status;
    if (!directory.empty() && (stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))) {
        return fail(exit_usage, "working directory '%s' of %s is no directory", directory.c_str(),
                    name.c_str());
    }
    std::string blocked;
    if (name.empty()) {
        return fail(exit_not_found, "the name of the program is empty");
    }
    if (name.find('/') != std::string::npos) {
        made.path_ = name;
        const std::string full = in_directory(directory, name);
        if (stat(full.c_str(), &status) != 0) {
            return fail(exit_not_found, "program '%s': %s", full.c_str(), std::strerror(errno));
        }
        if (!runs(full)) {
            blocked = S_ISDIR(status.st_mode) ? full + " (a directory)" : full;
            made.path_.clear();
        }
    } else {
        made.path_ = find_in_path(name, directory, program.search, blocked);
    }
    if (made.path_.empty() && !blocked.empty()) {
        return fail(exit_not_executable, "program '%s' is not executable", blocked.c_str());
    }
    if (made.path_.empty()) {
        const bool here = runs(in_directory(directory, "./" + name));
        return fail(exit_not_found, "program '%s' is not in %s%s%s%s", name.c_str(),
                    program.search.empty() ? "PATH" : program.search.c_str(),
                    here ? "; did you mean ./" : "", here ? name.c_str() : "", here ? " ?" : "");
    }

    made.foreign_ = foreign_need(made.full_path(), own_folder());
    Program& own = made.program_;
    static char shell[] = "/bin/sh";
    made.shell_pointers_ = {shell, made.path_.data()};
    for (std::size_t index = 0; index < own.arguments.size(); ++index) {
        made.argument_pointers_.push_back(own.arguments[index].data());
        if (index > 0) {
            made.shell_pointers_.push_back(own.arguments[index].data());
        }
    }
    made.argument_pointers_.push_back(nullptr);
    made.shell_pointers_.push_back(nullptr);
    return {};
}

std::string ResolvedProgram::full_path() const {
    return in_directory(program_.directory, path_);
}

void Environment::set(const EnvironmentSetting& setting) {
    const std::string start = setting.name + "=";
    for (std::string& entry : entries_) {
        if (entry.starts_with(start)) {
            entry = start + setting.value;
            return;
        }
    }
    entries_.push_back(start + setting.value);
}

// Adds the library behind the user's own.
void Environment::preload(const std::string& library) {
    const std::string start = "LD_PRELOAD=";
    for (std::string& entry : entries_) {
        if (entry.starts_with(start)) {
            entry += (entry.size() > start.size() ? ":" : "") + library;
            return;
        }
    }
    entries_.push_back(start + library);
}

void Environment::limit_preload(const std::vector<std::string>& libraries) {
    const std::string start = "LD_PRELOAD=";
    for (std::size_t index = 0; index < entries_.size(); ++index) {
        std::string& entry = entries_[index];
        if (entry.starts_with(start)) {
            entry = start;
            for (const std::string& library : libraries) {
                entry += (entry.size() > start.size() ? ":" : "") + library;
            }
            pointers_[index] = entry.data();
        }
    }
}

void Environment::put_first(const std::string& folders) {
    const std::string start = "LD_LIBRARY_PATH=";
    for (std::string& entry : entries_) {
        if (entry.starts_with(start)) {
            const std::string others = entry.substr(start.size());
            entry = start + folders + (others.empty() ? "" : ":" + others);
            return;
        }
    }
    entries_.push_back(start + folders);
}

void Environment::build(const std::vector<EnvironmentSetting>& global,
                        const std::vector<EnvironmentSetting>& own, const RankEnvironment& rank,
                        char** inherited) {
    entries_.clear();
    for (const RankVariable& variable : rank_variables) {
        entries_.push_back(std::string(variable.name) + "=");
    }
    const RankNumbers sizes = {.in_world = rank.size, .on_node = rank.size_on_node};
    for (const RankVariable& variable : size_variables) {
        entries_.push_back(std::string(variable.name) + "=" + std::to_string(sizes.of(variable)));
    }
    if (rank.segment >= 0) {
        entries_.push_back("WARREN_SEGMENT=" + std::to_string(rank.segment));
        entries_.push_back("WARREN_LIFELINE=" + std::to_string(rank.lifeline));
    }
    if (rank.ranks_here > 0) {
        entries_.push_back("WARREN_RANKS_HERE=" + std::to_string(rank.ranks_here));
    }
    entries_.push_back("WARREN_JOB=" + rank.job);
    for (char** entry = inherited; *entry != nullptr; ++entry) {
        if (!is_of_outer_job(*entry)) {
            entries_.emplace_back(*entry);
        }
    }
    for (const EnvironmentSetting& setting : global) {
        set(setting);
    }
    for (const EnvironmentSetting& setting : own) {
        set(setting);
    }
    for (const EnvironmentSetting& setting : rank.more) {
        set(setting);
    }
    if (!rank.preload.empty()) {
        preload(rank.preload);
    }
    if (!rank.libraries.empty()) {
        put_first(rank.libraries);
    }
    pointers_.clear();
    for (std::string& entry : entries_) {
        pointers_.push_back(entry.data());
    }
    pointers_.push_back(nullptr);
}

} // namespace warren::launch
