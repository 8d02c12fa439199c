// PmiClient: what a process asks the launcher that started it, by the PMI-1 protocol: Hydra
// (MPICH's and Intel MPI's mpiexec) and Slurm (srun --mpi=pmi2) speak it.
//
// Lines of `name=value` words go over the descriptor PMI_FD, `cmd=…` first; each has an answer. A
// board holds values under keys: others see them after a barrier of all processes.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace warren::node {

class PmiClient {
  public:
    PmiClient() = default;
    PmiClient(const PmiClient&) = delete;
    PmiClient& operator=(const PmiClient&) = delete;
    ~PmiClient();

    // Whether there is such a launcher, with several processes.
    static bool has_launcher();

    // Greets the launcher. Errors, of this and all calls: class MPI_ERR_OTHER.
    Error connect();
    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return size_; }

    // The node of each process, by the launcher's numbers; all 0 if it does not say.
    Error nodes(std::vector<std::uint32_t>& node_of_rank);

    // Any bytes, of any length: they go in as many values as they need.
    Error put(const std::string& key, std::string_view bytes);
    Error get(const std::string& key, std::string& bytes);
    Error barrier();
    // Tells the launcher to end all processes. It may do so before this returns.
    void abort(int code);
    void finalize();

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
