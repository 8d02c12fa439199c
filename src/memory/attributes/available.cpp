// Bytes of a memory that are available now, by the kernel's account.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "memory/attributes/machine.hpp"
#include "memory/heap/control_group.hpp"
#include "memory/heap/reserve.hpp"

namespace warren::memory {

namespace {

Error unreadable(const std::string& path) {
    return fail(WARREN_MEM_ERR_NO_VALUE, "what is available can't be read from %s", path.c_str());
}

} // namespace

Error read_available(const std::string& root, std::uint32_t node, std::size_t reserved_page_bytes,
                     std::uint64_t& bytes) {
    bytes = 0;
    const std::string folder = root + "/sys/devices/system/node/node" + std::to_string(node);
    if (reserved_page_bytes != 0) {
        const std::int64_t pages =
            free_reserved_pages(root.c_str(), static_cast<int>(node),
                                static_cast<unsigned>(std::countr_zero(reserved_page_bytes)));
        bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 0)) * reserved_page_bytes;
        return {};
    }
    const std::string path = folder + "/meminfo";
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) {
        return unreadable(path);
    }
    bool found = false;
    char line[128];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        // "Node 0 MemFree:   1234 kB"
        char name[64];
        std::uint64_t kibibytes = 0;
        if (std::sscanf(line, "Node %*u %63s %" SCNu64, name, &kibibytes) != 2) {
            continue;
        }
        const bool is_free = std::strcmp(name, "MemFree:") == 0;
        found = found || is_free;
        if (is_free || std::strcmp(name, "Inactive(file):") == 0 ||
            std::strcmp(name, "Active(file):") == 0) {
            bytes += kibibytes * 1024;
        }
    }
    std::fclose(file);
    bytes = std::min(bytes, static_cast<std::uint64_t>(group_bytes(root.c_str())));
    return found ? Error{} : unreadable(path);
}

} // namespace warren::memory
