// The `warren` command: what a user asks about the installation, the node and running jobs. The
// table in commands.cpp lists its commands.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "commands.hpp"

namespace {

// The exit code, once all output is where it should be: a full disk is a failure too.
int after_output(int code) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return code;
    }
    std::fprintf(stderr, "warren: the output can't be written: %s\n", std::strerror(errno));
    return code == 0 ? 1 : code;
}

} // namespace

int main(int argc, char** argv) {
    const std::string name = argc >= 2 ? argv[1] : "";
    const bool help = name == "help" || name == "--help";
    const warren::tools::Command* command =
        warren::tools::find_command(name == "--version" ? "version" : name);
    if (command != nullptr) {
        const int code = command->run({argv + 2, argv + argc});
        if (code != warren::tools::wrong_words) {
            return after_output(code);
        }
    }
    std::fputs(warren::tools::usage().c_str(), help ? stdout : stderr);
    return after_output(help ? 0 : 2);
}
