// ValuesFile: measured values of memory's attributes, kept between runs of programs.
//
// A text, one thing per line:
//     warren memory values 1
//     machine MODEL OF ITS PROCESSORS
//     node 0 cpus 0-15 bytes 67516948480      each memory; "cpus none": local to none
//     # how it was measured, for people
//     value bandwidth from 0-15 to 0 is 81920  units of warren/topology.h
//     end 1 9f3a62c1d0e4b875                   number of values, checksum of all before this line
// It belongs to one machine, or to others of the same make: same model, same processors and
// memories, whose sizes differ by a tenth at most (the kernel keeps some for itself, not always
// equally much). A file of another machine, a damaged one and one with values that can't be are
// refused whole.
//
// Discovery merges the file of the machine that it finds: measured values stand for the firmware's.
// The file is the one that WARREN_MEMORY_VALUES names ("none": no file), or else, the first that is
// there,
//     $XDG_CONFIG_HOME/warren/memory/KEY.values    (~/.config when that is not set)
//     /etc/warren/memory/KEY.values
// where KEY depends on the machine, so that a home folder may serve several.
// Thread rule: values; functions of their arguments, and of the environment where they say so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "topology/description.hpp"
#include "warren/topology.h"

namespace warren::topology {

struct MachineMemory {
    std::uint32_t node = 0; // OS index
    Bits cpus;              // that it is local to
    std::uint64_t bytes = 0;
};

struct MachineIdentity {
    std::string model;
    std::vector<MachineMemory> memories; // by node
};

struct MeasuredValue {
    std::uint32_t attribute = 0; // WARREN_ATTRIBUTE_BANDWIDTH … WRITE_LATENCY
    Bits from;
    std::uint32_t node = 0;
    std::uint64_t value = 0;
};

struct ValuesFile {
    MachineIdentity machine;
    std::vector<std::string> remarks;
    std::vector<MeasuredValue> values;
};

// Limits of plausible values: 1 PiB/s is a thousand times the fastest memory, a second a million
// times the latency of memory in another machine.
inline constexpr std::uint64_t max_bandwidth = std::uint64_t{1} << 30;
inline constexpr std::uint64_t max_latency_ns = 1'000'000'000;
// 1024 memories seen from as many places in six ways are a tenth of it.
inline constexpr std::size_t max_values_bytes = std::size_t{1} << 26;

MachineIdentity identity_of(const Description& description);
MachineIdentity identity_of(const warren_topology* topology);
// "" when they are of the same make, else what differs, as part of a sentence.
std::string difference(const MachineIdentity& file, const MachineIdentity& machine);
// Sixteen hexadecimal digits.
std::string key_of(const MachineIdentity& machine);

// "0-3,8", "none" for the empty set; and back.
std::string list_of(const Bits& bits);
bool read_list(std::string_view text, Bits& bits);
// Names of attributes in files: "read_bandwidth".
const char* attribute_name_in_file(std::uint32_t attribute);

std::string text_of(const ValuesFile& file);
// Errors of these: WARREN_TOPOLOGY_ERR_FILE, WARREN_TOPOLOGY_ERR_DAMAGED,
// WARREN_TOPOLOGY_ERR_OWNER.
Error parse_values(std::string_view text, ValuesFile& file);
// Refuses files of other users but root.
Error read_values(const std::string& path, ValuesFile& file);

// The file of this machine by the rule above, "" when there is none. Looks at the environment.
std::string find_values(const MachineIdentity& machine);
// Where a new file of this machine belongs; "" when the user has no home folder.
std::string place_of_values(const MachineIdentity& machine);

// Adds the values to a description, which is then completed (guess.hpp). Nothing is added when the
// file is refused.
Error merge_values(const ValuesFile& file, Description& description);
// Merges the file that find_values finds, if there is one.
Error merge_found_values(Description& description);

} // namespace warren::topology
