// What hwloc finds, as a Description (topology/description.hpp), completed.
//
// All types of objects are asked for, PCI and OS devices of the important classes, and what the
// process may not use as well: what it may use is a mask over the image. For the machine itself
// hwloc reads the system's files; the ways in which it would bind the calling thread to each
// processor in turn (x86) or start accelerators (CUDA, OpenCL …) are shut. Thread rule: anybody;
// but a dump changes the environment for the time of the call.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "discovery/hwloc_library.hpp"
#include "topology/description.hpp"

namespace warren::discovery {

enum class SourceKind {
    native,    // this machine
    xml,       // hwloc's XML: a file
    synthetic, // hwloc's synthetic description
    dump // a folder with another machine's /proc and /sys (hwloc-gather-topology); processes with
         // one thread only
};

struct Source {
    SourceKind kind = SourceKind::native;
    std::string text;            // path or description; nothing for native
    std::string* note = nullptr; // gets why a file of measured values was not taken, or ""
    bool devices = true;         // bridges, PCI and OS devices; without them discovery is faster
    // The file's text when it has been read already, by read_xml().
    const std::string* content = nullptr;
};

// An XML file as a string, for those that have it read more than once. Errors:
// WARREN_TOPOLOGY_ERR_FILE; _OWNER: it is neither this user's nor root's.
Error read_xml(const std::string& path, std::string& text);
// Whether hwloc may be asked for the source. Errors: of a dump WARREN_TOPOLOGY_ERR_FILE (it has
// nothing of a machine, of which hwloc would make one processor), _OWNER (its own owner counts); of
// a synthetic description _LIMIT (hwloc takes hours and all memory for the largest).
Error check_source(const Source& source);

// An hwloc topology, loaded as above. Ends with destroy of `hwloc`.
Error load(const HwlocLibrary& hwloc, const Source& source, hwloc_topology_t& topology);

// `description` of a loaded topology, without completed attributes.
Error describe(const HwlocLibrary& hwloc, hwloc_topology_t topology,
               topology::Description& description);

// All of it: the description, with the machine's measured values (topology/values_file.hpp; for
// other sources than the machine itself only when the environment names a file) and completed
// attributes. A file of values that is refused is left out, and the note says so. Errors:
// WARREN_TOPOLOGY_ERR_DISCOVERY, WARREN_TOPOLOGY_ERR_FILE, WARREN_TOPOLOGY_ERR_OWNER,
// WARREN_TOPOLOGY_ERR_DAMAGED, WARREN_TOPOLOGY_ERR_LIMIT.
Error discover(const Source& source, topology::Description& description);

// The same as an image. XML, which hwloc takes at its word, is read in a child process
// (isolated.hpp).
Error discover_image(const Source& source, std::vector<std::byte>& image);

} // namespace warren::discovery
