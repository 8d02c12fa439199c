// Shared direct: collective operations of ranks of one address space on data above a size limit
// (paths.hpp). Each rank stores in its line where its data is, or is to go; the others copy or
// combine it there, each its own part. Nothing is copied twice, and no staging area is needed.
//
// A rank whose memory others read or write waits for their arrivals before it leaves. All ranks
// must know the same number of bytes; the datatypes may differ. Arguments and results are as in
// shared_data.hpp. Thread rule: as SlotMember.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "mpi/coll/blocks.hpp"
#include "mpi/coll/phase_ring.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/op/op.hpp"

namespace warren::coll {

class SharedDirect {
  public:
    // For a communicator that has a slot and whose ranks are of one process.
    SharedDirect(message::Engine& engine, comm::Communicator& communicator)
        : ring_(engine, communicator),
          engine_(engine),
          rank_(communicator.rank()),
          size_(communicator.size()) {}

    // The outcome of the operation that was made: as CallAgreement's.
    Error outcome() { return ring_.call().outcome(); }

    bool bcast(const Buffer& buffer, int root);
    bool gather(const Buffer& own, const Blocks& blocks, int root);
    bool scatter(const Blocks& blocks, const Buffer& own, int root);
    bool allgather(const Buffer& own, const Blocks& blocks);
    // False when `out` and `in` are the same.
    bool alltoall(const Blocks& out, const Blocks& in);

    // Each rank combines a part.
    bool reduce(const Reduction& reduction, const void* in, void* out, int root);
    bool allreduce(const Reduction& reduction, const void* in, void* out);

  private:
    using Operation = std::uint64_t;
    using Rows = std::vector<const std::byte*>;
    // The last rank's message to all, in a counted slot.
    struct Verdict {
        bool agreed = false; // all calls match
        const Rows* rows =
            nullptr; // of an all-to-all: where all ranks' blocks begin, if none has gaps
    };

    // A line's description of its rank's data.
    struct Said {
        Buffer buffer;        // one block, or a reduction's operand as base
        const Blocks* blocks; // of many
        void* result;         // of a reduction
    };
    static_assert(sizeof(Said) <= static_cast<std::size_t>(line_data_bytes));

    void say(Operation operation, const Said& said) {
        ring_.sign(operation);
        std::memcpy(ring_.line_data(operation, rank_), &said, sizeof said);
    }
    // The description of another rank in an operation in which it has arrived. False: its call was
    // another one, and what is there means something else.
    bool hear(Operation operation, int rank, Said& said) {
        if (!ring_.agrees(operation, rank)) {
            return false;
        }
        std::memcpy(&said, ring_.line_data(operation, rank), sizeof said);
        return true;
    }
    void copy(const Buffer& from, const Buffer& to) const;
    // Each rank publishes its description, then calls `read` for each other rank in turn. If calls
    // don't match, nobody reads: the memory that lines point to exists only while calls wait for
    // each other, and a rank that finds its call unequal returns.
    template <typename Read>
    void exchange(const Said& said, const Read& read);
    template <typename Read>
    void alltoall_by_table(const Said& said, const Blocks& in, Rows& own_rows, const Read& read);
    template <typename Read>
    void read_others(Operation operation, const Read& read);
    // Awaits all ranks. False at all ranks: some calls don't match.
    bool all_agree(Operation operation);
    // As above, after all ranks have written; `verdict`: the last arriver's.
    bool may_read(Operation operation, Verdict& verdict);
    void publish(Operation operation, const Verdict& verdict);
    // The root publishes its description, the others read, and the root waits until they have.
    template <typename Read>
    void from_root(int root, const Said& said, const Read& read);
    // This rank's part of a reduction, into the result of `root`, or (root < 0) into its own.
    void combine(const Reduction& reduction, const Said& own, int root, std::vector<Said>& all);

    PhaseRing ring_;
    message::Engine& engine_;
    const int rank_;
    const int size_;
};

} // namespace warren::coll
