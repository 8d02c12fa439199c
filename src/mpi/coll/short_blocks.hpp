// Short blocks: collective operations of a communicator with a flat slot on up to short_block_bytes
// per rank, without gaps. They use the rows (block_rows.hpp) and the arrivals of SharedData, so
// that a rank with gaps, which takes SharedData, takes part in the same operation.
//
// They are a class of their own as they are shorter code. SharedData chooses areas, cuts pieces and
// copies by layout when it runs: 190 to 400 instructions more in each call on 8 to 512 bytes
// (callgrind, 2 ranks). Two ranks that share a core's caches spend most of such an operation in
// executing instructions.
//
// Functions return the outcome as CallAgreement's. Arguments are as in collectives.hpp.
// Thread rule: as SlotMember.
#pragma once

#include <cstdint>
#include <cstring>

#include "mpi/coll/block_rows.hpp"
#include "mpi/coll/phase_ring.hpp"
#include "mpi/coll/tuning.hpp"
#include "mpi/coll/unlocked_op.hpp"

namespace warren::coll {

class ShortBlocks {
  public:
    // For a communicator with a flat slot.
    ShortBlocks(message::Engine& engine, comm::Communicator& communicator)
        : ring_(engine, communicator, true) {}

    [[gnu::always_inline]] Error bcast(void* data, MPI_Count bytes, int root) {
        ring_.call().begin(Tag::bcast, bytes, root);
        const BlockRows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        root_row_soon(rows, root, 0, size);
        ring_.from_root(
            root, [&](Operation op) { std::memcpy(rows.of_root(ring_, op, root, 0), data, size); },
            [&](Operation op) { std::memcpy(data, rows.of_root(ring_, op, root, 0), size); });
        return ring_.call().outcome();
    }
    // `blocks` at the root only: a block of `bytes` bytes for each rank, one behind the other.
    [[gnu::always_inline]] Error gather(const void* own, std::byte* blocks, MPI_Count bytes,
                                        int root) {
        ring_.call().begin(Tag::gather, bytes, root);
        const BlockRows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        ring_.to_root(
            root, [&](Operation op) { std::memcpy(rows.own(ring_, op, ring_.rank()), own, size); },
            [&](Operation op) {
                own_row_soon(rows, rows.own(ring_, op + 1, ring_.rank()), size);
                copy(own, blocks + static_cast<std::size_t>(root) * size, size);
                for (int r = 0; r < ring_.size(); ++r) {
                    if (r != root) {
                        ring_.await(op, r);
                        std::memcpy(blocks + static_cast<std::size_t>(r) * size,
                                    rows.own(ring_, op, r), size);
                    }
                }
            });
        return ring_.call().outcome();
    }
    [[gnu::always_inline]] Error scatter(const std::byte* blocks, void* own, MPI_Count bytes,
                                         int root) {
        ring_.call().begin(Tag::scatter, bytes, root);
        const BlockRows rows = rows_of(ring_.size(), bytes);
        const auto size = static_cast<std::size_t>(bytes);
        root_row_soon(rows, root, 1 - ring_.rank(), size);
        ring_.from_root(
            root,
            [&](Operation op) {
                for (int r = 0; r < ring_.size(); ++r) {
                    if (r != root) {
                        std::memcpy(rows.of_root(ring_, op, root, r),
                                    blocks + static_cast<std::size_t>(r) * size, size);
                    }
                }
            },
            [&](Operation op) {
                std::memcpy(own, rows.of_root(ring_, op, root, ring_.rank()), size);
            });
        if (ring_.rank() == root) {
            copy(blocks + static_cast<std::size_t>(root) * size, own, size);
        }
        return ring_.call().outcome();
    }
    // `own` may be the own block's place.
    [[gnu::always_inline]] Error allgather(const void* own, std::byte* blocks, MPI_Count bytes) {
        ring_.call().begin(Tag::allgather, bytes);
        const BlockRows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        const auto block = [&](int r) { return blocks + static_cast<std::size_t>(r) * size; };
        together(
            size,
            [&](Operation op) { std::memcpy(rows.for_all(ring_, op, ring_.rank()), own, size); },
            [&](Operation op) {
                own_soon(rows, op, size);
                copy(own, block(ring_.rank()), size);
            },
            [&](Operation op, int r) { std::memcpy(block(r), rows.for_all(ring_, op, r), size); });
        return ring_.call().outcome();
    }
    // `out` and `in` may be the same.
    static bool fits_alltoall(MPI_Count bytes, int ranks) {
        const auto width = static_cast<std::size_t>(ranks - 1);
        const std::size_t stride = staging_block_stride(static_cast<std::size_t>(bytes));
        return static_cast<std::size_t>(bytes) * width <= line_data_bytes ||
               staging_row_pitch(stride * width) * static_cast<std::size_t>(ranks) <=
                   staging_phase_bytes(StagingKind::small, ranks);
    }
    Error alltoall(const std::byte* out, std::byte* in, MPI_Count bytes) {
        ring_.call().begin(Tag::alltoall, bytes);
        const BlockRows rows = rows_of(ring_.size() - 1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        const int rank = ring_.rank();
        together(
            size,
            [&](Operation op) {
                for (int r = 0; r < ring_.size(); ++r) {
                    if (r != rank) {
                        std::memcpy(rows.between(ring_, op, rank, r),
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
                std::memcpy(in + static_cast<std::size_t>(r) * size,
                            rows.between(ring_, op, r, rank), size);
            });
        return ring_.call().outcome();
    }

    // Contiguous datatypes.
    Error reduce(const Reduction& reduction, const void* in, void* out, int root) {
        const MPI_Count bytes = reduction.count * reduction.type.size;
        ring_.call().begin(Tag::reduce, bytes, root, reduction.op.kind());
        const BlockRows rows = rows_of(1, bytes);
        ring_.to_root(
            root,
            [&](Operation op) {
                std::memcpy(rows.own(ring_, op, ring_.rank()), in, static_cast<std::size_t>(bytes));
            },
            [&](Operation op) {
                alignas(node::cache_line_bytes) std::byte copied[short_block_bytes];
                const void* own = in;
                if (in == out) {
                    std::memcpy(copied, in, static_cast<std::size_t>(bytes));
                    own = copied;
                }
                own_row_soon(rows, rows.own(ring_, op + 1, ring_.rank()),
                             static_cast<std::size_t>(bytes));
                const Kernel kernel = reduction.op.kernel(reduction.type);
                for (int r = 0; r < ring_.size(); ++r) {
                    ring_.await(op, r);
                }
                fold(reduction, kernel, out,
                     [&](int r) { return r == root ? own : rows.own(ring_, op, r); });
            });
        return ring_.call().outcome();
    }
    Error allreduce(const Reduction& reduction, const void* in, void* out) {
        const MPI_Count bytes = reduction.count * reduction.type.size;
        ring_.call().begin(Tag::allreduce, bytes, 0, reduction.op.kind());
        const BlockRows rows = rows_of(1, bytes);
        Kernel kernel = nullptr;
        Operation made = 0;
        together(
            static_cast<std::size_t>(bytes),
            [&](Operation op) {
                made = op;
                std::memcpy(rows.for_all(ring_, op, ring_.rank()), in,
                            static_cast<std::size_t>(bytes));
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
        const void* const own = in != out || is_first ? in : rows.for_all(ring_, made, rank);
        fold(reduction, kernel, out, [&](int r) {
            return r == rank ? own : static_cast<const void*>(rows.for_all(ring_, made, r));
        });
        return ring_.call().outcome();
    }

  private:
    using Operation = std::uint64_t;

    // As SharedData::cut() has them.
    BlockRows rows_of(int blocks, MPI_Count block_bytes) const {
        // The compiler may rely on it: no block is as long as a page (staging_row_pitch).
        if (block_bytes <= 0 || block_bytes > short_block_bytes) {
            __builtin_unreachable();
        }
        const auto bytes = static_cast<std::size_t>(block_bytes);
        const auto width = static_cast<std::size_t>(blocks);
        if (bytes * width <= static_cast<std::size_t>(line_data_bytes)) {
            return {nullptr, 0, 0, bytes};
        }
        const std::size_t stride = staging_block_stride(bytes);
        return {ring_.staging_area(StagingKind::small),
                staging_phase_bytes(StagingKind::small, ring_.size()),
                staging_row_pitch(stride * width), stride};
    }
    // Prefetches for writing the row that this rank writes in the next operation. The others have
    // read it; without this, its lines would be fetched from them while they wait for the data.
    static void own_row_soon(const BlockRows& rows, const std::byte* row, std::size_t bytes) {
        if (rows.area != nullptr) {
            for (std::size_t at = 0; at < bytes; at += node::cache_line_bytes) {
                flat::own_line_soon(row + at);
            }
        }
    }
    // As above, where all ranks write. (Two ranks write where they have read themselves.)
    void own_soon(const BlockRows& rows, Operation op, std::size_t bytes) const {
        if (!ring_.is_pair()) {
            own_row_soon(rows, rows.for_all(ring_, op + 1, ring_.rank()), bytes);
        }
    }
    // As above, for two ranks that take turns as root; called before one waits for the other's
    // data. `block`: the block that it would write as the next root.
    void root_row_soon(const BlockRows& rows, int root, int block, std::size_t bytes) {
        if (rows.area == nullptr || !ring_.is_pair()) {
            return;
        }
        const Operation op = ring_.slot().place().operations;
        std::uint8_t& written = ring_.slot().place().written_as_root;
        const auto bit = [](Operation of) {
            return static_cast<std::uint8_t>(1U << of % collective_phases);
        };
        if (root == ring_.rank()) {
            written |= bit(op);
            return;
        }
        written &= static_cast<std::uint8_t>(~bit(op));
        if ((written & bit(op + 1)) != 0) {
            own_row_soon(rows, rows.of_root(ring_, op + 1, root, block), bytes);
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
