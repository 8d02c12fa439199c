// Report: what mpiexec says about a job, and the exit code that follows.
//
// The first failure decides the exit code and the message; what happens to the other ranks because
// of it is not reported. Thread rule: mpiexec's only thread.
#pragma once

#include <string>

#include "base/error.hpp"
#include "launch/mpiexec/link.hpp"
#include "launch/mpiexec/rank_output.hpp"
#include "launch/mpiexec/spawned_by.hpp"

namespace warren::launch {

class Report {
  public:
    // Failures are told by `link`, or to the rank that `spawned_by` knows to wait for this job, and
    // not said here.
    Report(RankOutput& output, bool verbose, Link* link = nullptr, SpawnedBy* spawned_by = nullptr)
        : output_(output), verbose_(verbose), link_(link), spawned_by_(spawned_by) {}

    void say(const std::string& text);
    void explain(const std::string& text); // with -v

    void fail(int exit_code, const std::string& message);
    // An error of another room.
    void fail(int exit_code, Error error);
    // One of the launcher's own (errors.hpp).
    void fail(Error error);
    // The next failure explains more than the one that was told.
    void take_back();
    // A signal has ended mpiexec.
    void end_by(int signal) { exit_code_ = 128 + signal; }

    bool failed() const { return failed_; }
    int exit_code() const { return exit_code_; }

  private:
    RankOutput& output_;
    bool verbose_;
    Link* link_;
    SpawnedBy* spawned_by_;
    bool failed_ = false;
    int exit_code_ = 0;
};

// The message for output of ranks that mpiexec can't pass on.
std::string describe_write_error(int error_number);

} // namespace warren::launch
