// Bytes of a memory that are available now, by the kernel's account.
#include <algorithm>
#include <bit>

#include "memory/attributes/machine.hpp"
#include "memory/heap/control_group.hpp"
#include "memory/heap/numa.hpp"
#include "memory/heap/reserve.hpp"

namespace warren::memory {

Error read_available(const std::string& root, std::uint32_t node, std::size_t reserved_page_bytes,
                     std::uint64_t& bytes) {
    bytes = 0;
    if (reserved_page_bytes != 0) {
        const std::int64_t pages =
            free_reserved_pages(root.c_str(), static_cast<int>(node),
                                static_cast<unsigned>(std::countr_zero(reserved_page_bytes)));
        bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 0)) * reserved_page_bytes;
        return {};
    }
    const std::int64_t droppable = droppable_bytes(static_cast<int>(node), root.c_str());
    if (droppable < 0) {
        return fail(
            WARREN_MEM_ERR_NO_VALUE, "what is available can't be read from %s",
            (root + "/sys/devices/system/node/node" + std::to_string(node) + "/meminfo").c_str());
    }
    bytes = std::min(static_cast<std::uint64_t>(droppable),
                     static_cast<std::uint64_t>(group_bytes(root.c_str())));
    return {};
}

} // namespace warren::memory
