#include "launch/mpiexec/memory_nodes.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <linux/mempolicy.h>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "memory/heap/system_file.hpp"

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

memory::NodeSet nodes_with_memory(const std::string& root) {
    const memory::NodeSet granted = memory::nodes_of_status(root.c_str());
    char text[4096];
    if (!memory::read_start((root + "/sys/devices/system/node/has_memory").c_str(), text)) {
        return granted; // a kernel that knows no nodes
    }
    memory::NodeSet nodes;
    const char* at = text;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    while (memory::next_of_list(at, first, last)) {
        for (std::uint64_t node = first; node <= last && node < memory::node_limit; ++node) {
            if (granted.has(static_cast<int>(node))) {
                nodes.add(static_cast<int>(node));
            }
        }
    }
    return nodes;
}

std::vector<int> leave_out_others(std::vector<int>& nodes, const memory::NodeSet& with_memory) {
    std::set<int> left_out;
    for (int& node : nodes) {
        if (!with_memory.has(node)) {
            left_out.insert(std::exchange(node, no_node));
        }
    }
    return {left_out.begin(), left_out.end()};
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
