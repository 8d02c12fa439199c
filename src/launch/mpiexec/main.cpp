// mpiexec: reads the command line and runs the job.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/job.hpp"
#include "launch/mpiexec/option_values.hpp"
#include "warren/version.h"

using namespace warren;
using namespace warren::launch;

namespace {

// Descriptors 0 to 2 exist from here on, so that no pipe gets one of their numbers.
void open_standard_descriptors() {
    int descriptor = 0;
    while (descriptor >= 0 && descriptor <= 2) {
        descriptor = open("/dev/null", O_RDWR);
    }
    close(descriptor);
}

// In a rank of another job this mpiexec runs a job of its own; the rank's descriptors are not for
// it.
void leave_outer_job() {
    for (const char* name : {"WARREN_SEGMENT", "WARREN_LIFELINE", "WARREN_HWLOC_SHMEM",
                             "WARREN_HWLOC_XML", "WARREN_TOPOLOGY", "WARREN_TOPOLOGY_SOCKET"}) {
        const char* text = std::getenv(name);
        const int descriptor = text != nullptr ? std::atoi(text) : 0;
        if (descriptor > 2) {
            fcntl(descriptor, F_SETFD, FD_CLOEXEC);
        }
    }
}

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

// The command line, and from the environment what other launchers take from there too.
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

} // namespace

int main(int count, char** words) {
    open_standard_descriptors();
    leave_outer_job();
    CommandLine line;
    if (Error error = read_request({words + 1, words + count}, line)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        std::fprintf(stderr, "mpiexec: %s\n", record->text.c_str());
        return record->error_class;
    }
    switch (line.request) {
    case CommandLine::Request::help:
        std::fputs(usage().c_str(), stdout);
        return 0;
    case CommandLine::Request::version:
        std::printf("mpiexec (Warren) %d.%d.%d\n", WARREN_VERSION_MAJOR, WARREN_VERSION_MINOR,
                    WARREN_VERSION_PATCH);
        return 0;
    case CommandLine::Request::run:
        break;
    }
    int exit_code = 0;
    {
        Job job(line);
        exit_code = job.run();
    }
    return exit_code;
}
