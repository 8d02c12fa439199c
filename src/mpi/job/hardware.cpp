#include "mpi/job/hardware.hpp"

#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <sched.h>
#include <string>
#include <strings.h>
#include <unistd.h>
#include <vector>

#include "base/futex.hpp"

namespace warren::node {

namespace {

constexpr const char* names[hardware_kinds] = {"hwloc://Machine",  "hwloc://Package",
                                               "hwloc://NUMANode", "hwloc://L3Cache",
                                               "hwloc://Core",     "hwloc://PU"};
constexpr int processor_limit = 8192;

// The processors that the thread may run on, in rising order. A fibre goes from worker to worker,
// so it may where the process's first thread may, which is bound to none of their processors.
std::vector<int> own_processors() {
    const pid_t whose = fibres() != nullptr ? getpid() : 0;
    std::vector<int> processors;
    cpu_set_t* set = CPU_ALLOC(processor_limit);
    const std::size_t bytes = CPU_ALLOC_SIZE(processor_limit);
    if (set != nullptr && sched_getaffinity(whose, bytes, set) == 0) {
        for (int cpu = 0; cpu < processor_limit; ++cpu) {
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) {
                processors.push_back(cpu);
            }
        }
    }
    CPU_FREE(set);
    return processors;
}

// The first line of a file; empty when it can't be read.
std::string read_line(const std::string& path) {
    std::string line;
    if (std::FILE* file = std::fopen(path.c_str(), "re")) {
        char text[4096];
        if (std::fgets(text, sizeof text, file) != nullptr) {
            line = text;
        }
        std::fclose(file);
    }
    return line;
}

// Whether a list like 0-3,8 has all of the processors. `first`: the first in it.
bool has_all(const std::string& list, const std::vector<int>& processors, std::int32_t& first) {
    std::size_t found = 0;
    const char* text = list.c_str();
    first = static_cast<std::int32_t>(std::strtol(text, nullptr, 10));
    while (*text >= '0' && *text <= '9') {
        char* end = nullptr;
        const long low = std::strtol(text, &end, 10);
        const long high = *end == '-' ? std::strtol(end + 1, &end, 10) : low;
        while (found < processors.size() && processors[found] >= low && processors[found] <= high) {
            ++found;
        }
        text = *end == ',' ? end + 1 : end;
    }
    return found == processors.size();
}

// The memory node of a processor, or -1.
int node_of(const std::string& directory) {
    int node = -1;
    if (DIR* entries = opendir(directory.c_str())) {
        while (const dirent* entry = readdir(entries)) {
            std::sscanf(entry->d_name, "node%d", &node);
        }
        closedir(entries);
    }
    return node;
}

} // namespace

HardwarePlace find_hardware_place() {
    HardwarePlace place;
    for (std::int32_t& instance : place.instance) {
        instance = HardwarePlace::several;
    }
    place.instance[static_cast<int>(Hardware::machine)] = 0;
    const std::vector<int> processors = own_processors();
    if (processors.empty()) {
        return place;
    }
    const std::string own =
        "/sys/devices/system/cpu/cpu" + std::to_string(processors.front()) + "/";
    const auto look = [&](Hardware kind, const std::string& path) {
        std::int32_t first = 0;
        if (has_all(read_line(path), processors, first)) {
            place.instance[static_cast<int>(kind)] = first;
        }
    };
    look(Hardware::package, own + "topology/core_siblings_list");
    look(Hardware::l3_cache, own + "cache/index3/shared_cpu_list");
    look(Hardware::core, own + "topology/thread_siblings_list");
    if (const int node = node_of(own); node >= 0) {
        look(Hardware::numa_node,
             "/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
    }
    if (processors.size() == 1) {
        place.instance[static_cast<int>(Hardware::processor)] = processors.front();
    }
    return place;
}

const char* hardware_name(Hardware kind) {
    return names[static_cast<int>(kind)];
}

bool find_hardware(std::string_view name, Hardware& kind) {
    const std::string wanted(name);
    constexpr std::size_t scheme = sizeof "hwloc://" - 1;
    for (int i = 0; i < hardware_kinds; ++i) {
        if (strcasecmp(wanted.c_str(), names[i]) == 0 ||
            strcasecmp(wanted.c_str(), names[i] + scheme) == 0) {
            kind = static_cast<Hardware>(i);
            return true;
        }
    }
    return false;
}

} // namespace warren::node
