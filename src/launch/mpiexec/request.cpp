#include "launch/mpiexec/request.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/option_values.hpp"

namespace warren::launch {

namespace {

// Programs find another MPI library, and what that one has beside it, as the system finds
// libraries.
Error use_library(const std::string& path) {
    if (access(path.c_str(), R_OK) != 0) {
        return fail(exit_usage, "--library %s: %s", path.c_str(), std::strerror(errno));
    }
    const char* others = std::getenv("LD_LIBRARY_PATH");
    const std::string folders =
        path.substr(0, path.rfind('/')) + (others != nullptr ? ":" + std::string(others) : "");
    setenv("LD_LIBRARY_PATH", folders.c_str(), 1);
    return {};
}

} // namespace

Error read_request(const std::vector<std::string>& words, CommandLine& line) {
    if (Error error = parse_command_line(words, line)) {
        return error;
    }
    const char* limit = std::getenv("MPIEXEC_TIMEOUT");
    if (line.timeout_s <= 0 && limit != nullptr) {
        if (Error error = parse_timeout("MPIEXEC_TIMEOUT", limit, line.timeout_s)) {
            return error;
        }
    }
    const char* kind = std::getenv("WARREN_RANKS");
    if (!line.rank_kind_given && line.ranks_per_process == 1 && kind != nullptr) {
        if (Error error = parse_rank_kind("WARREN_RANKS", kind, line.rank_kind)) {
            return error;
        }
    }
    // A source that the user names, as for programs that run without mpiexec; not the number of an
    // outer job's descriptor.
    const char* topology = std::getenv("WARREN_TOPOLOGY");
    if (line.topology.empty() && topology != nullptr && (*topology < '0' || *topology > '9')) {
        line.topology = topology;
    }
    if (Error error = check_combinations(line)) {
        return error;
    }
    return line.library.empty() ? Error{} : use_library(line.library);
}

} // namespace warren::launch
