// Short blocks: collective operations of a communicator with a flat slot on up to short_block_bytes
// per rank, without gaps. They use the same memory and the same arrivals as SharedData, so that a
// rank with gaps, which takes SharedData, takes part in the same operation. They are shorter code:
// two ranks that share a core's caches spend most of such an operation in executing instructions.
//
// Functions return the outcome as CallAgreement's. Arguments are as in collectives.hpp.
// Thread rule: as SlotMember.
#pragma once

#include <cstdint>
#include <cstring>

#include "mpi/coll/phase_ring.hpp"
#include "mpi/coll/slot_pool.hpp"
#include "mpi/coll/unlocked_op.hpp"

namespace warren::coll {

// The most bytes of a block.
inline constexpr MPI_Count short_block_bytes = 1024;

class ShortBlocks {
  public:
    // Whether operations may use ShortBlocks. Ranks may decide differently, as the protocol is the
    // same. Blocks that don't fit lines need the small staging area, which exists from its first
    // use.
    static bool serves(message::Engine& engine, const comm::Communicator& communicator,
                       MPI_Count bytes) {
        const int size = communicator.size();
        return bytes <= short_block_bytes && bytes > 0 && size > 1 &&
               slot_pool::has_slot(communicator) && SlotMember::is_flat(engine.rank(), size) &&
               (bytes * size <= line_data_bytes ||
                communicator.place.staging[static_cast<std::size_t>(StagingKind::small)] >=
                    staging::first);
    }

    ShortBlocks(message::Engine& engine, comm::Communicator& communicator)
        : ring_(engine, communicator) {}

