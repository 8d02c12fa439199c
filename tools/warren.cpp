// The `warren` command: what a user asks about the installation, the node and running jobs. The
// table in commands.cpp lists its commands.
#include <cstdio>
#include <string>

#include "commands.hpp"

int main(int argc, char** argv) {
    const std::string name = argc >= 2 ? argv[1] : "";
    const bool help = name == "help" || name == "--help";
    const warren::tools::Command* command =
        warren::tools::find_command(name == "--version" ? "version" : name);
    if (command != nullptr) {
        const int code = command->run({argv + 2, argv + argc});
        if (code != warren::tools::wrong_words) {
            return code;
        }
    }
    std::fputs(warren::tools::usage().c_str(), help ? stdout : stderr);
    return help ? 0 : 2;
}
