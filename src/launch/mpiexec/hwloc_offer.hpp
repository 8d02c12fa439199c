// HwlocOffer: what mpiexec tells the ranks of the hwloc topology that it has made for them.
//
// It travels in the environment, as text:
//     WARREN_HWLOC_SHMEM=DESCRIPTOR:ADDRESS:LENGTH:COPIES   for hwloc_shmem_topology_adopt: copy i
//                       begins at offset i * LENGTH and belongs at ADDRESS + i * LENGTH
//     WARREN_HWLOC_XML=DESCRIPTOR      the same topology in hwloc's XML form
//     WARREN_HWLOC=WAY:FILTERS:SYSTEM:REPORT  for Warren's own hwloc library (hwloc/stand_in.cpp)
// A process that reads a descriptor opens /proc/self/fd/DESCRIPTOR first: inherited descriptors
// share one position, and hwloc seeks before it reads. Both files are sealed.
// Thread rule: plain values. This file needs the C library only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace warren::launch {

// How a rank's hwloc_topology_load gets its topology.
enum class HwlocWay : std::uint8_t {
    automatic, // the first of the following that works
    shmem,     // adopts one copy that all processes share
    xml,
    native // discovers by itself, as without Warren
};

inline constexpr std::array<const char*, 4> hwloc_way_names{"auto", "shmem", "xml", "native"};

// More than hwloc has kinds of objects (20 in 2.9).
inline constexpr std::size_t hwloc_types_limit = 32;

struct HwlocOffer {
    int shmem = -1; // -1: none
    std::uint64_t address = 0;
    std::uint64_t length = 0; // of a copy, in bytes: whole pages
    unsigned copies = 0;
    int xml = -1; // -1: none
    HwlocWay way = HwlocWay::automatic;
    // hwloc's filter of each kind of objects, a digit each.
    std::array<char, hwloc_types_limit + 1> filters = {};
    bool is_this_system = true; // not a recorded or synthetic one
    int report = -1; // socket to mpiexec, which wants to know what became of it; -1: it doesn't
};

// A rank's report of one hwloc_topology_load.
struct HwlocReport {
    static constexpr std::uint32_t magic_number = 0x57484c31;

    std::uint32_t magic = magic_number;
    std::int32_t rank = -1;
    std::uint32_t way = 0; // HwlocWay; automatic: it failed
    std::array<char, 180> reason = {};
};

using HwlocText = std::array<char, 128>;

inline HwlocText hwloc_shmem_text(const HwlocOffer& offer) {
    HwlocText text;
    std::snprintf(text.data(), text.size(), "%d:0x%llx:%llu:%u", offer.shmem,
                  static_cast<unsigned long long>(offer.address),
                  static_cast<unsigned long long>(offer.length), offer.copies);
    return text;
}

inline HwlocText hwloc_text(const HwlocOffer& offer) {
    HwlocText text;
    std::snprintf(text.data(), text.size(), "%u:%s:%d:%d", static_cast<unsigned>(offer.way),
                  offer.filters.data(), offer.is_this_system ? 1 : 0, offer.report);
    return text;
}

// Reads the three values; null: not set. False when there is no offer, or none that can be read.
inline bool read_hwloc_offer(const char* general, const char* shmem, const char* xml,
                             HwlocOffer& offer) {
    offer = {};
    unsigned way = 0;
    int this_system = 0;
    if (general == nullptr ||
        std::sscanf(general, "%u:%32[0-9]:%d:%d", &way, offer.filters.data(), &this_system,
                    &offer.report) != 4 ||
        way >= hwloc_way_names.size()) {
        return false;
    }
    offer.is_this_system = this_system != 0;
    offer.way = static_cast<HwlocWay>(way);
    unsigned long long address = 0;
    unsigned long long length = 0;
    if (shmem != nullptr) {
        if (std::sscanf(shmem, "%d:%llx:%llu:%u", &offer.shmem, &address, &length, &offer.copies) !=
                4 ||
            offer.shmem < 0 || address == 0 || length == 0) {
            return false;
        }
        offer.address = address;
        offer.length = length;
    }
    if (xml != nullptr) {
        char* end = nullptr;
        offer.xml = static_cast<int>(std::strtol(xml, &end, 10));
        if (end == xml || *end != '\0' || offer.xml < 0) {
            return false;
        }
    }
    return true;
}

} // namespace warren::launch
