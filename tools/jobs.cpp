#include "jobs.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "launch/mpiexec/running_jobs.hpp"
#include "mpi.h"

namespace warren::tools {

namespace {

using launch::RunningJob;

// The mpiexec of the only job, as text; empty: there is none, or several.
std::string only_job(const char* command) {
    std::vector<std::string> started;
    for (const RunningJob& job : launch::running_jobs()) {
        if (job.spawner == 0) {
            started.push_back(std::to_string(job.mpiexec));
        }
    }
    if (started.size() == 1) {
        return started[0];
    }
    std::fputs(started.empty() ? "warren: no job of yours runs here\n"
                               : "warren: several jobs run here; which mpiexec?\n",
               stderr);
    for (const std::string& one : started) {
        std::fprintf(stderr, "  warren %s %s\n", command, one.c_str());
    }
    return {};
}

// 0: it is none.
pid_t number_of_process(const std::string& text) {
    return text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos
               ? std::atoi(text.c_str())
               : 0;
}

Error attach_process(pid_t process, const std::string& name, node::Segment& segment) {
    const int descriptor = launch::open_segment_of(process);
    return descriptor >= 0
               ? node::Segment::attach(descriptor, segment)
               : fail(MPI_ERR_OTHER,
                      "process %s is no mpiexec or rank of a job that you may look into",
                      name.c_str());
}

} // namespace

bool attach_job(const std::string& pid, const char* command, node::Segment& segment) {
    const std::string chosen = pid.empty() ? only_job(command) : pid;
    if (chosen.empty()) {
        return false;
    }
    if (Error error = attach_process(number_of_process(chosen), chosen, segment)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        std::fprintf(stderr, "warren: %s\n", record->text.c_str());
        return false;
    }
    return true;
}

bool attach_worlds(const std::string& pid, const char* command,
                   std::vector<node::Segment>& worlds) {
    node::Segment job;
    if (!attach_job(pid, command, job)) {
        return false;
    }
    const auto mpiexec = static_cast<pid_t>(job.header().launcher_pid);
    worlds.clear();
    worlds.push_back(std::move(job));
    for (const pid_t spawned : launch::with_spawned(launch::running_jobs(), mpiexec)) {
        node::Segment segment;
        if (spawned == mpiexec) {
            continue;
        }
        if (Error error = attach_process(spawned, std::to_string(spawned), segment)) {
            error.drop(); // it has ended
            continue;
        }
        worlds.push_back(std::move(segment));
    }
    return true;
}

} // namespace warren::tools
