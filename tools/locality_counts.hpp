// `warren locality record --mode counts`: runs a program under DynamoRIO with the client that
// counts accesses (analyser/counts). The command becomes the program and no process waits for it,
// so signals, exit status and the place in a job are the program's own.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// Options that select the mode and the help, among the words behind `record`.
struct Asked {
    std::string mode = "first-touch"; // the last one that is named
    bool help = false;
};
Asked asked_of(const std::vector<std::string>& words);

extern const char* const counts_usage;

// Records in modes counts and sample. Mode counts returns the exit status only if the program is
// not started. In mode sample `signal` is the signal that ended the program, if any.
int record_counts(const std::vector<std::string>& words, int& signal);

} // namespace warren::tools
