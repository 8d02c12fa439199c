// Details: fields that only objects of some types have, packed into 64-bit words. Equal details are
// in an image once.
//
//   caches      bytes; line bytes | associativity << 32; depth | kind << 32
//   NUMA node   bytes; number of page sizes; for each, bytes of a page; pages
//   group       depth | kind << 32; subkind
//   PCI device  domain | bus << 32 | device << 40 | function << 48 | revision << 56;
//               class | vendor << 16 | device << 32 | subvendor << 48; subdevice | link (float) <<
//               32
//   bridge      the three of a PCI device, zeros when it isn't one;
//               is host | depth << 32; domain | secondary bus << 32 | subordinate bus << 40
//   OS device   kind
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "topology/format.hpp"
#include "warren/topology.h"

namespace warren::topology {

using Words = std::vector<std::uint64_t>;

// How many words an object of the type has at least; 0: none at all.
constexpr std::uint32_t detail_words(ObjectType type) {
    switch (type) {
    case ObjectType::l1_cache:
    case ObjectType::l2_cache:
    case ObjectType::l3_cache:
    case ObjectType::l4_cache:
    case ObjectType::l5_cache:
    case ObjectType::l1i_cache:
    case ObjectType::l2i_cache:
    case ObjectType::l3i_cache:
    case ObjectType::memory_cache:
    case ObjectType::pci_device:
        return 3;
    case ObjectType::numa_node:
    case ObjectType::group:
        return 2;
    case ObjectType::bridge:
        return 5;
    case ObjectType::os_device:
        return 1;
    default:
        return 0;
    }
}

constexpr bool is_cache(ObjectType type) {
    return detail_words(type) == 3 && type != ObjectType::pci_device;
}

namespace detail {

constexpr std::uint64_t join(std::uint64_t low, std::uint64_t high) {
    return (low & 0xffffffff) | high << 32;
}
constexpr std::uint32_t low(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
}
constexpr std::uint32_t high(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 32);
}

} // namespace detail

inline Words pack(const warren_cache& cache) {
    return {cache.bytes,
            detail::join(cache.line_bytes, static_cast<std::uint32_t>(cache.associativity)),
            detail::join(cache.depth, cache.kind)};
}

inline warren_cache unpack_cache(const std::uint64_t* words) {
    return {words[0], detail::low(words[1]), static_cast<std::int32_t>(detail::high(words[1])),
            detail::low(words[2]), detail::high(words[2])};
}

inline Words pack(const warren_group& group) {
    return {detail::join(group.depth, group.kind), group.subkind};
}

inline warren_group unpack_group(const std::uint64_t* words) {
    return {detail::low(words[0]), detail::high(words[0]), detail::low(words[1])};
}

inline Words pack(const warren_pci_device& device) {
    return {std::uint64_t{device.domain} | std::uint64_t{device.bus} << 32 |
                std::uint64_t{device.device} << 40 | std::uint64_t{device.function} << 48 |
                std::uint64_t{device.revision} << 56,
            std::uint64_t{device.class_id} | std::uint64_t{device.vendor_id} << 16 |
                std::uint64_t{device.device_id} << 32 | std::uint64_t{device.subvendor_id} << 48,
            detail::join(device.subdevice_id,
                         std::bit_cast<std::uint32_t>(device.link_gigabytes_per_second))};
}

inline warren_pci_device unpack_pci_device(const std::uint64_t* words) {
    warren_pci_device device;
    device.domain = detail::low(words[0]);
    device.bus = static_cast<std::uint8_t>(words[0] >> 32);
    device.device = static_cast<std::uint8_t>(words[0] >> 40);
    device.function = static_cast<std::uint8_t>(words[0] >> 48);
    device.revision = static_cast<std::uint8_t>(words[0] >> 56);
    device.class_id = static_cast<std::uint16_t>(words[1]);
    device.vendor_id = static_cast<std::uint16_t>(words[1] >> 16);
    device.device_id = static_cast<std::uint16_t>(words[1] >> 32);
    device.subvendor_id = static_cast<std::uint16_t>(words[1] >> 48);
    device.subdevice_id = static_cast<std::uint16_t>(words[2]);
    device.link_gigabytes_per_second = std::bit_cast<float>(detail::high(words[2]));
    return device;
}

inline Words pack(const warren_bridge& bridge, const warren_pci_device& device) {
    Words words = pack(device);
    words.push_back(detail::join(bridge.is_host, bridge.depth));
    words.push_back(std::uint64_t{bridge.domain} | std::uint64_t{bridge.secondary_bus} << 32 |
                    std::uint64_t{bridge.subordinate_bus} << 40);
    return words;
}

inline warren_bridge unpack_bridge(const std::uint64_t* words) {
    return {detail::low(words[3]), detail::high(words[3]), detail::low(words[4]),
            static_cast<std::uint8_t>(words[4] >> 32), static_cast<std::uint8_t>(words[4] >> 40)};
}

} // namespace warren::topology
