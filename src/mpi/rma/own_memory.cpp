#include "mpi/rma/own_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>

#include "base/page.hpp"

namespace warren::rma {

namespace {

// Headers older than Linux 5.14 lack them.
constexpr int populate_read = 22;  // MADV_POPULATE_READ
constexpr int populate_write = 23; // MADV_POPULATE_WRITE

// Whole pages.
struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

Range pages_of(const std::byte* place, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(place);
    const std::uintptr_t first = begin / page_bytes * page_bytes;
    return {.begin = first, .end = bytes > 0 ? whole_pages(begin + bytes) : first};
}

// 0, or why not.
int populate(const Range& range, MemoryUse use) {
    const int advice = use == MemoryUse::reads ? populate_read : populate_write;
    return madvise(reinterpret_cast<void*>(range.begin), range.end - range.begin, advice) == 0
               ? 0
               : errno;
}

// Whether /proc/self/maps lists all pages with the permission. (Its lines are in rising order.)
bool is_listed(const Range& range, MemoryUse use) {
    std::FILE* file = std::fopen("/proc/self/maps", "re");
    if (file == nullptr) {
        return false;
    }
    std::uintptr_t at = range.begin;
    char line[256];
    bool begins_line = true; // a long path continues
    while (at < range.end && std::fgets(line, sizeof line, file) != nullptr) {
        unsigned long long first = 0;
        unsigned long long last = 0;
        char permissions[5] = "";
        const bool is_mapping =
            begins_line && std::sscanf(line, "%llx-%llx %4s", &first, &last, permissions) == 3;
        begins_line = std::strchr(line, '\n') != nullptr;
        if (is_mapping && first <= at && at < last) {
            if (std::strchr(permissions, use == MemoryUse::reads ? 'r' : 'w') == nullptr) {
                break;
            }
            at = last;
        }
    }
    static_cast<void>(std::fclose(file));
    return at >= range.end;
}

bool has_range(const Range& range, MemoryUse use) {
    if (range.begin >= range.end) {
        return true;
    }
    switch (populate(range, use)) {
    case 0:
        return true;
    case ENOMEM:    // unmapped
    case EFAULT:    // behind the end of a file
    case EHWPOISON: // lost
        return false;
    default:
        return is_listed(range, use);
    }
}

MemoryUse use_of(ServedKind kind) {
    return kind == ServedKind::read ? MemoryUse::reads : MemoryUse::writes;
}

} // namespace

bool has_memory_surely(const std::byte* place, std::size_t bytes, MemoryUse use) {
    const Range range = pages_of(place, bytes);
    return range.begin >= range.end || populate(range, use) == 0;
}

bool has_memory(const std::byte* place, std::size_t bytes, MemoryUse use) {
    return has_range(pages_of(place, bytes), use);
}

// Pieces are mostly close together, and one question is enough. It faults in pages between them,
// which therefore are no more than the pieces.
bool has_memory(const ServedRequest& request) {
    const MemoryUse use = use_of(request.head().kind);
    Range all = {.begin = UINTPTR_MAX, .end = 0};
    request.each([&](const std::byte* place, std::uint64_t, std::size_t bytes) {
        const Range its = pages_of(place, bytes);
        all = {.begin = std::min(all.begin, its.begin), .end = std::max(all.end, its.end)};
    });
    if (all.begin >= all.end) {
        return true;
    }
    if ((all.end - all.begin) / page_bytes <= request.head().pieces && populate(all, use) == 0) {
        return true;
    }
    // Pieces in rising order whose pages touch are one question.
    bool has_all = true;
    Range range;
    request.each([&](const std::byte* place, std::uint64_t, std::size_t bytes) {
        const Range its = pages_of(place, bytes);
        if (range.begin <= its.begin && its.begin <= range.end) {
            range.end = std::max(range.end, its.end);
        } else {
            has_all = has_all && has_range(range, use);
            range = its;
        }
    });
    return has_all && has_range(range, use);
}

} // namespace warren::rma
