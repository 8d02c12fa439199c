// LauncherClient: what a process asks a launcher that is not Warren's: who it is, which processes
// are on which node, and a board, which holds values under keys. PmiClient and PmixClient implement
// it.
//
// Others see a value after a barrier of all processes. Errors: class MPI_ERR_OTHER. Thread rule:
// one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace warren::node {

class LauncherClient {
  public:
    LauncherClient() = default;
    LauncherClient(const LauncherClient&) = delete;
    LauncherClient& operator=(const LauncherClient&) = delete;
    virtual ~LauncherClient() = default;

    // Greets the launcher.
    virtual Error connect() = 0;
    virtual std::uint32_t rank() const = 0;
    virtual std::uint32_t size() const = 0;
    // The node of each process, by any numbers.
    virtual Error nodes(std::vector<std::uint32_t>& node_of_rank) = 0;

    // Any bytes, of any length. Each key is put once.
    virtual Error put(const std::string& key, std::string_view bytes) = 0;
    // The value that a process has put.
    virtual Error get(std::uint32_t rank, const std::string& key, std::string& bytes) = 0;
    virtual Error barrier() = 0;
    // Tells the launcher to end all processes. It may do so before this returns.
    virtual void abort(int code, const char* text) = 0;
    virtual void finalize() = 0;
};

} // namespace warren::node
