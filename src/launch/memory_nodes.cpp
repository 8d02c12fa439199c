#include "launch/memory_nodes.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren::launch {

namespace {

constexpr long node_limit = 1024; // the kernel's largest configuration

int node_of(const std::string& folder) {
    DIR* entries = opendir(folder.c_str());
    int node = 0;
    if (entries != nullptr) {
        while (const dirent* entry = readdir(entries)) {
            const char* name = entry->d_name;
            char* end = nullptr;
            if (std::strncmp(name, "node", 4) == 0 && name[4] >= '0' && name[4] <= '9') {
                const long number = std::strtol(name + 4, &end, 10);
                node = *end == '\0' && number < node_limit ? static_cast<int>(number) : node;
            }
        }
        closedir(entries);
    }
    return node;
}

} // namespace

std::vector<int> nodes_of_processors(const std::vector<int>& processors, const std::string& root) {
    std::vector<int> nodes;
    nodes.reserve(processors.size());
    for (const int processor : processors) {
        nodes.push_back(node_of(root + "/sys/devices/system/cpu/cpu" + std::to_string(processor)));
    }
    return nodes;
}

int refusal_to_move_pages() {
    volatile int here = 0;
    void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&here) & ~4095UL);
    int node = -1;
    int status = 0;
    if (syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &node, 0) != 0) {
        return errno;
    }
    if (node < 0) {
        return -node;
    }
    return syscall(SYS_move_pages, 0, 1UL, &page, &node, &status, MPOL_MF_MOVE) < 0 ? errno : 0;
}

} // namespace warren::launch
