// mpiexec: reads the command line and runs the job.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "launch/mpiexec/agent.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/front.hpp"
#include "launch/mpiexec/hosts.hpp"
#include "launch/mpiexec/job.hpp"
#include "launch/mpiexec/request.hpp"
#include "launch/mpiexec/running_jobs.hpp"
#include "launch/mpiexec/spawned_by.hpp"
#include "mpi/job/spawn_request.hpp"
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
    for (const char* name :
         {"WARREN_SEGMENT", "WARREN_LIFELINE", "WARREN_HWLOC_SHMEM", "WARREN_HWLOC_XML",
          "WARREN_TOPOLOGY", "WARREN_TOPOLOGY_SOCKET", "WARREN_BOOK"}) {
        const char* text = std::getenv(name);
        const int descriptor = text != nullptr ? std::atoi(text) : 0;
        if (descriptor > 2) {
            fcntl(descriptor, F_SETFD, FD_CLOEXEC);
        }
    }
}

// The command line, and the nodes that it is for; none: this one alone.
// A spawned world is on this one.
Error read_all(std::vector<std::string>& words, bool spawned, CommandLine& line,
               std::vector<Host>& hosts) {
    if (Error error = expand_config_file(words)) {
        return error;
    }
    if (Error error = read_request(words, line)) {
        return error;
    }
    if (line.request != CommandLine::Request::run) {
        return {};
    }
    for (const std::string& note : line.notes) {
        std::fprintf(stderr, "mpiexec: %s\n", note.c_str());
    }
    if (spawned) {
        return {};
    }
    if (Error error = plan_hosts(line, hosts)) {
        return error;
    }
    if (line.keeps_going && !hosts.empty()) {
        return fail(exit_usage, "--keep-going is for a job of one node: ranks of several end with "
                                "any of them");
    }
    return line.profile && !hosts.empty()
               ? fail(exit_usage, "--profile is for a job of one node: ranks of several keep their "
                                  "records apart")
               : Error{};
}

// Words that mpiexec would have taken for its own (mpi/job/spawn_request.hpp).
void unescape_arguments(CommandLine& line) {
    for (Program& program : line.programs) {
        for (std::string& argument : program.arguments) {
            if (argument.starts_with(node::spawn_escape)) {
                argument.erase(0, 1);
            }
        }
    }
}

} // namespace

int main(int count, char** arguments) {
    open_standard_descriptors();
    // By this name `warren` finds it, whatever the file that was executed is called.
    prctl(PR_SET_NAME, mpiexec_name);
    leave_outer_job();
    if (count == 2 && std::strcmp(arguments[1], agent_word) == 0) {
        return run_agent();
    }
    std::vector<std::string> words(arguments + 1, arguments + count);
    CommandLine line;
    std::vector<Host> hosts;
    SpawnedBy spawned_by;
    spawned_by.read_environment();
    if (Error error = read_all(words, spawned_by.is_spawned(), line, hosts)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        if (spawned_by.tell(record->text)) {
            return 0;
        }
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
    if (!hosts.empty()) {
        return Front(line, std::move(words), std::move(hosts)).run();
    }
    int exit_code = 0;
    {
        if (spawned_by.is_spawned()) {
            unescape_arguments(line);
        }
        Job job(line, spawned_by);
        exit_code = job.run();
    }
    return exit_code;
}
