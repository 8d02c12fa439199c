#include "launch/mpiexec/own_place.hpp"

#include <unistd.h>

namespace warren::launch {

std::string own_folder() {
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    const std::string whole(path, size > 0 ? static_cast<std::size_t>(size) : 0);
    return whole.substr(0, whole.rfind('/'));
}

} // namespace warren::launch
