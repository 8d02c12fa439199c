// Makes a complete Description (topology/description.hpp) of what hwloc finds.
//
// All types of objects are requested, with PCI and OS devices of the important classes. Objects
// that the process may not use are included: the allowed ones are a mask over the image. For the
// machine itself hwloc reads the system's files. Two of its methods are disabled: binding the
// calling thread to each processor in turn (x86), and starting accelerators (CUDA, OpenCL …).
// Thread rule: anybody, but reading a dump changes the environment during the call.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.hpp"
#include "topology/description.hpp"
#include "topology/discovery/hwloc_library.hpp"
#include "topology/discovery/source.hpp"

namespace warren::discovery {

// `description` of a loaded topology, without completed attributes.
Error describe(const HwlocLibrary& hwloc, hwloc_topology_t topology,
               topology::Description& description);

// All of it: the description, with the machine's measured values (topology/values_file.hpp; for
// other sources than the machine itself only when the environment names a file) and completed
// attributes. A file of values that is refused is left out, and the note says so. Errors:
// WARREN_TOPOLOGY_ERR_DISCOVERY, WARREN_TOPOLOGY_ERR_FILE, WARREN_TOPOLOGY_ERR_OWNER,
// WARREN_TOPOLOGY_ERR_DAMAGED, WARREN_TOPOLOGY_ERR_LIMIT.
Error discover(const Source& source, topology::Description& description);

// Makes an image of the source. XML is read in a child process (isolated.hpp), as hwloc does not
// check it.
Error discover_image(const Source& source, std::vector<std::byte>& image);

} // namespace warren::discovery
