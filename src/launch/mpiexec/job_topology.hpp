// JobTopology: gives the ranks of a job the node's topology: as an image, when one of them asks,
// and in hwloc's forms, with --hwloc-shmem. Thread rule: mpiexec's only thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "launch/mpiexec/hwloc_publication.hpp"
#include "launch/mpiexec/job_state.hpp"
#include "launch/mpiexec/program.hpp"
#include "launch/mpiexec/topology_publication.hpp"

namespace warren::launch {

class JobTopology {
  public:
    explicit JobTopology(JobState& job) : job_(job) {}

    // Publishes it to the ranks. False: the topology that the user asked for can't be had.
    bool publish(RankEnvironment& environment);
    // Libraries that the program must load before the library that reads hwloc's forms.
    static std::string preloaded_before(const ResolvedProgram& program);
    // Descriptors that ranks inherit.
    std::vector<int> descriptors() const;

    // Requests for the image, and with -v reports of what hwloc did.
    void read_socket();
    void report();

  private:
    bool publish_image(RankEnvironment& environment);
    bool make_image();
    bool publish_hwloc(RankEnvironment& environment);
    bool offer_hwloc(HwlocOffer offer, RankEnvironment& environment);

    JobState& job_;
    TopologyPublication topology_;
    HwlocPublication hwloc_;
    std::array<std::uint32_t, 4> loaded_{}; // by HwlocWay
};

} // namespace warren::launch
