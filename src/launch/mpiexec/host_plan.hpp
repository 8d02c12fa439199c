// HostPlan: what mpiexec asks of the host process whose threads are ranks (launch/host), and what
// that one reports.
//
// The plan is a file without a name whose descriptor the host inherits: numbers and counted
// strings. The reports come back through a pipe, each in one write. Other descriptors in the plan
// are inherited under their numbers. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/cpu_set.hpp"

namespace warren::launch {

// The libraries of which all ranks have one: MPI's, by all names that programs know it by.
inline constexpr const char* libraries_of_all[] = {"libmpi_abi.so.1", "libmpi_abi.so.0",
                                                   "libmpi_abi.so"};

struct HostPlan {
    struct Program {
        std::string path;      // as seen from the directory
        std::string directory; // empty: the host's
        std::vector<std::string> arguments;
        std::vector<std::string> environment; // rank_variables first, without values
        bool own_allocator = false;
        std::vector<std::string> preloaded = {}; // of which each rank has its own copy
    };
    struct Rank {
        std::uint32_t program = 0;
        int input = -1; // -1: there is nothing to be read
        int output = -1;
        int errors = -1;
        int manager = -1; // socket of a process manager, for another MPI library; -1: none
        std::shared_ptr<const CpuSet> processors = {}; // null: not bound
    };

    std::uint32_t first_rank = 0;
    std::uint32_t rank_stride = 1; // between the numbers in the world of ranks that follow
    int reports = -1;
    std::uint64_t stack_bytes = 0; // of a rank; 0: as large as a process's would be
    // Ranks are fibres, run by a worker on each of these processors; empty: ranks are threads.
    std::vector<int> workers;
    bool verbose = false;
    // The node segment's descriptor, and the offset of the ranks' loads in it. For fibres.
    int segment = -1;
    std::uint64_t loads_offset = 0;
    // Where fibres are at home (runtime/fibres/balancing.hpp); an empty name: where they ran last.
    std::string balancer;
    std::uint64_t balance_period_ns = 0;
    std::uint32_t balance_collectives = 0;
    std::string balance_record; // file; empty: none
    std::vector<std::uint32_t> distances;
    // Fibres' memory follows them among these NUMA nodes of the workers, as the kernel numbers
    // them, -1: to one where it stays where it is; empty: it stays. Programs that have an allocator
    // of their own keep their heaps.
    std::vector<int> nodes;
    bool steals = true;
    std::string library;   // that all ranks share, under the names above; empty: none
    std::vector<int> kept; // descriptors that ranks keep beside these: of the library
    std::vector<Program> programs;
    std::vector<Rank> ranks; // of this process, in order

    // WARREN_RANK of one of them.
    std::uint32_t number_of(std::uint32_t rank) const { return first_rank + rank * rank_stride; }

    // Writes it to a new file. Errors: class exit_failure.
    Error write(int& descriptor) const;
    // Reads what write has written; anything else is refused.
    static Error read(int descriptor, HostPlan& plan);
};

// An event in the life of a rank. A pipe takes a report at once, as it is far below PIPE_BUF.
struct HostReport {
    enum class Kind : std::uint32_t {
        started,    // value: the number of its thread
        ended,      // value: its exit code
        crashed,    // value: the signal that is about to end the host
        overflowed, // the same, because the rank's stack is full
        stuck       // all ranks wait for each other; rank and value mean nothing
    };

    std::uint32_t rank; // within the process
    Kind kind;
    std::int32_t value;
};

} // namespace warren::launch
