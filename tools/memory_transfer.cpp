// `warren mem import` and `export` convert values from and to hwloc's XML.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "memory_command.hpp"
#include "memory_values.hpp"
#include "topology/discovery/describe.hpp"
#include "topology/discovery/hwloc_library.hpp"
#include "warren/topology.h"

namespace warren::tools {

namespace {

using Topology = std::unique_ptr<warren_topology, void (*)(warren_topology*)>;

Topology open_topology(const std::string& source) {
    warren_topology* opened = nullptr;
    warren_topology_report report{};
    if (warren_topology_open(source.c_str(), &opened, &report) != WARREN_TOPOLOGY_SUCCESS) {
        std::fprintf(stderr, "warren mem: %s\n", report.problem);
    }
    return {opened, warren_topology_close};
}

int say(Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    std::fprintf(stderr, "warren mem: %s\n", record->text.c_str());
    return 1;
}

} // namespace

int import_command(const std::vector<std::string>& arguments) {
    Options options({"--output"}, {});
    std::vector<std::string> rest;
    if (!options.read(arguments, rest) || rest.size() != 1) {
        std::fputs(memory_usage, stderr);
        return 2;
    }
    const Topology given = open_topology("xml:" + rest[0]);
    if (!given) {
        return 1;
    }
    topology::ValuesFile file;
    file.machine = topology::identity_of(given.get());
    std::string path = options.get("--output", "");
    if (path.empty()) {
        // Without --output the values are for this machine.
        const Topology here = open_topology("native");
        if (!here) {
            return 1;
        }
        const std::string differs =
            topology::difference(file.machine, topology::identity_of(here.get()));
        if (!differs.empty()) {
            std::fprintf(stderr,
                         "warren mem: %s is of another machine: %s (--output FILE keeps its values "
                         "elsewhere)\n",
                         rest[0].c_str(), differs.c_str());
            return 1;
        }
        path = topology::place_of_values(file.machine);
    }
    for (std::uint32_t attribute = WARREN_ATTRIBUTE_BANDWIDTH;
         attribute <= WARREN_ATTRIBUTE_WRITE_LATENCY; ++attribute) {
        for (std::uint32_t row = 0; row < warren_topology_initiators(given.get()); ++row) {
            warren_set cpus{};
            warren_object device = WARREN_NO_OBJECT;
            warren_topology_initiator(given.get(), row, &cpus, &device);
            for (const topology::MachineMemory& memory : file.machine.memories) {
                std::uint64_t value = 0;
                int origin = 0;
                if (device == WARREN_NO_OBJECT &&
                    warren_topology_value(given.get(), attribute, row, memory.node, &value,
                                          &origin) == WARREN_TOPOLOGY_SUCCESS &&
                    origin != WARREN_ORIGIN_GUESSED) {
                    topology::Bits from;
                    for (std::uint32_t cpu = warren_set_next(cpus, 0); cpu != WARREN_NO_INDEX;
                         cpu = warren_set_next(cpus, cpu + 1)) {
                        topology::add_bit(from, cpu);
                    }
                    file.values.push_back({attribute, from, memory.node, value});
                }
            }
        }
    }
    if (file.values.empty()) {
        std::fprintf(stderr, "warren mem: %s has no bandwidths or latencies\n", rest[0].c_str());
        return 1;
    }
    file.remarks.push_back("from the XML of hwloc");
    topology::ValuesFile checked; // absurd values are refused now rather than later
    if (Error error = topology::parse_values(topology::text_of(file), checked)) {
        return say(error);
    }
    if (!write_values(path, file)) {
        return 1;
    }
    std::printf("%zu values kept in %s\n", file.values.size(), path.c_str());
    return 0;
}

namespace {

// Gives hwloc the known values of a memory for these processors, which are the row's.
bool give_values(warren_topology* here, std::uint32_t row, const discovery::HwlocLibrary& hwloc,
                 hwloc_topology_t topology, hwloc_obj_t node, hwloc_bitmap_t cpuset,
                 std::size_t& values) {
    // Attributes have hwloc's numbers.
    for (std::uint32_t attribute = WARREN_ATTRIBUTE_BANDWIDTH;
         attribute <= WARREN_ATTRIBUTE_WRITE_LATENCY; ++attribute) {
        std::uint64_t value = 0;
        int origin = 0;
        hwloc_location from{};
        from.type = HWLOC_LOCATION_TYPE_CPUSET;
        from.location.cpuset = cpuset;
        // Guessed values are left out: readers of the file would take them for known.
        if (warren_topology_value(here, attribute, row, node->os_index, &value, &origin) ==
                WARREN_TOPOLOGY_SUCCESS &&
            origin != WARREN_ORIGIN_GUESSED) {
            if (hwloc.memattr_set_value(topology, attribute, node, &from, 0, value) != 0) {
                std::fprintf(stderr, "warren mem: hwloc does not take the %s of node %u\n",
                             warren_topology_attribute_name(here, attribute), node->os_index);
                return false;
            }
            ++values;
        }
    }
    return true;
}

// Writes what hwloc would. It doesn't check whether the disk takes it.
int write_xml(const discovery::HwlocLibrary& hwloc, hwloc_topology_t topology,
              const std::string& path) {
    char* text = nullptr;
    int size = 0; // with the byte that ends it
    if (hwloc.topology_export_xmlbuffer(topology, &text, &size, 0) != 0 || size < 1) {
        return say(fail(WARREN_TOPOLOGY_ERR_DISCOVERY, "hwloc does not write its XML"));
    }
    const auto bytes = static_cast<std::size_t>(size) - 1;
    std::FILE* file = std::fopen(path.c_str(), "we");
    bool written = file != nullptr && std::fwrite(text, 1, bytes, file) == bytes;
    written = file != nullptr && std::fclose(file) == 0 && written;
    const int why = errno;
    hwloc.free_xmlbuffer(topology, text);
    if (!written) {
        return say(
            fail(WARREN_TOPOLOGY_ERR_FILE, "can't write %s: %s", path.c_str(), std::strerror(why)));
    }
    return 0;
}

} // namespace

int export_command(const std::vector<std::string>& arguments) {
    Options options({}, {});
    std::vector<std::string> rest;
    if (!options.read(arguments, rest) || rest.size() != 1) {
        std::fputs(memory_usage, stderr);
        return 2;
    }
    const Topology here = open_topology("native");
    std::string problem;
    const discovery::HwlocLibrary* hwloc = discovery::HwlocLibrary::get(problem);
    if (!here || hwloc == nullptr) {
        if (hwloc == nullptr) {
            std::fprintf(stderr, "warren mem: %s\n", problem.c_str());
        }
        return 1;
    }
    const std::lock_guard lock(discovery::HwlocLibrary::calls());
    hwloc_topology_t topology = nullptr;
    if (Error error = discovery::load(*hwloc, {}, topology)) {
        return say(error);
    }
    const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> guard(
        topology, hwloc->topology_destroy);
    const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> cpuset(hwloc->bitmap_alloc(),
                                                                           hwloc->bitmap_free);
    const int depth = hwloc->get_type_depth(topology, HWLOC_OBJ_NUMANODE);
    std::size_t values = 0;
    for (unsigned index = 0; index < hwloc->get_nbobjs_by_depth(topology, depth); ++index) {
        hwloc_obj_t node = hwloc->get_obj_by_depth(topology, depth, index);
        for (std::uint32_t row = 0; row < warren_topology_initiators(here.get()); ++row) {
            warren_set cpus{};
            warren_object device = WARREN_NO_OBJECT;
            warren_topology_initiator(here.get(), row, &cpus, &device);
            if (device != WARREN_NO_OBJECT) {
                continue;
            }
            hwloc->bitmap_zero(cpuset.get());
            for (std::uint32_t cpu = warren_set_next(cpus, 0); cpu != WARREN_NO_INDEX;
                 cpu = warren_set_next(cpus, cpu + 1)) {
                hwloc->bitmap_set(cpuset.get(), cpu);
            }
            if (!give_values(here.get(), row, *hwloc, topology, node, cpuset.get(), values)) {
                return 1;
            }
        }
    }
    if (const int wrong = write_xml(*hwloc, topology, rest[0])) {
        return wrong;
    }
    std::printf("%zu values in %s\n", values, rest[0].c_str());
    return 0;
}

} // namespace warren::tools