    Error bcast(void* data, MPI_Count bytes, int root) {
        ring_.call().begin(Tag::bcast, bytes, root);
        const Rows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        root_row_soon(rows, root, 0, size);
        ring_.from_root(
            root, [&](Operation op) { std::memcpy(rows.of_root(op, root, 0), data, size); },
            [&](Operation op) { std::memcpy(data, rows.of_root(op, root, 0), size); });
        return ring_.call().outcome();
    }
    // `blocks` at the root only: a block of `bytes` bytes for each rank, one behind the other.
    Error gather(const void* own, std::byte* blocks, MPI_Count bytes, int root) {
        ring_.call().begin(Tag::gather, bytes, root);
        const Rows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        ring_.to_root(
            root, [&](Operation op) { std::memcpy(rows.own(op, ring_.rank()), own, size); },
            [&](Operation op) {
                own_row_soon(rows, rows.own(op + 1, ring_.rank()), size);
                copy(own, blocks + static_cast<std::size_t>(root) * size, size);
                for (int r = 0; r < ring_.size(); ++r) {
                    if (r != root) {
                        ring_.await(op, r);
                        std::memcpy(blocks + static_cast<std::size_t>(r) * size, rows.own(op, r),
                                    size);
                    }
                }
            });
        return ring_.call().outcome();
    }
    Error scatter(const std::byte* blocks, void* own, MPI_Count bytes, int root) {
        ring_.call().begin(Tag::scatter, bytes, root);
        const Rows rows = rows_of(ring_.size(), bytes);
        const auto size = static_cast<std::size_t>(bytes);
        root_row_soon(rows, root, 1 - ring_.rank(), size);
        ring_.from_root(
            root,
            [&](Operation op) {
                for (int r = 0; r < ring_.size(); ++r) {
                    if (r != root) {
                        std::memcpy(rows.of_root(op, root, r),
                                    blocks + static_cast<std::size_t>(r) * size, size);
                    }
                }
            },
            [&](Operation op) { std::memcpy(own, rows.of_root(op, root, ring_.rank()), size); });
        if (ring_.rank() == root) {
            copy(blocks + static_cast<std::size_t>(root) * size, own, size);
        }
        return ring_.call().outcome();
    }
    // `own` may be the own block's place.
    Error allgather(const void* own, std::byte* blocks, MPI_Count bytes) {
        ring_.call().begin(Tag::allgather, bytes);
        const Rows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        const auto block = [&](int r) { return blocks + static_cast<std::size_t>(r) * size; };
        together(
            size, [&](Operation op) { std::memcpy(rows(op, ring_.rank()), own, size); },
            [&](Operation op) {
                own_soon(rows, op, size);
                copy(own, block(ring_.rank()), size);
            },
            [&](Operation op, int r) { std::memcpy(block(r), rows(op, r), size); });
        return ring_.call().outcome();
    }
    // `out` and `in` may be the same.
    bool fits_alltoall(MPI_Count bytes) const {
        return rows_of(ring_.size() - 1, bytes).pitch * static_cast<std::size_t>(ring_.size()) <=
               staging_phase_bytes(StagingKind::small, ring_.size());
    }
    Error alltoall(const std::byte* out, std::byte* in, MPI_Count bytes) {
        ring_.call().begin(Tag::alltoall, bytes);
        const Rows rows = rows_of(ring_.size() - 1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        const int rank = ring_.rank();
        together(
            size,
            [&](Operation op) {
                for (int r = 0; r < ring_.size(); ++r) {
                    if (r != rank) {
                        std::memcpy(rows.between(op, rank, r),
                                    out + static_cast<std::size_t>(r) * size, size);
                    }
                }
            },
            [&](Operation op) {
                if (!rows.exchanged()) {
                    own_soon(rows, op, rows.stride * static_cast<std::size_t>(ring_.size() - 1));
                }
                copy(out + static_cast<std::size_t>(rank) * size,
                     in + static_cast<std::size_t>(rank) * size, size);
            },
            [&](Operation op, int r) {
                std::memcpy(in + static_cast<std::size_t>(r) * size, rows.between(op, r, rank),
                            size);
            });
        return ring_.call().outcome();
    }

    // Contiguous datatypes.
    Error reduce(const Reduction& reduction, const void* in, void* out, int root) {
        const MPI_Count bytes = reduction.count * reduction.type.size;
        ring_.call().begin(Tag::reduce, bytes, root, reduction.op.kind());
        const Rows rows = rows_of(1, bytes);
        ring_.to_root(
            root,
            [&](Operation op) {
                std::memcpy(rows.own(op, ring_.rank()), in, static_cast<std::size_t>(bytes));
            },
            [&](Operation op) {
                alignas(node::cache_line_bytes) std::byte copied[short_block_bytes];
                const void* own = in;
                if (in == out) {
                    std::memcpy(copied, in, static_cast<std::size_t>(bytes));
                    own = copied;
                }
                own_row_soon(rows, rows.own(op + 1, ring_.rank()), static_cast<std::size_t>(bytes));
                const Kernel kernel = reduction.op.kernel(reduction.type);
                for (int r = 0; r < ring_.size(); ++r) {
                    ring_.await(op, r);
                }
                fold(reduction, kernel, out,
                     [&](int r) { return r == root ? own : rows.own(op, r); });
            });
        return ring_.call().outcome();
    }
    Error allreduce(const Reduction& reduction, const void* in, void* out) {
        const MPI_Count bytes = reduction.count * reduction.type.size;
        ring_.call().begin(Tag::allreduce, bytes, 0, reduction.op.kind());
        const Rows rows = rows_of(1, bytes);
        Kernel kernel = nullptr;
        Operation made = 0;
        together(
            static_cast<std::size_t>(bytes),
            [&](Operation op) {
                made = op;
                std::memcpy(rows(op, ring_.rank()), in, static_cast<std::size_t>(bytes));
            },
            [&](Operation op) {
                own_soon(rows, op, static_cast<std::size_t>(bytes));
                kernel = reduction.op.kernel(reduction.type);
            },
            [](Operation, int) {});
        if (ring_.call().unequal()) [[unlikely]] {
            return ring_.call().outcome();
        }
        // The operands stay until all have arrived in the next operation. This rank reads its own
        // operand from the program's buffer, since lines that others are reading are slow to get
        // back. It reads the shared copy if the total overwrites the buffer, or if the operation is
        // user-defined.
        const int rank = ring_.rank();
        const bool is_first = kernel != nullptr && rank >= ring_.size() - 2;
        const void* const own = in != out || is_first ? in : rows(made, rank);
        fold(reduction, kernel, out,
             [&](int r) { return r == rank ? own : static_cast<const void*>(rows(made, r)); });
        return ring_.call().outcome();
    }

  private:
    using Operation = std::uint64_t;

    // Place of blocks: rows of blocks, as SharedData::cut() has them.
    struct Rows {
        const PhaseRing& ring;
        std::byte* area; // null: in the lines
        std::size_t phase_bytes;
        std::size_t pitch;
        std::size_t stride;

        // Rows of a rank for all.
        std::byte* operator()(Operation op, int rank) const {
            return area == nullptr ? in_line(op, rank, 0)
                                   : in_staging(op, ring.alternating_row(op, rank), 0);
        }
        // Rows of one rank for another one. (Blocks smaller than a line share lines, which would
        // have several writers.)
        bool exchanged() const { return area != nullptr && stride >= node::cache_line_bytes; }
        std::byte* between(Operation op, int from, int to) const {
            const auto column = [](int row, int other) { return other < row ? other : other - 1; };
            return area == nullptr ? in_line(op, from, column(from, to))
                   : exchanged() && ring.exchanges_places(op)
                       ? in_staging(op, to, column(to, from))
                       : in_staging(op, from, column(from, to));
        }
        // Place of a block that only the root writes, and of one that another rank writes.
        std::byte* of_root(Operation op, int root, int block) const {
            return area == nullptr ? in_line(op, root, block) : in_staging(op, 0, block);
        }
        std::byte* own(Operation op, int rank) const {
            return area == nullptr ? in_line(op, rank, 0) : in_staging(op, rank, 0);
        }

      private:
        std::byte* in_line(Operation op, int rank, int block) const {
            return ring.line_data(op, rank) + static_cast<std::size_t>(block) * stride;
        }
        std::byte* in_staging(Operation op, int row, int block) const {
            return area + op % node::collective_phases * phase_bytes +
                   static_cast<std::size_t>(row) * pitch + static_cast<std::size_t>(block) * stride;
        }
    };
    Rows rows_of(int blocks, MPI_Count block_bytes) const {
        const auto bytes = static_cast<std::size_t>(block_bytes);
        const auto width = static_cast<std::size_t>(blocks);
        if (bytes * width <= static_cast<std::size_t>(line_data_bytes)) {
            return {ring_, nullptr, 0, 0, bytes};
        }
        const std::size_t stride = staging_block_stride(bytes);
        return {ring_, ring_.staging_area(StagingKind::small),
                staging_phase_bytes(StagingKind::small, ring_.size()),
                staging_row_pitch(stride * width), stride};
    }
    // Prefetches for writing the row that this rank writes in the next operation. The others have
    // read it; without this, its lines would be fetched from them while they wait for the data.
    static void own_row_soon(const Rows& rows, const std::byte* row, std::size_t bytes) {
        if (rows.area != nullptr) {
            for (std::size_t at = 0; at < bytes; at += node::cache_line_bytes) {
                flat::own_line_soon(row + at);
            }
        }
    }
    // As above, where all ranks write. (Two ranks write where they have read themselves.)
    void own_soon(const Rows& rows, Operation op, std::size_t bytes) const {
        if (!ring_.is_pair()) {
            own_row_soon(rows, rows(op + 1, ring_.rank()), bytes);
        }
    }
    // As above, for two ranks that take turns as root; called before one waits for the other's
    // data. `block`: the block that it would write as the next root.
    void root_row_soon(const Rows& rows, int root, int block, std::size_t bytes) {
        if (rows.area == nullptr || !ring_.is_pair()) {
            return;
        }
        const Operation op = ring_.slot().place().operations;
        std::uint8_t& written = ring_.slot().place().written_as_root;
        const auto bit = [](Operation of) {
            return static_cast<std::uint8_t>(1U << of % node::collective_phases);
        };
        if (root == ring_.rank()) {
            written |= bit(op);
            return;
        }
        written &= static_cast<std::uint8_t>(~bit(op));
        if ((written & bit(op + 1)) != 0) {
            own_row_soon(rows, rows.of_root(op + 1, root, block), bytes);
        }
    }
    static void copy(const void* from, void* to, std::size_t bytes) {
        if (from != to) {
            std::memcpy(to, from, bytes);
        }
    }
    // Each rank writes, calls meanwhile(), and reads the data of each other rank: `bytes` bytes.
    // Above delay_limit_bytes, reading and writing take so long that no early poll needs a delay.
    template <typename Write, typename Meanwhile, typename Read>
    void together(std::size_t bytes, const Write& write, const Meanwhile& meanwhile,
                  const Read& read) {
        ring_.together(
            write, [](Operation) {},
            [&](Operation op) {
                meanwhile(op);
                flat::ArrivalWait arrivals(ring_.call(), bytes <= delay_limit_bytes ? 1 : 0);
                for (int r = 0; r < ring_.size(); ++r) {
                    if (r != ring_.rank()) {
                        arrivals.await(op, r);
                        read(op, r);
                    }
                }
                arrivals.end();
            });
    }
    // total = operand(0) op operand(1) op …; `kernel`: of a predefined operation.
    template <typename Operand>
    void fold(const Reduction& reduction, Kernel kernel, void* total, const Operand& operand) {
        const int last = ring_.size() - 1;
        const MPI_Count count = reduction.count;
        if (kernel != nullptr) [[likely]] {
            kernel(operand(last - 1), operand(last), total, count);
            for (int r = last - 2; r >= 0; --r) {
                kernel(operand(r), total, total, count);
            }
            return;
        }
        Rank& rank = ring_.slot().node_rank;
        combine_unlocked(rank, reduction.op, operand(last - 1), operand(last), total, count,
                         reduction.type);
        for (int r = last - 2; r >= 0; --r) {
            apply_unlocked(rank, reduction.op, operand(r), total, count, reduction.type);
        }
    }

    PhaseRing ring_;
};

} // namespace warren::coll
