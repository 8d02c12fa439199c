// ProfileReport: what `mpiexec --profile` shows of the records that ranks have left in the node
// segment (mpi/rank/profile_record.hpp): a table, and a page (profile_page.hpp).
//
// Sums are over all ranks. Where ranks share a column, a peer is the first of its ranks. Thread
// rule: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpi/job/segment.hpp"
#include "mpi/rank/profile_record.hpp"

namespace warren::launch {

struct RankTimes {
    double run_s = 0; // from the begin of MPI to its end
    double mpi_s = 0; // in calls
    double waiting_s = 0;
    double waited_for_s = 0; // by others
};

struct CallTotal {
    std::string name;
    std::uint64_t calls = 0;
    double time_s = 0;
    double waiting_s = 0;
    double most_s = 0; // of a rank
    std::uint32_t most_rank = 0;
};

struct WaitTotal {
    std::string call;
    std::uint32_t rank = 0;
    std::uint32_t peer = 0; // profile::nobody: for no one in particular
    std::uint64_t waits = 0;
    double time_s = 0;
};

struct CollectiveTotal {
    std::string name;
    std::uint32_t size_class = 0;
    std::uint64_t calls = 0; // of all ranks
    std::uint64_t bytes = 0;
    double time_s = 0;
};

struct PairTotal {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t window_operations = 0;
    std::uint64_t window_bytes = 0;
};

// Values for pairs of ranks, or of groups of neighbouring ones.
struct PairMatrix {
    std::uint32_t size = 0;
    std::uint32_t ranks_each = 1;
    std::vector<double> values; // row after row: of whom, then to or for whom

    double& at(std::uint32_t row, std::uint32_t column) { return values[row * size + column]; }
    double at(std::uint32_t row, std::uint32_t column) const { return values[row * size + column]; }
    double most() const;
};

struct ProfileReport {
    std::uint32_t ranks = 0;
    std::uint32_t ranks_each = 1; // of a column
    std::uint32_t unfinished = 0; // ranks that have not left MPI
    std::uint32_t without_mpi = 0;
    std::uint64_t left_out = 0;
    RankTimes sum;
    std::vector<RankTimes> of_ranks;
    std::vector<CallTotal> calls;             // longest first
    std::vector<WaitTotal> waits;             // longest first, the first `waits_kept`
    std::vector<CollectiveTotal> collectives; // by name and size
    std::vector<PairTotal> pairs;             // most bytes first, the first `pairs_kept`
    PairTotal all_pairs;                      // sums
    std::uint64_t pairs_used = 0;
    std::uint64_t operation_messages = 0; // of the library's own operations
    PairMatrix bytes;                     // of messages and windows
    PairMatrix waiting;                   // seconds
};

// Reads what the ranks of a segment with records have left; those that have not ended have until
// now.
ProfileReport read_profile(const node::Segment& segment);

// Lines of text with line ends.
std::string profile_table(const ProfileReport& report);

// "64", "64 to 127": the bytes of a size class.
std::string describe_size(std::uint32_t size_class);
// "12.3 kB"
std::string describe_bytes(double bytes);

} // namespace warren::launch
