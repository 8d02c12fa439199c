#include "memory/heap/numa.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <iterator>
#include <linux/mempolicy.h>
#include <numeric>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/heap/system_file.hpp"
#include "memory/heap/tuning.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace warren::memory {

namespace {

bool set_policy(void* begin, std::size_t bytes, int mode, const NodeSet& nodes) {
    // The kernel reads one bit less than it is told.
    return syscall(SYS_mbind, begin, bytes, mode, nodes.words, node_limit + 1UL, 0U) == 0;
}

// The lines that are read of a node's meminfo, and of the machine's, are among the first twelve.
constexpr std::size_t meminfo_bytes = 1024;
// Callers may have little of their stack left.
constexpr std::size_t path_bytes = 256;

// The figure behind a label, which is given in kB.
std::int64_t bytes_of(const char* text, const char* label) {
    const char* found = std::strstr(text, label);
    return found != nullptr ? std::strtoll(found + std::strlen(label), nullptr, 10) * 1024 : 0;
}

// Whether no other node has memory.
bool has_all_memory(int node, const char* root) {
    for (const char* list : {"has_memory", "online"}) {
        char path[path_bytes];
        std::snprintf(path, sizeof path, "%s/sys/devices/system/node/%s", root, list);
        char text[64]; // a list that is longer has several numbers
        if (read_start(path, text)) {
            const char* at = text;
            std::uint64_t first = 0;
            std::uint64_t last = 0;
            return next_of_list(at, first, last) && first == last &&
                   first == static_cast<std::uint64_t>(node) && !next_of_list(at, first, last);
        }
    }
    return false;
}

// The sum behind these labels in a node's account of its memory, or in the machine's, if that is
// more and the node's alone; -1: not known.
std::int64_t bytes_of_node(int node, const char* root, std::initializer_list<const char*> labels) {
    const auto sum = [labels](const char* path) {
        char text[meminfo_bytes];
        if (!read_start(path, text) || std::strstr(text, *labels.begin()) == nullptr) {
            return std::int64_t{-1};
        }
        return std::accumulate(labels.begin(), labels.end(), std::int64_t{0},
                               [&text](std::int64_t bytes, const char* label) {
                                   return bytes + bytes_of(text, label);
                               });
    };
    char path[path_bytes];
    std::snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/meminfo", root, node);
    const std::int64_t own = sum(path);
    if (own < 0 || !has_all_memory(node, root)) {
        return own;
    }
    std::snprintf(path, sizeof path, "%s/proc/meminfo", root);
    return std::max(own, sum(path));
}

} // namespace

bool NodeSet::empty() const {
    return std::all_of(std::begin(words), std::end(words), [](auto word) { return word == 0; });
}

NodeSet allowed_nodes() {
    NodeSet nodes;
    const int saved = errno;
    if (syscall(SYS_get_mempolicy, nullptr, nodes.words, node_limit + 0UL, nullptr,
                MPOL_F_MEMS_ALLOWED + 0UL) != 0 ||
        nodes.empty()) {
        nodes = nodes_of_status("");
    }
    errno = saved;
    return nodes;
}

NodeSet nodes_of_status(const char* root) {
    constexpr const char* label = "\nMems_allowed_list:";
    // The masks of 8192 processors and 1024 nodes stand before it.
    char text[8192];
    char path[PATH_MAX];
    std::snprintf(path, sizeof path, "%s/proc/self/status", root);
    NodeSet nodes;
    const char* at = read_start(path, text) ? std::strstr(text, label) : nullptr;
    if (at != nullptr) {
        at += std::strlen(label);
        at += std::strspn(at, " \t");
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        while (next_of_list(at, first, last)) {
            for (std::uint64_t node = first; node <= last && node < node_limit; ++node) {
                nodes.add(static_cast<int>(node));
            }
        }
    }
    if (nodes.empty()) {
        nodes.add(0);
    }
    return nodes;
}

std::int64_t free_bytes(int node, const char* root) {
    return bytes_of_node(node, root, {"MemFree:"});
}

std::int64_t droppable_bytes(int node, const char* root) {
    return bytes_of_node(node, root, {"MemFree:", "Active(file):", "Inactive(file):"});
}

