#include "bench_command.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "launch/mpiexec/own_place.hpp"
#include "locality_report.hpp"

namespace warren::tools {

int bench_command(const std::vector<std::string>& words) {
    const std::string own = launch::own_folder();
    const std::string program = own + "/../" WARREN_DATA_FOLDER "/bench/quick_comparison.py";
    if (access(program.c_str(), R_OK) != 0) {
        std::fprintf(stderr, "warren: bench: %s: %s: it belongs to the installation\n",
                     program.c_str(), std::strerror(errno));
        return 1;
    }
    const std::string prefix = own + "/..";
    const std::string python = python_of_reports();
    std::vector<const char*> line{python.c_str(), program.c_str(), "--warren", prefix.c_str()};
    for (const std::string& word : words) {
        line.push_back(word.c_str());
    }
    line.push_back(nullptr);
    execvp(line[0], const_cast<char* const*>(line.data()));
    std::fprintf(stderr, "warren: bench: %s: %s\n", python.c_str(), std::strerror(errno));
    return 1;
}

} // namespace warren::tools
