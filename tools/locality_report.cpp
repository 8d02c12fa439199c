#include "locality_report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "launch/mpiexec/own_place.hpp"

namespace warren::tools {

namespace {

bool exists(const std::string& path) {
    return access(path.c_str(), R_OK) == 0;
}

} // namespace

std::string python_of_reports() {
    const std::string folder = launch::own_folder();
    if (const char* chosen = std::getenv("WARREN_PYTHON")) {
        return chosen;
    }
    // Of build/PRESET/bin; of an environment that a wheel was installed into.
    for (const std::string& environment :
         {folder + "/../../python/bin/python3", folder + "/python3"}) {
        if (exists(environment)) {
            return environment;
        }
    }
    return "python3";
}

int locality_report(const std::vector<std::string>& arguments) {
    const std::string folder = launch::own_folder();
    std::string modules = folder + launch::library_folder + "python3";
    if (!exists(modules + "/warren/locality/__main__.py")) {
        std::fprintf(stderr,
                     "warren: locality: %s/warren is not there: the Python modules belong to "
                     "the installation\n",
                     modules.c_str());
        return 1;
    }
    const char* path = std::getenv("PYTHONPATH");
    if (path != nullptr && path[0] != '\0') {
        modules += ":" + std::string(path);
    }
    setenv("PYTHONPATH", modules.c_str(), 1);
    setenv("WARREN_COMMAND", (folder + "/warren").c_str(), 1); // for `warren topo`

    const std::string python = python_of_reports();
    std::vector<const char*> words{python.c_str(), "-m", "warren.locality"};
    for (const std::string& argument : arguments) {
        words.push_back(argument.c_str());
    }
    words.push_back(nullptr);
    execvp(words[0], const_cast<char* const*>(words.data()));
    std::fprintf(stderr, "warren: locality: %s: %s\n", python.c_str(), std::strerror(errno));
    return 1;
}

} // namespace warren::tools
