#include "launch/mpiexec/address_hole.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace warren::launch {

namespace {

// Below this the system maps nothing (vm.mmap_min_addr), and a wrong pointer shall hit nothing.
constexpr std::uint64_t lowest = 1 << 20;

} // namespace

std::vector<AddressRange> parse_maps(const std::string& text) {
    std::vector<AddressRange> mappings;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        unsigned long long first = 0;
        unsigned long long last = 0;
        // The upper half is the kernel's, which shows a page of it.
        if (std::sscanf(line.c_str(), "%llx-%llx", &first, &last) == 2 && last > first &&
            last <= std::uint64_t{1} << 63) {
            mappings.push_back({first, last, line.ends_with("[heap]")});
        }
        at = end + 1;
    }
    return mappings;
}

std::uint64_t second_level_bytes(std::uint64_t page_bytes) {
    return page_bytes * (page_bytes / sizeof(std::uint64_t));
}

std::uint64_t middle_of_hole(const std::vector<AddressRange>& mappings, HolePlace place,
                             std::uint64_t bytes, std::uint64_t alignment) {
    std::uint64_t heap = 0;
    for (const AddressRange& mapping : mappings) {
        heap = mapping.heap ? mapping.begin : heap;
    }
    std::uint64_t best_size = 0;
    std::uint64_t best = 0;
    std::uint64_t begin = lowest; // above the last mapping, the stack, nothing is free for us
    for (const AddressRange& mapping : mappings) {
        const std::uint64_t end = mapping.begin;
        const std::uint64_t size = end > begin ? end - begin : 0;
        const bool below = heap == 0 || end <= heap;
        const bool wanted =
            place == HolePlace::largest || below == (place == HolePlace::before_heap);
        if (wanted && size > best_size) {
            const std::uint64_t middle = (begin + size / 2) / alignment * alignment;
            if (middle >= begin && middle + bytes <= end) {
                best_size = size;
                best = middle;
            }
        }
        begin = std::max(begin, mapping.end);
    }
    return best;
}

std::uint64_t find_hole(HolePlace place, std::uint64_t bytes) {
    std::string text;
    std::array<char, 4096> part;
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    while (file >= 0 && (got = read(file, part.data(), part.size())) > 0) {
        text.append(part.data(), static_cast<std::size_t>(got));
    }
    if (file >= 0) {
        close(file);
    }
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return middle_of_hole(parse_maps(text), place, bytes, second_level_bytes(page));
}

} // namespace warren::launch