std::int64_t kept_back_bytes(int node, const char* root) {
    char path[PATH_MAX];
    std::snprintf(path, sizeof path, "%s/proc/zoneinfo", root);
    char beginning[32];
    std::snprintf(beginning, sizeof beginning, "Node %d, ", node);
    SystemFile file(path);
    std::uint64_t pages = 0;
    std::uint64_t high = 0;
    std::uint64_t managed = 0;
    bool ours = false;
    while (const char* line = file.next_line()) {
        if (std::strncmp(line, "Node ", 5) == 0) {
            ours = std::strncmp(line, beginning, std::strlen(beginning)) == 0;
            high = managed = 0;
        }
        if (!ours) {
            continue;
        }
        line += std::strspn(line, " ");
        number_behind(line, "high ", high); // "high:" is a processor's list of pages
        number_behind(line, "managed ", managed);
        constexpr const char* label = "protection: (";
        if (std::strncmp(line, label, std::strlen(label)) == 0) { // comes last
            std::uint64_t most = 0;
            for (const char* at = line + std::strlen(label); *at != '\0';) {
                char* end = nullptr;
                most = std::max<std::uint64_t>(most, std::strtoull(at, &end, 10));
                at = end + std::strspn(end, ", )");
                if (end == at) {
                    break;
                }
            }
            pages += std::min(managed, high + most);
        }
    }
    return static_cast<std::int64_t>(pages * page_bytes);
}

std::int64_t available_bytes() {
    char text[meminfo_bytes];
    return read_start("/proc/meminfo", text) ? bytes_of(text, "MemAvailable:") : -1;
}

bool prefer_node(void* begin, std::size_t bytes, int node) {
    NodeSet nodes;
    nodes.add(node);
    return set_policy(begin, bytes, MPOL_PREFERRED, nodes);
}

bool bind_node(void* begin, std::size_t bytes, int node) {
    NodeSet nodes;
    nodes.add(node);
    return set_policy(begin, bytes, MPOL_BIND, nodes);
}

bool interleave_nodes(void* begin, std::size_t bytes, const NodeSet& nodes) {
    return set_policy(begin, bytes, MPOL_INTERLEAVE, nodes);
}

bool populate(void* begin, std::size_t bytes) {
    if (populate_known(begin, bytes)) {
        return true;
    }
    if (errno != EINVAL) {
        return false;
    }
    // An older kernel. What is written is what is there.
    for (std::size_t at = 0; at < bytes; at += page_bytes) {
        std::atomic_ref(static_cast<char*>(begin)[at]).fetch_or(0, std::memory_order_relaxed);
    }
    return true;
}

bool populate_known(void* begin, std::size_t bytes) {
    while (madvise(begin, bytes, MADV_POPULATE_WRITE) != 0) {
        if (errno != EINTR && errno != EAGAIN) {
            // ENOMEM, EFAULT, EHWPOISON: there is no memory for it.
            errno = errno == EINVAL ? EINVAL : ENOMEM;
            return false;
        }
    }
    return true;
}

bool knows_populate() {
    const int saved = errno;
    const bool known = madvise(nullptr, 0, MADV_POPULATE_WRITE) == 0;
    errno = saved;
    return known;
}

void discard(void* begin, std::size_t bytes) {
    const int saved = errno;
    madvise(begin, bytes, MADV_DONTNEED);
    errno = saved;
}

