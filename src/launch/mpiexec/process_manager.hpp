// ProcessManager: what other MPI libraries ask a launcher (mpiexec --library), by the PMI-1
// protocol: who they are, a board on which ranks put what the others need to reach them, a barrier.
//
// Each rank has a socket, over which lines of `name=value` words go, `cmd=…` first. Thread rule:
// mpiexec's only thread. Invariant: a rank is in the barrier once at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace warren::launch {

class ProcessManager {
  public:
    ProcessManager() = default;
    // `job` is a name that no other job on the node has: libraries name shared memory after it.
    ProcessManager(std::uint32_t ranks, std::string job);

    struct Reply {
        std::uint32_t rank;
        std::string line; // with its end
    };
    struct Abort {
        bool asked = false;
        int code = 0;
        std::string message;
    };

    // Takes what a rank has sent, whole lines or parts; the replies, also to others.
    std::vector<Reply> take(std::uint32_t rank, std::uint32_t program, std::string_view text);

    const Abort& abort() const { return abort_; }

  private:
    void command(std::uint32_t rank, std::uint32_t program, std::string_view line,
                 std::vector<Reply>& replies);
    void enter_barrier(std::uint32_t rank, std::vector<Reply>& replies);
    std::string look_up(const std::string& key) const;

    std::string job_;
    std::vector<std::string> unfinished_; // lines, one per rank
    std::vector<bool> in_barrier_;
    std::uint32_t waiting_ = 0;
    std::unordered_map<std::string, std::string> board_;
    Abort abort_;
};

} // namespace warren::launch
