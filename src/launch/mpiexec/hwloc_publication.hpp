// HwlocPublication: the node's topology in hwloc's own forms, made once for all ranks of a job
// (mpiexec --hwloc-shmem; Goglin 2018, section IV).
//
// hwloc_shmem_topology_write copies a topology, pointers and all, into a file of memory for one
// address, where every process then maps it. hwloc can map a copy once per process, so there are
// several, one behind the other. Attribute queries refresh caches inside the topology, which an
// adopter could only do in read-only memory: they are made valid here, in every copy, before the
// files are sealed. Nothing has a name, so nothing stays behind.
//
// Thread rule: mpiexec's only thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/hwloc_offer.hpp"

namespace warren::launch {

class HwlocPublication {
  public:
    HwlocPublication() = default;
    ~HwlocPublication();
    HwlocPublication(const HwlocPublication&) = delete;
    HwlocPublication& operator=(const HwlocPublication&) = delete;

    // Discovers and writes. Errors: hwloc is missing, the source can't be read, memory; then
    // nothing is published. That no address could be found is in `notes`, and the XML is there.
    // `source` is what --topology names; empty: this machine.
    Error make(const HwlocSharing& asked, const std::string& source);

    // The descriptors are inherited by whoever is started from now on.
    const HwlocOffer& offer() const { return offer_; }
    std::vector<int> descriptors() const;

    // Messages for -v.
    const std::vector<std::string>& notes() const { return notes_; }

  private:
    HwlocOffer offer_;
    std::vector<std::string> notes_;
};

} // namespace warren::launch
