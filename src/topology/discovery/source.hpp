// Where a topology comes from: this machine, or what a file, a folder or words say of another. What
// is wrong with it is said before hwloc is asked. Thread rule: as describe.hpp's.
#pragma once

#include <string>

#include "base/error.hpp"
#include "topology/discovery/hwloc_library.hpp"

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

} // namespace warren::discovery
