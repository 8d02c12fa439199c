// Finds an address for a mapping that all processes of the node are to have at the same address.
//
// Nobody knows which addresses will be free in processes that don't run yet. But their layouts are
// alike: the system moves what it places at random by a small part of the largest hole. The middle
// of that hole is free nearly everywhere (Goglin 2018, section IV-D). Thread rule: reads
// /proc/self/maps only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warren::launch {

struct AddressRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool heap = false;
};

enum class HolePlace : std::uint8_t {
    largest,
    before_heap, // the largest of those below the heap
    after_heap   // above it
};

// The mappings that the text of /proc/self/maps lists.
std::vector<AddressRange> parse_maps(const std::string& text);

// Bytes that one entry of a second-level page table covers: 2 MiB for pages of 4 KiB. A mapping
// aligned to it takes the fewest tables.
std::uint64_t second_level_bytes(std::uint64_t page_bytes);

// The middle of a hole of at least `bytes`, aligned down to `alignment`; 0: there is none.
std::uint64_t middle_of_hole(const std::vector<AddressRange>& mappings, HolePlace place,
                             std::uint64_t bytes, std::uint64_t alignment);

// Finds a hole in this process.
std::uint64_t find_hole(HolePlace place, std::uint64_t bytes);

} // namespace warren::launch