namespace {

// The node of each page, or why the kernel knows none, as a negative number.
bool look_at_pages(const void* begin, std::size_t pages, int* nodes, std::size_t stride) {
    const void* addresses[pages_per_call];
    for (std::size_t done = 0; done < pages; done += pages_per_call) {
        const std::size_t count = std::min(pages_per_call, pages - done);
        for (std::size_t i = 0; i < count; ++i) {
            addresses[i] = static_cast<const char*>(begin) + (done + i) * stride;
        }
        if (syscall(SYS_move_pages, 0, count, addresses, nullptr, nodes + done, 0) != 0) {
            return false;
        }
    }
    return true;
}

void forget_reasons(int* nodes, std::size_t pages) {
    std::transform(nodes, nodes + pages, nodes, [](int node) { return std::max(node, -1); });
}

// Returns when the kernel has the page in place. It has the call since Linux 5.14, and refuses it
// for pages that may not be read; then some time is what we have.
void await_page(void* page) {
    if (madvise(page, page_bytes, MADV_POPULATE_READ) != 0) {
        syscall(SYS_nanosleep, &moving_page_pause,
                nullptr); // without a point at which a thread is cancelled
    }
}

// Asks again about a page that is on its way.
void await_node_of_page(void* page, int& node) {
    for (int count = 0; node < 0 && count < moving_page_tries; ++count) {
        await_page(page);
        // EFAULT: the page of zeros, which is on no node. Older kernels say so of a huge page on
        // its way, too, but not of one that has come.
        if (!look_at_pages(page, 1, &node, page_bytes) || node == -EFAULT) {
            return;
        }
    }
}

// Whether each page is there or on its way, for which the kernel answers alike. It says nothing
// (false) of a range that is not mapped throughout.
bool are_there(void* begin, std::size_t pages, unsigned char* there) {
    return mincore(begin, pages * page_bytes, there) == 0;
}

} // namespace

bool nodes_of_pages(const void* begin, std::size_t pages, int* nodes, std::size_t stride) {
    if (!look_at_pages(begin, pages, nodes, stride)) {
        return false;
    }
    forget_reasons(nodes, pages);
    return true;
}

bool await_nodes_of_pages(const void* begin, std::size_t pages, int* nodes, std::size_t stride) {
    if (!look_at_pages(begin, pages, nodes, stride)) {
        return false;
    }
    const int saved = errno;
    char* const at = static_cast<char*>(const_cast<void*>(begin));
    unsigned char there[pages_per_call];
    for (std::size_t first = 0, end = 0; first < pages; first = end) {
        end = first + 1;
        if (nodes[first] >= 0) {
            continue;
        }
        while (stride == page_bytes && end < pages && nodes[end] < 0 &&
               end - first < pages_per_call) {
            ++end;
        }
        if (are_there(at + first * stride, end - first, there)) {
            for (std::size_t page = first; page < end; ++page) {
                if ((there[page - first] & 1) != 0) {
                    await_node_of_page(at + page * stride, nodes[page]);
                }
            }
        }
    }
    errno = saved;
    forget_reasons(nodes, pages);
    return true;
}

bool move_pages(void* begin, std::size_t pages, const int* wanted, int* nodes) {
    void* addresses[pages_per_call];
    int targets[pages_per_call];
    int status[pages_per_call];
    for (std::size_t done = 0; done < pages; done += pages_per_call) {
        const std::size_t count = std::min(pages_per_call, pages - done);
        std::size_t misplaced = 0;
        for (std::size_t i = done; i < done + count; ++i) {
            if (wanted[i] >= 0 && nodes[i] != wanted[i]) {
                addresses[misplaced] = static_cast<char*>(begin) + i * page_bytes;
                targets[misplaced++] = wanted[i];
            }
        }
        if (misplaced == 0) {
            continue;
        }
        // A number above 0 says how many pages stayed. An error of the whole (ENOMEM) may come
        // after some have moved. Both are seen in what is asked next.
        if (syscall(SYS_move_pages, 0, misplaced, addresses, targets, status, MPOL_MF_MOVE) < 0 &&
            errno != ENOMEM && errno != EBUSY && errno != EAGAIN) {
            return false;
        }
        if (!await_nodes_of_pages(static_cast<char*>(begin) + done * page_bytes, count,
                                  nodes + done)) {
            return false;
        }
    }
    return true;
}

bool move_listed_pages(void* const* pages, std::size_t count, const int* wanted, int* nodes) {
    if (syscall(SYS_move_pages, 0, count, pages, wanted, nodes, MPOL_MF_MOVE) < 0 &&
        errno != ENOMEM && errno != EBUSY && errno != EAGAIN) {
        return false;
    }
    if (syscall(SYS_move_pages, 0, count, pages, nullptr, nodes, 0) != 0) {
        return false;
    }
    std::transform(nodes, nodes + count, nodes, [](int node) { return std::max(node, -1); });
    return true;
}

} // namespace warren::memory
