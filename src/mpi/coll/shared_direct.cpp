#include "mpi/coll/shared_direct.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "mpi/coll/unlocked_op.hpp"

namespace warren::coll {

namespace {

// Begin of the part of rank r.
MPI_Count begin_of(MPI_Count count, int rank, int size) {
    return count / size * rank + std::min<MPI_Count>(rank, count % size);
}

} // namespace

void SharedDirect::copy(const Buffer& from, const Buffer& to) const {
    const MPI_Count bytes = to.bytes();
    if (from.type->contiguous && to.type->contiguous &&
        static_cast<std::size_t>(bytes) >= large_copy_bytes) {
        engine_.copy().get(to.base, from.base, static_cast<std::size_t>(bytes),
                           static_cast<std::uint64_t>(bytes));
    } else {
        datatype::copy_data(from, to, 0, bytes);
    }
}

bool SharedDirect::all_agree(Operation operation) {
    bool agreed = true;
    for (int other = 0; other < size_; ++other) {
        if (other != rank_) {
            ring_.await(operation, other);
            agreed = ring_.agrees(operation, other) && agreed;
        }
    }
    return agreed;
}

void SharedDirect::publish(Operation operation, const Verdict& verdict) {
    std::memcpy(ring_.published_data(operation), &verdict, sizeof verdict);
}

bool SharedDirect::may_read(Operation operation, Verdict& verdict) {
    if (ring_.is_flat()) {
        return all_agree(operation);
    }
    if (ring_.call().unequal()) { // with the last one, whose verdict may be something else
        return false;
    }
    std::memcpy(&verdict, ring_.published_data(operation), sizeof verdict);
    return verdict.agreed || all_agree(operation);
}

template <typename Read>
void SharedDirect::read_others(Operation operation, const Read& read) {
    // Each begins with its neighbour, so that they don't all read one.
    for (int step = 1; step < size_; ++step) {
        const int other = (rank_ + step) % size_;
        Said its;
        if (hear(operation, other, its)) {
            read(other, its);
        }
    }
}

template <typename Read>
void SharedDirect::exchange(const Said& said, const Read& read) {
    ring_.together([&](Operation op) { say(op, said); },
                   [&](Operation op) {
                       publish(op, {all_agree(op), nullptr});
                   },
                   [&](Operation op) {
                       Verdict verdict;
                       if (may_read(op, verdict)) {
                           read_others(op, read);
                       }
                   });
}

template <typename Read>
void SharedDirect::from_root(int root, const Said& said, const Read& read) {
    Operation operation = 0;
    ring_.from_root(
        root,
        [&](Operation op) {
            operation = op;
            say(op, said);
        },
        [&](Operation op) {
            Said its;
            if (hear(op, root, its)) {
                read(its);
            }
        });
    if (rank_ == root && !ring_.call().unequal()) {
        ring_.await_all(operation);
    }
}

// --- Data that moves

bool SharedDirect::bcast(const Buffer& buffer, int root) {
    ring_.call().begin(Tag::bcast, buffer.bytes(), root);
    from_root(root, {.buffer = buffer, .blocks = nullptr, .result = nullptr},
              [&](const Said& its) { copy(its.buffer, buffer); });
    return true;
}

// Each rank puts its block where the root wants it, so that all processors copy.
bool SharedDirect::gather(const Buffer& own, const Blocks& blocks, int root) {
    ring_.call().begin(Tag::gather, own.bytes(), root);
    from_root(root, {.buffer = {}, .blocks = &blocks, .result = nullptr},
              [&](const Said& its) { copy(own, (*its.blocks)[rank_]); });
    return true;
}

bool SharedDirect::scatter(const Blocks& blocks, const Buffer& own, int root) {
    ring_.call().begin(Tag::scatter, own.bytes(), root);
    from_root(root, {.buffer = {}, .blocks = &blocks, .result = nullptr},
              [&](const Said& its) { copy((*its.blocks)[rank_], own); });
    return true;
}

bool SharedDirect::allgather(const Buffer& own, const Blocks& blocks) {
    MPI_Count most = blocks[0].bytes();
    for (int r = 1; r < size_ && !blocks.regular(); ++r) {
        most = std::max(most, blocks[r].bytes());
    }
    ring_.call().begin(Tag::allgather, most);
    exchange({.buffer = own, .blocks = nullptr, .result = nullptr},
             [&](int other, const Said& its) { copy(its.buffer, blocks[other]); });
    coll::copy(own, blocks[rank_]);
    if (!ring_.call().unequal()) {
        ring_.close();
    }
    return true;
}

namespace {

// Block number `column` of each row, one behind the other.
template <std::size_t bytes>
void take_column(const std::vector<const std::byte*>& rows, std::size_t column, std::byte* to) {
    for (const std::byte* row : rows) {
        std::memcpy(to, row + column * bytes, bytes);
        to += bytes;
    }
}

void take_column(const std::vector<const std::byte*>& rows, std::size_t column, std::size_t bytes,
                 std::byte* to) {
    switch (bytes) {
    case 4:
        return take_column<4>(rows, column, to);
    case 8:
        return take_column<8>(rows, column, to);
    case 16:
        return take_column<16>(rows, column, to);
    default:
        for (const std::byte* row : rows) {
            std::memcpy(to, row + column * bytes, bytes);
            to += bytes;
        }
    }
}

} // namespace

// For a counted slot. Blocks without gaps are mostly small and many: the last rank to arrive lists
// where all ranks' blocks begin, so that each rank reads that list instead of all lines. That
// rank's `own_rows` must exist until all have read.
template <typename Read>
void SharedDirect::alltoall_by_table(const Said& said, const Blocks& in, Rows& own_rows,
                                     const Read& read) {
    const MPI_Count bytes = in[rank_].bytes();
    const auto last = [&](Operation op) {
        Verdict verdict{true, &own_rows};
        for (int r = 0; r < size_; ++r) {
            Said its;
            if (!hear(op, r, its)) {
                verdict = {};
                break;
            }
            if (!its.blocks->solid(bytes)) {
                verdict.rows = nullptr;
            }
            own_rows.push_back(its.blocks->begin());
        }
        publish(op, verdict);
    };
    ring_.together([&](Operation op) { say(op, said); }, last,
                   [&](Operation op) {
                       Verdict verdict;
                       if (!may_read(op, verdict)) {
                           return;
                       }
                       if (verdict.rows == nullptr || !in.solid(bytes)) {
                           read_others(op, read);
                           return;
                       }
                       take_column(*verdict.rows, static_cast<std::size_t>(rank_),
                                   static_cast<std::size_t>(bytes), in.begin());
                   });
}

bool SharedDirect::alltoall(const Blocks& out, const Blocks& in) {
    if (out[rank_].same_place(in[rank_])) {
        return false;
    }
    ring_.call().begin(Tag::alltoall, in[rank_].bytes());
    const Said said = {.buffer = {}, .blocks = &out, .result = nullptr};
    const auto read = [&](int other, const Said& its) { copy((*its.blocks)[rank_], in[other]); };
    Rows rows;
    if (ring_.is_flat()) {
        exchange(said, read);
    } else {
        alltoall_by_table(said, in, rows, read);
    }
    coll::copy(out[rank_], in[rank_]);
    if (!ring_.call().unequal()) {
        ring_.close();
    }
    return true;
}

// --- Reductions

void SharedDirect::combine(const Reduction& reduction, const Said& own, int root,
                           std::vector<Said>& all) {
    all.resize(static_cast<std::size_t>(size_));
    all[static_cast<std::size_t>(rank_)] = own;
    exchange(own, [&](int other, const Said& its) { all[static_cast<std::size_t>(other)] = its; });
    if (ring_.call().unequal()) {
        return;
    }
    const MPI_Count size = reduction.type.size;
    const Said& target = all[static_cast<std::size_t>(root < 0 ? rank_ : root)];
    auto* result = static_cast<std::byte*>(target.result);
    const MPI_Count step = std::max<MPI_Count>(static_cast<MPI_Count>(fold_bytes) / size, 1);
    const MPI_Count end = begin_of(reduction.count, rank_ + 1, size_);
    // An operand that the total overwrites is copied aside, piece by piece.
    const bool in_place = target.buffer.base == target.result;
    std::vector<std::byte> aside(in_place ? static_cast<std::size_t>(step * size) : 0);
    for (MPI_Count first = begin_of(reduction.count, rank_, size_); first < end; first += step) {
        const MPI_Count count = std::min(step, end - first);
        const auto bytes = static_cast<std::size_t>(count * size);
        std::byte* total = result + first * size;
        if (in_place) {
            std::memcpy(aside.data(), total, bytes);
        }
        const auto operand = [&](int r) {
            const Said& its = all[static_cast<std::size_t>(r)];
            return in_place && &its == &target
                       ? aside.data()
                       : static_cast<const std::byte*>(its.buffer.base) + first * size;
        };
        combine_unlocked(engine_.rank(), reduction.op, operand(size_ - 2), operand(size_ - 1),
                         total, count, reduction.type);
        for (int r = size_ - 3; r >= 0; --r) {
            apply_unlocked(engine_.rank(), reduction.op, operand(r), total, count, reduction.type);
        }
    }
}

bool SharedDirect::reduce(const Reduction& reduction, const void* in, void* out, int root) {
    ring_.call().begin(Tag::reduce, reduction.count * reduction.type.size, root,
                       reduction.op.kind());
    std::vector<Said> all;
    combine(reduction,
            {.buffer = {const_cast<void*>(in), reduction.count, &reduction.type},
             .blocks = nullptr,
             .result = out},
            root, all);
    if (!ring_.call().unequal()) {
        ring_.close();
    }
    return true;
}

bool SharedDirect::allreduce(const Reduction& reduction, const void* in, void* out) {
    ring_.call().begin(Tag::allreduce, reduction.count * reduction.type.size, 0,
                       reduction.op.kind());
    std::vector<Said> all;
    combine(reduction,
            {.buffer = {const_cast<void*>(in), reduction.count, &reduction.type},
             .blocks = nullptr,
             .result = out},
            -1, all);
    if (ring_.call().unequal()) {
        return true;
    }
    const MPI_Count size = reduction.type.size;
    ring_.together([](Operation) {}, [](Operation) {},
                   [&](Operation op) {
                       for (int step = 1; step < size_ && !ring_.call().unequal(); ++step) {
                           const int other = (rank_ + step) % size_;
                           ring_.await(op, other);
                           const MPI_Count first = begin_of(reduction.count, other, size_);
                           const MPI_Count count =
                               begin_of(reduction.count, other + 1, size_) - first;
                           const auto part = [&](void* base) {
                               return Buffer{static_cast<std::byte*>(base) + first * size, count,
                                             &reduction.type};
                           };
                           copy(part(all[static_cast<std::size_t>(other)].result), part(out));
                       }
                   });
    if (!ring_.call().unequal()) {
        ring_.close();
    }
    return true;
}

} // namespace warren::coll
