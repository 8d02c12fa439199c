// PmiClient: what a process asks the launcher that started it, by the PMI-1 protocol: Hydra
// (MPICH's and Intel MPI's mpiexec) and Slurm (srun --mpi=pmi2) speak it.
//
// Lines of `name=value` words go over the descriptor PMI_FD, `cmd=…` first; each has an answer.
// Thread rule: that of LauncherClient.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/job/launcher_client.hpp"

namespace warren::node {

class PmiClient final : public LauncherClient {
  public:
    PmiClient() = default;
    ~PmiClient() override;

    // Whether there is such a launcher, with several processes.
    static bool has_launcher();

    Error connect() override;
    std::uint32_t rank() const override { return rank_; }
    std::uint32_t size() const override { return size_; }
    // By the launcher's numbers.
    Error nodes(std::vector<std::uint32_t>& node_of_rank) override;

    // They go in as many values as they need.
    Error put(const std::string& key, std::string_view bytes) override;
    // Keys are of all processes.
    Error get(std::uint32_t rank, const std::string& key, std::string& bytes) override;
    Error barrier() override;
    void abort(int code, const char* text) override;
    void finalize() override;

  private:
    Error ask(const std::string& line, std::string_view answer, std::string& reply);
    Error get_value(const std::string& key, std::string& value);

    int descriptor_ = -1;
    std::uint32_t rank_ = 0;
    std::uint32_t size_ = 1;
    std::size_t value_limit_ = 0;
    std::string board_;
    std::string received_;
};

// "(vector,(0,2,4),(2,1,3))": from node 0 on, 2 nodes with 4 processes each, and so on; repeated
// until all have a node. False: these words are not of that form, or don't suffice.
bool parse_process_mapping(std::string_view text, std::uint32_t size,
                           std::vector<std::uint32_t>& node_of_rank);

} // namespace warren::node
