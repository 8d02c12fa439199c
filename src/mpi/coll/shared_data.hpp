// Shared data: collective operations of a communicator on one node whose data passes through its
// staging areas (staging.hpp) instead of messages.
//
// Writers pack their data straight into the staging area, readers unpack straight out of it,
// whatever the datatypes are; reductions read their operands where they are in the staging area.
// Data that does not fit a phase goes in pieces, each an operation of the slot (phase_ring.hpp) of
// its own, so that the phases make a pipeline: one rank writes a piece while another reads the one
// before.
//
// All ranks must know the same number of bytes, which determines the pieces. Matching calls have it
// in common even where their datatypes differ. Each function returns false at all ranks, having
// done nothing, where there is no staging area for it. Arguments are as in collectives.hpp. Thread
// rule: as SlotMember.
#pragma once

#include <cstdint>

#include "mpi/coll/block_rows.hpp"
#include "mpi/coll/blocks.hpp"
#include "mpi/coll/phase_ring.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/op/op.hpp"

namespace warren::coll {

class SharedData {
  public:
    // For a communicator that has a slot.
    SharedData(message::Engine& engine, comm::Communicator& communicator)
        : ring_(engine, communicator),
          engine_(engine),
          rank_(communicator.rank()),
          size_(communicator.size()),
          communicator_(communicator),
          crowded_(engine.rank().oversubscribed()) {}

    // The outcome of the operation that was made: as CallAgreement's.
    Error outcome() { return ring_.call().outcome(); }

    bool bcast(const Buffer& buffer, int root);
    // `blocks` at the root only; blocks of one size.
    bool gather(const Buffer& own, const Blocks& blocks, int root);
    bool scatter(const Blocks& blocks, const Buffer& own, int root);
    // Blocks of any sizes, which all ranks know; the own one may be `own`.
    bool allgather(const Buffer& own, const Blocks& blocks);
    // Blocks of one size. `out` and `in` may be the same.
    bool alltoall(const Blocks& out, const Blocks& in);

    // Contiguous datatypes. `in` and `out` may be the same; `out` at the root only.
    bool reduce(const Reduction& reduction, const void* in, void* out, int root);
    bool allreduce(const Reduction& reduction, const void* in, void* out);
    // `counts` of elements of the result, by rank.
    bool reduce_scatter(const Reduction& reduction, const void* in, void* out,
                        const MPI_Count counts[]);
    bool scan(const Reduction& reduction, const void* in, void* out, bool exclusive);

  private:
    using Operation = std::uint64_t;

    // The row of a staging area that a rank writes:
    //     first          the first row, if only one rank writes
    //     own            its own row (two ranks that exchange blocks: the other's)
    //     alternating    its own row; two ranks swap rows (PhaseRing::alternating_row)
    enum class Rows : std::uint8_t { first, own, alternating };

    // Rows with up to `piece` bytes of each block.
    struct Cut : BlockRows {
        std::size_t piece = 0; // 0: there is no room
        Rows rows = Rows::own;
        // Number of row sets per phase that successive pieces of a call rotate through, and their
        // distance.
        std::size_t turns = 1;
        std::size_t turn_bytes = 0;
    };
    // For `rows` rows of `blocks` blocks of `bytes` each, in pieces of up to `limit` bytes that are
    // multiples of `unit`.
    Cut cut(Rows which, int rows, int blocks, std::size_t bytes, std::size_t limit,
            std::size_t unit = 1) const;
    // Position of a block in a rank's row.
    std::byte* place(const Cut& cut, Operation operation, int rank, int block = 0) const;

    void put(const Buffer& from, std::size_t first, std::size_t bytes, std::byte* to) const;
    void get(const std::byte* from, const Buffer& to, std::size_t first, std::size_t bytes) const;
    // Copies a piece of a rank's block for itself while others write theirs. The piece was just
    // written for the others, so it is still in the cache.
    void copy_own(const Buffer& from, const Buffer& to, std::size_t first, std::size_t bytes) const;
    // Copies to memory that the other rank will read.
    void write(std::byte* to, const void* from, std::size_t bytes) const;
    // Each of two ranks measures whether to push or pass large data for the other. Begins and ends
    // the measurement of `bytes` bytes. The time starts when the other rank is known to have
    // arrived, since its lateness says nothing about the method.
    void begin_writing(std::size_t bytes);
    void time_from_here();
    void end_writing(std::size_t bytes);
    // Largest piece of data that moves from or to a root, and of data that all ranks exchange.
    std::size_t flow_limit(std::size_t bytes) const;
    std::size_t reduce_limit(std::size_t bytes) const;
    std::size_t exchange_limit(std::size_t bytes) const;
    // Whether the area has no room for pieces of a useful size: then two ranks exchange messages.
    bool is_too_fine(const Cut& cut, std::size_t bytes) const;
    // Everybody writes and reads `bytes` bytes piece by piece, as in PhaseRing::together:
    // functions of the operation's number and the piece's first byte.
    template <typename Write, typename Last, typename Read>
    void exchange(std::size_t bytes, std::size_t piece, const Write& write, const Last& last,
                  const Read& read);

    // A reduction to the root, or to all (root < 0), of which each rank combines a part.
    void combine_in_parts(const Reduction& reduction, const Cut& cut, const void* in, void* out,
                          int root);
    // An allreduce in a flat slot as a row of operations. In each operation a rank writes its
    // contributions to one piece, combines its part of the piece before, and reads the results of
    // the piece before that.
    bool allreduce_in_row(const Reduction& reduction, const void* in, void* out);
    bool parts_are_worth(std::size_t bytes) const;

    // total = operand(0) op … op operand(ranks - 1), of which the last one may be total.
    template <typename Operand>
    void fold(const Reduction& reduction, std::byte* total, MPI_Count count, int ranks,
              const Operand& operand);

    // As above, for two ranks with a predefined operation. Another core has just written `theirs`,
    // so it is prefetched in small steps. `total` may be `mine`. False: the operation is
    // user-defined.
    bool combine_pair(const Reduction& reduction, std::byte* total, const std::byte* mine,
                      const std::byte* theirs, MPI_Count count) const;

    PhaseRing ring_;
    message::Engine& engine_;
    const int rank_;
    const int size_;
    const comm::Communicator& communicator_;
    const bool crowded_;
    bool passes_ = false; // data is passed, not pushed (transport/shm/copy_methods.hpp)
    bool timed_ = false;
    message::OwnCopyMethods* writing_ = nullptr;
    message::Trial trial_ = {};
};

template <typename Write, typename Last, typename Read>
void SharedData::exchange(std::size_t bytes, std::size_t piece, const Write& write,
                          const Last& last, const Read& read) {
    if (ring_.is_flat() && bytes > piece) {
        std::size_t first = 0;
        for (; first < bytes && !ring_.call().unequal(); first += piece) {
            ring_.in_row(
                first == 0, [&](Operation op) { write(op, first); },
                [&](Operation op) { read(op, first - piece); });
        }
        if (ring_.call().unequal()) {
            return;
        }
        ring_.end_row([&](Operation op) { read(op, first - piece); });
        return;
    }
    for (std::size_t first = 0; first < bytes && !ring_.call().unequal(); first += piece) {
        ring_.together([&](Operation op) { write(op, first); },
                       [&](Operation op) { last(op, first); },
                       [&](Operation op) { read(op, first); });
    }
}

} // namespace warren::coll
