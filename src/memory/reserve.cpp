#include "memory/reserve.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

#include "memory/numa.hpp"
#include "memory/system_file.hpp"

namespace warren::memory {

namespace {

constexpr unsigned map_size_bits = 26; // MAP_HUGE_SHIFT

// The range as pages of the reserve, which the system commits to; none is there yet.
bool map_reserved(char* begin, char* end, unsigned shift) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_HUGETLB |
                      static_cast<int>(shift << map_size_bits);
    return mmap(begin, static_cast<std::size_t>(end - begin), PROT_READ | PROT_WRITE, flags, -1,
                0) != MAP_FAILED;
}

// The end of the pages from `at` that are on some of the nodes.
char* end_of_placed(char* at, char* end, std::size_t page, const NodeSet& nodes) {
    constexpr std::size_t batch = 64;
    int found[batch];
    while (at != end) {
        const std::size_t pages = std::min(batch, static_cast<std::size_t>(end - at) / page);
        if (!nodes_of_pages(at, pages, found, page)) {
            return nullptr;
        }
        for (std::size_t i = 0; i < pages; ++i, at += page) {
            if (!nodes.has(found[i])) {
                return at;
            }
        }
    }
    return end;
}

// Brings pages from `at` on in under the policy that was set; returns the end of those that are on
// the nodes. Others are not there afterwards. Null: there is no such range any more.
char* bring_in(char* at, char* end, unsigned shift, const NodeSet& nodes) {
    const bool all = populate_known(at, static_cast<std::size_t>(end - at));
    char* placed = end_of_placed(at, end, std::size_t{1} << shift, nodes);
    if (placed == nullptr) { // it does not tell: the policy is what we have
        placed = all ? end : at;
    }
    return placed == end || map_reserved(placed, end, shift) ? placed : nullptr;
}

std::int64_t number_in(const char* path) {
    char text[32];
    return read_start(path, text) ? std::strtoll(text, nullptr, 10) : -1;
}

} // namespace

bool place_reserved(const Kind& kind, void* begin, std::size_t bytes) {
    auto* at = static_cast<char*>(begin);
    char* const end = at + bytes;
    if (!map_reserved(at, end, kind.reserved_shift)) {
        errno = ENOMEM; // the range is as it was
        return false;
    }
    bool forbidden = false;
    if (kind.policy == Policy::interleave) {
        NodeSet equals;
        for (std::size_t i = 0; i < kind.equals; ++i) {
            equals.add(kind.targets[i]);
        }
        if (interleave_nodes(at, bytes, equals)) {
            at = bring_in(at, end, kind.reserved_shift, equals);
        }
    }
    const std::size_t count = kind.policy == Policy::strict ? kind.equals : kind.count;
    for (std::size_t i = 0; i < count && at != nullptr && at != end; ++i) {
        NodeSet only;
        only.add(kind.targets[i]);
        if (bind_node(at, static_cast<std::size_t>(end - at), kind.targets[i])) {
            at = bring_in(at, end, kind.reserved_shift, only);
        } else if (errno != EINVAL && errno != ENOMEM) {
            forbidden = true;
            break;
        }
    }
    if (at == end) {
        return true;
    }
    if (forbidden && kind.policy == Policy::next &&
        populate_known(at, static_cast<std::size_t>(end - at))) {
        return true; // better such pages somewhere than none: the order was a wish
    }
    displace_reserved(begin, bytes);
    errno = forbidden && kind.policy != Policy::next ? EPERM : ENOMEM;
    return false;
}

void displace_reserved(void* begin, std::size_t bytes) {
    const int saved = errno;
    if (mmap(begin, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
        discard(begin, bytes);
    }
    errno = saved;
}

Reserve look_at_reserve(const char* root, unsigned shift) {
    if (!knows_populate()) {
        return Reserve::old_system;
    }
    std::int64_t pages = 0;
    for (const char* file : {"nr_hugepages", "nr_overcommit_hugepages"}) {
        char path[PATH_MAX];
        std::snprintf(path, sizeof path, "%s/sys/kernel/mm/hugepages/hugepages-%llukB/%s", root,
                      1ULL << (shift - 10), file);
        const std::int64_t number = number_in(path);
        if (number < 0) {
            return Reserve::no_size;
        }
        pages += number;
    }
    return pages != 0 ? Reserve::there : Reserve::none;
}

std::int64_t free_reserved_pages(const char* root, int node, unsigned shift) {
    char path[PATH_MAX];
    std::snprintf(path, sizeof path,
                  "%s/sys/devices/system/node/node%d/hugepages/hugepages-%llukB/free_hugepages",
                  root, node, 1ULL << (shift - 10));
    return number_in(path);
}

} // namespace warren::memory
