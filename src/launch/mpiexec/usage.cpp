// The text of mpiexec --help, made of the table of options.
#include <algorithm>

#include "launch/mpiexec/options.hpp"

namespace warren::launch {

namespace {

constexpr std::size_t help_width = 80;
constexpr std::size_t help_column = 23;
constexpr std::size_t heading_limit = 28; // the help of longer ones begins on the next line

constexpr std::string_view start =
    "usage: mpiexec [options] program [arguments] { : [options] program [arguments] }\n";

constexpr std::string_view end =
    "\n"
    "Each rank finds its number and that of all ranks in the variables WARREN_RANK and\n"
    "WARREN_SIZE.\n"
    "\n"
    "Standard input goes to rank 0. Ctrl-C is passed on to the ranks; a second one ends\n"
    "them. SIGUSR1 or SIGQUIT (Ctrl-\\) prints what every rank waits for, and so does\n"
    "`warren state PID` from another terminal.\n"
    "\n"
    "The exit code is 0 when all ranks succeed, else that of the first rank that failed (128\n"
    "+ the signal when it was killed; the code given to MPI_Abort); 1 when mpiexec lacks\n"
    "something, 2 for a wrong command line, 124 after --timeout, 125 when fibres wait for each\n"
    "other, 126 and 127 for a program that cannot be run or is not there.\n"
    "\n"
    "Variables of the environment: WARREN_RANKS=KIND, as --ranks;\n"
    "WARREN_TOPOLOGY=SOURCE, as --topology;\n"
    "WARREN_NETWORK=PROVIDER[,INTERFACE], of libfabric, between nodes;\n"
    "WARREN_CONNECT_TIMEOUT=SECONDS that MPI_Comm_connect waits for (600);\n"
    "WARREN_MEMORY_VALUES=FILE of measured values of the memories, or none;\n"
    "WARREN_MEMORY_SHARE=first: no fair shares of scarce memories;\n"
    "WARREN_TOPOLOGY_WAY=native or image: discover the node, or never do.\n";

std::string heading(const Option& option) {
    std::string text;
    for (const std::string_view name : option.names) {
        if (!name.empty()) {
            text += (text.empty() ? "  " : ", ") + std::string(name);
        }
    }
    return text + std::string(option.value);
}

// Adds the heading and, from help_column on, the help, broken between words.
void add(std::string& text, const Option& option) {
    std::string line = heading(option);
    if (line.size() > heading_limit) {
        text += line + "\n";
        line.clear();
    }
    line.resize(std::max(line.size() + 1, help_column - 1), ' ');
    for (std::string_view rest = option.help; !rest.empty();) {
        const std::size_t length = std::min(rest.find(' '), rest.size());
        const std::string_view word = rest.substr(0, length);
        rest.remove_prefix(std::min(length + 1, rest.size()));
        if (line.size() + 1 + word.size() > help_width) {
            text += line + "\n";
            line.assign(help_column - 1, ' ');
        }
        line += " " + std::string(word);
    }
    text += line + "\n";
}

} // namespace

std::string usage() {
    std::string text(start);
    std::string_view section;
    for (const Option& option : options()) {
        if (option.section != section) {
            section = option.section;
            text += "\n" + std::string(section) + "\n";
        }
        add(text, option);
    }
    return text + std::string(end);
}

} // namespace warren::launch
