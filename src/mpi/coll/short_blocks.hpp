// Short blocks: collective operations of a communicator with a flat slot on up to short_block_bytes
// per rank, without gaps. They use the same memory and the same arrivals as SharedData, so that a
// rank with gaps, which takes SharedData, takes part in the same operation. They are shorter code:
// two ranks that share a core's caches spend most of such an operation in executing instructions.
//
// Functions return the outcome as SharedSlot's. Arguments are as in collectives.hpp.
// Thread rule: as SharedSlot.
#pragma once

#include <cstdint>
#include <cstring>

#include "mpi/coll/shared.hpp"

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
               SharedSlot::has_place(communicator) && SharedSlot::is_flat(engine.rank(), size) &&
               (bytes * size <= shared_bytes ||
                communicator.place.staging[static_cast<std::size_t>(StagingKind::small)] >=
                    staging::first);
    }

    ShortBlocks(message::Engine& engine, comm::Communicator& communicator)
        : slot_(engine, communicator) {}

    Error bcast(void* data, MPI_Count bytes, int root) {
        slot_.begin(Tag::bcast, bytes, root);
        const Rows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        root_row_soon(rows, root, 0, size);
        slot_.from_root(
            root, [&](Operation op) { std::memcpy(rows.of_root(op, root, 0), data, size); },
            [&](Operation op) { std::memcpy(data, rows.of_root(op, root, 0), size); });
        return slot_.outcome();
    }
    // `blocks` at the root only: a block of `bytes` bytes for each rank, one behind the other.
    Error gather(const void* own, std::byte* blocks, MPI_Count bytes, int root) {
        slot_.begin(Tag::gather, bytes, root);
        const Rows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        slot_.to_root(
            root, [&](Operation op) { std::memcpy(rows.own(op, slot_.rank_), own, size); },
            [&](Operation op) {
                own_row_soon(rows, rows.own(op + 1, slot_.rank_), size);
                copy(own, blocks + static_cast<std::size_t>(root) * size, size);
                for (int r = 0; r < slot_.size_; ++r) {
                    if (r != root) {
                        slot_.await(op, r);
                        std::memcpy(blocks + static_cast<std::size_t>(r) * size, rows.own(op, r),
                                    size);
                    }
                }
            });
        return slot_.outcome();
    }
    Error scatter(const std::byte* blocks, void* own, MPI_Count bytes, int root) {
        slot_.begin(Tag::scatter, bytes, root);
        const Rows rows = rows_of(slot_.size_, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        root_row_soon(rows, root, 1 - slot_.rank_, size);
        slot_.from_root(
            root,
            [&](Operation op) {
                for (int r = 0; r < slot_.size_; ++r) {
                    if (r != root) {
                        std::memcpy(rows.of_root(op, root, r),
                                    blocks + static_cast<std::size_t>(r) * size, size);
                    }
                }
            },
            [&](Operation op) { std::memcpy(own, rows.of_root(op, root, slot_.rank_), size); });
        if (slot_.rank_ == root) {
            copy(blocks + static_cast<std::size_t>(root) * size, own, size);
        }
        return slot_.outcome();
    }
    // `own` may be the own block's place.
    Error allgather(const void* own, std::byte* blocks, MPI_Count bytes) {
        slot_.begin(Tag::allgather, bytes);
        const Rows rows = rows_of(1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        const auto block = [&](int r) { return blocks + static_cast<std::size_t>(r) * size; };
        together(
            size, [&](Operation op) { std::memcpy(rows(op, slot_.rank_), own, size); },
            [&](Operation op) {
                own_soon(rows, op, size);
                copy(own, block(slot_.rank_), size);
            },
            [&](Operation op, int r) { std::memcpy(block(r), rows(op, r), size); });
        return slot_.outcome();
    }
    // `out` and `in` may be the same.
    bool fits_alltoall(MPI_Count bytes) const {
        return rows_of(slot_.size_ - 1, bytes).pitch * static_cast<std::size_t>(slot_.size_) <=
               staging_phase_bytes(StagingKind::small, slot_.size_);
    }
    Error alltoall(const std::byte* out, std::byte* in, MPI_Count bytes) {
        slot_.begin(Tag::alltoall, bytes);
        const Rows rows = rows_of(slot_.size_ - 1, bytes);
        const auto size = static_cast<std::size_t>(bytes);
        const int rank = slot_.rank_;
        together(
            size,
            [&](Operation op) {
                for (int r = 0; r < slot_.size_; ++r) {
                    if (r != rank) {
                        std::memcpy(rows.between(op, rank, r),
                                    out + static_cast<std::size_t>(r) * size, size);
                    }
                }
            },
            [&](Operation op) {
                if (!rows.exchanged()) {
                    own_soon(rows, op, rows.stride * static_cast<std::size_t>(slot_.size_ - 1));
                }
                copy(out + static_cast<std::size_t>(rank) * size,
                     in + static_cast<std::size_t>(rank) * size, size);
            },
            [&](Operation op, int r) {
                std::memcpy(in + static_cast<std::size_t>(r) * size, rows.between(op, r, rank),
                            size);
            });
        return slot_.outcome();
    }

    // Contiguous datatypes.
    Error reduce(const Reduction& reduction, const void* in, void* out, int root) {
        const MPI_Count bytes = reduction.count * reduction.type.size;
        slot_.begin(Tag::reduce, bytes, root, reduction.op.kind());
        const Rows rows = rows_of(1, bytes);
        slot_.to_root(
            root,
            [&](Operation op) {
                std::memcpy(rows.own(op, slot_.rank_), in, static_cast<std::size_t>(bytes));
            },
            [&](Operation op) {
                alignas(node::cache_line_bytes) std::byte copied[short_block_bytes];
                const void* own = in;
                if (in == out) {
                    std::memcpy(copied, in, static_cast<std::size_t>(bytes));
                    own = copied;
                }
                own_row_soon(rows, rows.own(op + 1, slot_.rank_), static_cast<std::size_t>(bytes));
                const Kernel kernel = reduction.op.kernel(reduction.type);
                for (int r = 0; r < slot_.size_; ++r) {
                    slot_.await(op, r);
                }
                fold(reduction, kernel, out,
                     [&](int r) { return r == root ? own : rows.own(op, r); });
            });
        return slot_.outcome();
    }
    Error allreduce(const Reduction& reduction, const void* in, void* out) {
        const MPI_Count bytes = reduction.count * reduction.type.size;
        slot_.begin(Tag::allreduce, bytes, 0, reduction.op.kind());
        const Rows rows = rows_of(1, bytes);
        Kernel kernel = nullptr;
        Operation made = 0;
        together(
            static_cast<std::size_t>(bytes),
            [&](Operation op) {
                made = op;
                std::memcpy(rows(op, slot_.rank_), in, static_cast<std::size_t>(bytes));
            },
            [&](Operation op) {
                own_soon(rows, op, static_cast<std::size_t>(bytes));
                kernel = reduction.op.kernel(reduction.type);
            },
            [](Operation, int) {});
        if (slot_.unequal()) [[unlikely]] {
            return slot_.outcome();
        }
        // The operands stay until all have arrived in the next operation. This rank reads its own
        // operand from the program's buffer, since lines that others are reading are slow to get
        // back. It reads the shared copy if the total overwrites the buffer, or if the operation is
        // user-defined.
        const int rank = slot_.rank_;
        const bool is_first = kernel != nullptr && rank >= slot_.size_ - 2;
        const void* const own = in != out || is_first ? in : rows(made, rank);
        fold(reduction, kernel, out,
             [&](int r) { return r == rank ? own : static_cast<const void*>(rows(made, r)); });
        return slot_.outcome();
    }

  private:
    using Operation = std::uint64_t;

    // Place of blocks: rows of blocks, as SharedData::cut() has them.
    struct Rows {
        const SharedSlot& slot;
        std::byte* area; // null: in the lines
        std::size_t phase_bytes;
        std::size_t pitch;
        std::size_t stride;

        // Rows of a rank for all.
        std::byte* operator()(Operation op, int rank) const {
            return area == nullptr ? in_line(op, rank, 0)
                                   : in_staging(op, slot.alternating_row(op, rank), 0);
        }
        // Rows of one rank for another one. (Blocks smaller than a line share lines, which would
        // have several writers.)
        bool exchanged() const { return area != nullptr && stride >= node::cache_line_bytes; }
        std::byte* between(Operation op, int from, int to) const {
            const auto column = [](int row, int other) { return other < row ? other : other - 1; };
            return area == nullptr ? in_line(op, from, column(from, to))
                   : exchanged() && slot.exchanges_places(op)
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
            return slot.line_data(op, rank) + static_cast<std::size_t>(block) * stride;
        }
        std::byte* in_staging(Operation op, int row, int block) const {
            return area + op % node::collective_phases * phase_bytes +
                   static_cast<std::size_t>(row) * pitch + static_cast<std::size_t>(block) * stride;
        }
    };
    Rows rows_of(int blocks, MPI_Count block_bytes) const {
        const auto bytes = static_cast<std::size_t>(block_bytes);
        const auto width = static_cast<std::size_t>(blocks);
        if (bytes * width <= static_cast<std::size_t>(shared_bytes)) {
            return {slot_, nullptr, 0, 0, bytes};
        }
        const std::size_t stride = staging_block_stride(bytes);
        return {slot_, slot_.staging_area(StagingKind::small),
                staging_phase_bytes(StagingKind::small, slot_.size_),
                staging_row_pitch(stride * width), stride};
    }
    // Prefetches for writing the row that this rank writes in the next operation. The others have
    // read it; without this, its lines would be fetched from them while they wait for the data.
    static void own_row_soon(const Rows& rows, const std::byte* row, std::size_t bytes) {
        if (rows.area != nullptr) {
            for (std::size_t at = 0; at < bytes; at += node::cache_line_bytes) {
                SharedSlot::own_line_soon(row + at);
            }
        }
    }
    // As above, where all ranks write. (Two ranks write where they have read themselves.)
    void own_soon(const Rows& rows, Operation op, std::size_t bytes) const {
        if (!slot_.is_pair()) {
            own_row_soon(rows, rows(op + 1, slot_.rank_), bytes);
        }
    }
    // As above, for two ranks that take turns as root; called before one waits for the other's
    // data. `block`: the block that it would write as the next root.
    void root_row_soon(const Rows& rows, int root, int block, std::size_t bytes) {
        if (rows.area == nullptr || !slot_.is_pair()) {
            return;
        }
        const Operation op = slot_.place_.operations;
        std::uint8_t& written = slot_.place_.written_as_root;
        const auto bit = [](Operation of) {
            return static_cast<std::uint8_t>(1U << of % node::collective_phases);
        };
        if (root == slot_.rank_) {
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
        slot_.together(
            write, [](Operation) {},
            [&](Operation op) {
                meanwhile(op);
                SharedSlot::ArrivalWait arrivals(slot_, bytes <= delay_limit_bytes ? 1 : 0);
                for (int r = 0; r < slot_.size_; ++r) {
                    if (r != slot_.rank_) {
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
        const int last = slot_.size_ - 1;
        const MPI_Count count = reduction.count;
        if (kernel != nullptr) [[likely]] {
            kernel(operand(last - 1), operand(last), total, count);
            for (int r = last - 2; r >= 0; --r) {
                kernel(operand(r), total, total, count);
            }
            return;
        }
        Rank& rank = slot_.node_rank_;
        combine_unlocked(rank, reduction.op, operand(last - 1), operand(last), total, count,
                         reduction.type);
        for (int r = last - 2; r >= 0; --r) {
            apply_unlocked(rank, reduction.op, operand(r), total, count, reduction.type);
        }
    }

    SharedSlot slot_;
};

} // namespace warren::coll
