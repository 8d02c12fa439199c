#include "memory/heap/reserve.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "memory/heap/numa.hpp"
#include "memory/heap/system_file.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

namespace {

constexpr unsigned map_size_bits = 26; // MAP_HUGE_SHIFT

// How often pages went back to the reserve.
constinit std::atomic<std::uint64_t> returned{0};

// Addresses for pages of the reserve, wherever the system likes; it commits to the pages, none is
// there yet. Not at once where they are wanted: what was there would be lost when the reserve is
// used up, and the next mmap of anybody would get the hole.
char* map_reserved(std::size_t bytes, unsigned shift) {
    const int flags =
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | static_cast<int>(shift << map_size_bits);
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return mapped != MAP_FAILED ? static_cast<char*>(mapped) : nullptr;
}

// Fills the range again if it has become a hole; where anything is mapped that stays.
void fill_hole(char* at, std::size_t bytes) {
    [[maybe_unused]] const void* filled =
        mmap(at, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
}

// Moves one mapping of pages of the reserve to where ours are.
bool put_at(char* at, char* from, std::size_t bytes) {
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED) {
        return true;
    }
    fill_hole(at, bytes);
    return false;
}

// The end of the pages from `at` that are on some of the nodes.
char* end_of_placed(char* at, char* end, std::size_t page, const NodeSet& nodes) {
    int found[reserved_pages_per_call];
    while (at != end) {
        const std::size_t pages =
            std::min(reserved_pages_per_call, static_cast<std::size_t>(end - at) / page);
        if (!await_nodes_of_pages(at, pages, found, page)) {
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

enum class Brought : std::uint8_t {
    some,      // as many as the nodes have
    none,      // the reserve is used up, or the nodes can't be used
    forbidden, // the system does not let us place
};

// Puts pages of the reserve at `at`, as far as the nodes have them, and moves it behind them. What
// is behind stays as it is. `set_policy` asks for the nodes; `nodes` null: any.
template <typename SetPolicy>
Brought bring_in(char*& at, char* end, unsigned shift, const NodeSet* nodes,
                 const SetPolicy& set_policy) {
    const auto bytes = static_cast<std::size_t>(end - at);
    char* const made = map_reserved(bytes, shift);
    if (made == nullptr) {
        return Brought::none;
    }
    char* placed = made;
    Brought brought = Brought::some;
    if (!set_policy(made, bytes)) {
        brought = errno == EINVAL || errno == ENOMEM ? Brought::none : Brought::forbidden;
    } else {
        const bool all = populate_known(made, bytes);
        placed = nodes != nullptr
                     ? end_of_placed(made, made + bytes, std::size_t{1} << shift, *nodes)
                     : nullptr;
        if (placed == nullptr) { // it does not tell: the policy is what we have
            placed = all ? made + bytes : made;
        }
    }
    const auto good = static_cast<std::size_t>(placed - made);
    if (good != bytes) {
        munmap(placed, bytes - good);
    }
    if (good != 0) {
        if (!put_at(at, made, good)) {
            munmap(made, good);
            return Brought::none;
        }
        at += good;
    }
    return brought;
}

// Whether the system can move such pages (Linux 5.16).
bool moves_reserved() {
    utsname system;
    unsigned version = 0;
    unsigned patch = 0;
    return uname(&system) == 0 && std::sscanf(system.release, "%u.%u", &version, &patch) == 2 &&
           (version > 5 || (version == 5 && patch >= 16)) && knows_populate();
}

std::int64_t number_in(const char* path) {
    char text[32];
    return read_start(path, text) ? std::strtoll(text, nullptr, 10) : -1;
}

} // namespace

bool place_reserved(const Kind& kind, void* begin, std::size_t bytes) {
    auto* at = static_cast<char*>(begin);
    char* const end = at + bytes;
    const unsigned shift = kind.reserved_shift;
    Brought brought = Brought::none;
    if (kind.policy == Policy::interleave) {
        NodeSet equals;
        for (std::size_t i = 0; i < kind.equals; ++i) {
            equals.add(kind.targets[i]);
        }
        bring_in(at, end, shift, &equals, [&](char* made, std::size_t size) {
            return interleave_nodes(made, size, equals);
        });
    }
    const std::size_t count = kind.policy == Policy::strict ? kind.equals : kind.count;
    for (std::size_t i = 0; i < count && at != end && brought != Brought::forbidden; ++i) {
        NodeSet only;
        only.add(kind.targets[i]);
        brought = bring_in(at, end, shift, &only, [&](char* made, std::size_t size) {
            return bind_node(made, size, kind.targets[i]);
        });
    }
    const bool forbidden = brought == Brought::forbidden;
    if (at != end && forbidden && kind.policy == Policy::next) {
        // Better such pages somewhere than none: the order was a wish.
        bring_in(at, end, shift, nullptr, [](char*, std::size_t) { return true; });
    }
    if (at == end) {
        return true;
    }
    if (at != begin) {
        displace_reserved(begin, static_cast<std::size_t>(at - static_cast<char*>(begin)));
    }
    errno = forbidden && kind.policy != Policy::next ? EPERM : ENOMEM;
    return false;
}

void displace_reserved(void* begin, std::size_t bytes) {
    const int saved = errno;
    // Nothing of it can be used up. If the system refuses for want of its own memory, the pages
    // stay, or there is a hole.
    if (mmap(begin, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
        fill_hole(static_cast<char*>(begin), bytes);
    }
    returned.fetch_add(1, std::memory_order_relaxed);
    errno = saved;
}

std::uint64_t reserved_pages_returned() {
    return returned.load(std::memory_order_relaxed);
}

Reserve look_at_reserve(const char* root, unsigned shift) {
    if (!moves_reserved()) {
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
