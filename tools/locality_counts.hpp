// `warren locality record --mode counts`: runs a program under DynamoRIO with the client
// that counts accesses (src/locality/counts). The command becomes the program: there is nobody who
// waits, so signals, exit status and the place in a job are the program's own.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// Whether the words behind `record` ask for that mode.
bool wants_counts(const std::vector<std::string>& words);

// Returns the exit status if the program is not started.
int record_counts(const std::vector<std::string>& words);

} // namespace warren::tools
