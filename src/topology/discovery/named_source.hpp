// Sources of a topology as users name them: mpiexec --topology, `warren topo`.
//
//     native, or nothing    this machine
//     synthetic:TEXT        hwloc's synthetic description
//     xml:PATH              hwloc's XML
//     image:PATH            an image file
//     folder:PATH           a copy of a machine's /sys and /proc (hwloc-gather-topology)
//     PATH                  one of these three, by what is there
// Thread rule: as discover() (describe.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "topology/discovery/describe.hpp"

namespace warren::discovery {

struct NamedSource {
    bool is_image = false; // a file with an image, at source.text
    Source source;
};

// Errors: WARREN_TOPOLOGY_ERR_FILE: there is nothing at the path.
Error name_source(const std::string& text, NamedSource& named);

// The source's image, checked. `note` gets why a file of measured values was not taken, or "".
// Errors: as discover_image; WARREN_TOPOLOGY_ERR_OWNER, _DAMAGED.
Error named_image(const std::string& text, bool devices, std::vector<std::byte>& image,
                  std::string& note);

} // namespace warren::discovery
