// `warren locality record --mode counts`: runs a program under DynamoRIO with the client
// that counts accesses (analyser/counts). The command becomes the program: there is nobody who
// waits, so signals, exit status and the place in a job are the program's own.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// What the options among the words behind `record` ask for, in any mode.
struct Asked {
    std::string mode = "first-touch"; // the last one that is named
    bool help = false;
};
Asked asked_of(const std::vector<std::string>& words);

void show_counts_help();

// Modes counts and sample. In mode counts it returns only if the program is not started, with the
// exit status; in mode sample `signal` may be by what the program ended.
int record_counts(const std::vector<std::string>& words, int& signal);

} // namespace warren::tools
