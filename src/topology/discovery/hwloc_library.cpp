#include "topology/discovery/hwloc_library.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <sys/single_threaded.h>

namespace warren::discovery {

namespace {

constexpr const char* file = "libhwloc.so.15";
// The plug-ins that it leaves alone.
constexpr const char* plugins_variable = "HWLOC_PLUGINS_BLACKLIST";
constexpr const char* plugins_of_devices =
    "hwloc_opencl,hwloc_gl,hwloc_cuda,hwloc_nvml,hwloc_rsmi,hwloc_levelzero,hwloc_ve";
constexpr unsigned oldest_interface = 0x20800; // hwloc 2.9's

template <typename Function>
bool find(void* library, const char* name, Function& function, std::string& problem) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
        problem = std::string(name) + " is missing in " + file;
    }
    return function != nullptr;
}

} // namespace

HwlocLibrary::HwlocLibrary() {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* text = dlerror();
        problem_ = text != nullptr ? text : std::string(file) + " can't be loaded";
        return;
    }
    bool is_whole = true;
#define WARREN_HWLOC_FIND(name)                                                                    \
    is_whole = is_whole && find(library, "hwloc_" #name, name, problem_);
    WARREN_HWLOC_FUNCTIONS(WARREN_HWLOC_FIND)
#undef WARREN_HWLOC_FIND
    if (is_whole && get_api_version() < oldest_interface) {
        problem_ = std::string(file) + " is older than hwloc 2.9";
    }
}

HwlocLibrary::WithoutPlugins::WithoutPlugins()
    // Changing the environment is nothing for a program with threads.
    : is_set_(__libc_single_threaded != 0 && std::getenv(plugins_variable) == nullptr &&
              setenv(plugins_variable, plugins_of_devices, 1) == 0) {}

HwlocLibrary::WithoutPlugins::~WithoutPlugins() {
    if (is_set_) {
        unsetenv(plugins_variable);
    }
}

const HwlocLibrary* HwlocLibrary::get(std::string& problem) {
    static const HwlocLibrary library;
    problem = library.problem_;
    return library.problem_.empty() ? &library : nullptr;
}

std::mutex& HwlocLibrary::calls() {
    static std::mutex mutex; // of the process, as hwloc's own locks are
    return mutex;
}

std::string HwlocLibrary::version() const {
    const unsigned version = get_api_version();
    return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff);
}

} // namespace warren::discovery
