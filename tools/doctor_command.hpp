// `warren doctor`: what of this system stands in Warren's way, with the remedy for each.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace warren::tools {

struct Finding {
    enum Weight {
        good,
        note,    // good to know
        hinders, // something is slower, or missing
        prevents // jobs, or the program that is asked about, don't run
    };
    Weight weight = good;
    std::string subject; // one or two words
    std::string what;
    std::string remedy = {}; // empty: there is nothing to be done
};

// Without /proc nothing else can be said: of files that Warren finds from there, each would seem to
// be missing.
std::optional<Finding> missing_proc();
// What this system lets processes do.
std::vector<Finding> examine_system();
// Variables of the environment that mpiexec refuses.
std::vector<Finding> examine_variables();
// What this installation has.
std::vector<Finding> examine_installation();
// What the program at `path` is built for, and how it can run.
std::vector<Finding> examine_program(const std::string& path);

// Runs with the words behind the command's name. The exit code: 1 if something prevents jobs or the
// program, 0, or wrong_words.
int doctor_command(const std::vector<std::string>& words);

} // namespace warren::tools
