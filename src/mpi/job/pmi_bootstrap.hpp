// PmiBootstrap: the bootstrap of jobs that another launcher has started, with PMI-1 or PMIx
// (launcher_client.hpp).
//
// The first process of each node makes the node segment and hands it on: it puts its process number
// and the descriptor on the launcher's board, and the node's others open it by /proc. What a node's
// ranks do together is as under Warren's mpiexec. In a fence the first of a node puts the cards of
// all its ranks, and who needs a rank of another node asks the board for them.
// Thread rule: that of Bootstrap.
#pragma once

#include <memory>

#include "mpi/job/launcher_client.hpp"
#include "mpi/job/mpiexec_bootstrap.hpp"

namespace warren::node {

class PmiBootstrap final : public MpiexecBootstrap {
  public:
    // Makes or opens the node segment; `node_rank` becomes the process's.
    static Error join(LauncherClient& client, Segment& segment, std::uint32_t& node_rank);

    PmiBootstrap(Segment segment, std::uint32_t node_rank, std::unique_ptr<LauncherClient> client);
    ~PmiBootstrap() override;

    std::string name_of_node(std::uint32_t node) const override;
    Error fence() override;
    // Returns when the fence is over: a process of such a launcher is one rank.
    std::uint32_t enter_fence() override;
    Told abort(JobEnd end, int code, const char* text) override;

  private:
    void fence_node();
    Error ask(const char* what, std::uint32_t node, const std::string& end,
              std::string& bytes) const;
    std::vector<std::byte> card_elsewhere(std::uint32_t node, std::uint32_t slot) override;

    const std::unique_ptr<LauncherClient> client_;
    std::uint32_t fences_ = 0;
    // The last node whose cards were asked for.
    std::uint32_t known_node_ = UINT32_MAX;
    std::string known_cards_;
};

} // namespace warren::node
