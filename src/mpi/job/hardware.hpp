// Where on the machine the calling thread may run: for each kind of hardware resource, the one
// instance that all of its processors belong to, if there is one.
//
// From the kernel's files and the thread's affinity as it is now; a few files are read, whatever
// the size of the machine. Thread rule: anybody.
#pragma once

#include <cstdint>
#include <string_view>

namespace warren::node {

// From the largest to the smallest.
enum class Hardware : std::uint8_t { machine, package, numa_node, l3_cache, core, processor };
inline constexpr int hardware_kinds = 6;

struct HardwarePlace {
    static constexpr std::int32_t several = -1; // or not known

    std::int32_t instance[hardware_kinds]; // by Hardware
};

HardwarePlace find_hardware_place();

// The name that programs know a kind by (hwloc's, as MPI 4.1 suggests: hwloc://Package), and back:
// with or without hwloc://, in any case. False: no such kind.
const char* hardware_name(Hardware kind);
bool find_hardware(std::string_view name, Hardware& kind);

} // namespace warren::node
