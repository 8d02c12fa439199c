// PmixClient: what a process asks the launcher that started it, by PMIx: Open MPI's mpirun,
// prterun, and srun --mpi=pmix.
//
// libpmix is loaded by name when a process finds such a launcher's variables, so Warren needs
// neither it nor its headers. The types that are passed to it are declared in the file: they are
// the same in all versions from 3 on. Thread rule: that of LauncherClient.
#pragma once

#include <memory>

#include "mpi/job/launcher_client.hpp"

namespace warren::node {

class PmixClient final : public LauncherClient {
  public:
    PmixClient();
    ~PmixClient() override;

    static bool has_launcher();

    Error connect() override;
    std::uint32_t rank() const override;
    std::uint32_t size() const override { return size_; }
    Error nodes(std::vector<std::uint32_t>& node_of_rank) override;
    Error put(const std::string& key, std::string_view bytes) override;
    Error get(std::uint32_t rank, const std::string& key, std::string& bytes) override;
    Error barrier() override;
    void abort(int code, const char* text) override;
    void finalize() override;

  private:
    struct Library;

    const std::unique_ptr<Library> library_;
    std::uint32_t size_ = 1;
};

} // namespace warren::node
