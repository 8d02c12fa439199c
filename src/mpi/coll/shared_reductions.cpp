// The reductions of SharedData.
#include <algorithm>
#include <cstring>
#include <vector>

#include "mpi/coll/shared_data.hpp"
#include "mpi/coll/unlocked_op.hpp"

namespace warren::coll {

// Piece size of two ranks' reductions. Pieces stay in the nearer caches, and there are enough of
// them to fill the pipeline of phases once, so that two ranks that take turns as root write where
// they have read. Pieces are larger where the staging area has no separate room for each.
std::size_t SharedData::reduce_limit(std::size_t bytes) const {
    if (!ring_.is_pair()) {
        return flow_limit(bytes);
    }
    if (bytes <= reduce_round_bytes) {
        return std::max<std::size_t>(bytes / collective_phases, short_block_bytes);
    }
    return bytes <= collective_phases * staging::large_rank_bytes
               ? flow_limit(bytes)
               : std::max(flow_limit(bytes), std::min(bytes / pipeline_pieces, reduce_piece_bytes));
}

template <typename Operand>
void SharedData::fold(const Reduction& reduction, std::byte* total, MPI_Count count, int ranks,
                      const Operand& operand) {
    const MPI_Count size = reduction.type.size;
    const auto combine = [&](MPI_Count offset, MPI_Count part) {
        const std::byte* last = operand(ranks - 1) + offset;
        if (ranks == 1) {
            if (last != total + offset) {
                std::memcpy(total + offset, last, static_cast<std::size_t>(part * size));
            }
            return;
        }
        combine_unlocked(engine_.rank(), reduction.op, operand(ranks - 2) + offset, last,
                         total + offset, part, reduction.type);
        for (int r = ranks - 3; r >= 0; --r) {
            apply_unlocked(engine_.rank(), reduction.op, operand(r) + offset, total + offset, part,
                           reduction.type);
        }
    };
    if (static_cast<std::size_t>(count * size) <= static_cast<std::size_t>(short_block_bytes)) {
        if (count > 0) {
            combine(0, count);
        }
        return;
    }
    const MPI_Count step = std::max<MPI_Count>(static_cast<MPI_Count>(fold_bytes) / size, 1);
    // Lines that another core has written are slow to read: prefetch those of all operands.
    const auto ask_for = [&](MPI_Count first) {
        const auto begin = static_cast<std::size_t>(first * size);
        const std::size_t end =
            begin + static_cast<std::size_t>(std::min(step, count - first) * size);
        for (int r = ranks - 1; r >= 0 && end - begin <= fold_bytes; --r) {
            const std::byte* data = operand(r);
            for (std::size_t at = begin; at < end; at += line_bytes) {
                __builtin_prefetch(data + at);
            }
        }
    };
    ask_for(0);
    for (MPI_Count first = 0; first < count; first += step) {
        const MPI_Count part = std::min(step, count - first);
        if (first + part < count) {
            ask_for(first + part);
        }
        combine(first * size, part);
    }
}

bool SharedData::combine_pair(const Reduction& reduction, std::byte* total, const std::byte* mine,
                              const std::byte* theirs, MPI_Count count) const {
    const Kernel kernel = reduction.op.kernel(reduction.type);
    if (kernel == nullptr) {
        return false;
    }
    const auto size = static_cast<std::size_t>(reduction.type.size);
    const std::size_t bytes = static_cast<std::size_t>(count) * size;
    const auto ask_for = [&](std::size_t from, std::size_t to) {
        for (std::size_t at = from; at < std::min(to, bytes); at += line_bytes) {
            __builtin_prefetch(theirs + at);
        }
    };
    const std::byte* left = rank_ == 0 ? mine : theirs;
    const std::byte* right = rank_ == 0 ? theirs : mine;
    ask_for(0, operand_ahead_bytes);
    const std::size_t step = stream_bytes / size * size;
    for (std::size_t first = 0; first < bytes; first += step) {
        const std::size_t part = std::min(step, bytes - first);
        ask_for(first + operand_ahead_bytes, first + operand_ahead_bytes + part);
        kernel(left + first, right + first, total + first, static_cast<MPI_Count>(part / size));
    }
    return true;
}

bool SharedData::parts_are_worth(std::size_t bytes) const {
    return !crowded_ && size_ > 2 && bytes >= parts_from_bytes;
}

void SharedData::combine_in_parts(const Reduction& reduction, const Cut& cut, const void* in,
                                  void* out, int root) {
    const auto size = static_cast<std::size_t>(reduction.type.size);
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const Buffer result = {out, reduction.count, &reduction.type};
    const std::size_t bytes = static_cast<std::size_t>(reduction.count) * size;
    for (std::size_t first = 0; first < bytes && !ring_.call().unequal(); first += cut.piece) {
        const auto count = static_cast<MPI_Count>(std::min(cut.piece, bytes - first) / size);
        // Begin of the part of rank r in the piece.
        const auto begin = [&](int r) {
            return static_cast<std::size_t>(count * r / size_) * size;
        };
        Operation contributed = 0;
        ring_.together(
            [&](Operation op) {
                contributed = op;
                put(own, first, static_cast<std::size_t>(count) * size, place(cut, op, rank_));
            },
            [](Operation) {},
            [&](Operation op) {
                for (int r = 0; r < size_; ++r) {
                    ring_.await(op, r);
                }
            });
        // The contributions stay until all have arrived in the next operation.
        const auto combine = [&](std::byte* total) {
            fold(reduction, total, static_cast<MPI_Count>((begin(rank_ + 1) - begin(rank_)) / size),
                 size_, [&](int r) {
                     return static_cast<const std::byte*>(place(cut, contributed, r)) +
                            begin(rank_);
                 });
        };
        const auto write = [&](Operation op) { combine(place(cut, op, rank_)); };
        const auto read = [&](Operation op) {
            for (int r = 0; r < size_; ++r) {
                ring_.await(op, r);
                if (r != root) {
                    get(place(cut, op, r), result, first + begin(r), begin(r + 1) - begin(r));
                }
            }
        };
        if (root < 0) {
            ring_.together(
                write, [](Operation) {}, read);
        } else {
            ring_.to_root(root, write, [&](Operation op) {
                combine(static_cast<std::byte*>(out) + first + begin(root));
                read(op);
            });
        }
    }
}

namespace {

// Pieces of a reduction, each of a part for every rank: whole elements.
struct Parts {
    struct Part {
        std::size_t first;
        std::size_t bytes;
    };
    std::size_t bytes; // of all
    std::size_t span;  // bytes of a piece
    std::size_t element;
    int ranks;

    std::size_t pieces() const { return (bytes + span - 1) / span; }
    Part of(std::size_t piece, int rank) const {
        const auto count = static_cast<MPI_Count>(std::min(span, bytes - piece * span) / element);
        const auto begin = static_cast<std::size_t>(count * rank / ranks) * element;
        const auto end = static_cast<std::size_t>(count * (rank + 1) / ranks) * element;
        return {piece * span + begin, end - begin};
    }
};

} // namespace

bool SharedData::allreduce_in_row(const Reduction& reduction, const void* in, void* out) {
    const auto size = static_cast<std::size_t>(reduction.type.size);
    const auto ranks = static_cast<std::size_t>(size_);
    const std::size_t bytes = static_cast<std::size_t>(reduction.count) * size;
    // Block c of rank r's row: what r contributes to the part that c combines, or r's result.
    const Cut cut =
        this->cut(Rows::own, size_, size_, (bytes + ranks - 1) / ranks, part_bytes, size);
    if (cut.piece == 0) {
        return false;
    }
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const Buffer result = {out, reduction.count, &reduction.type};
    const Parts parts = {bytes, cut.piece * ranks, size, size_};
    const std::size_t pieces = parts.pieces();
    const auto contribute = [&](Operation op, std::size_t piece) {
        for (int r = 0; r < size_; ++r) {
            if (r != rank_) {
                const Parts::Part part = parts.of(piece, r);
                put(own, part.first, part.bytes, place(cut, op, rank_, r));
            }
        }
    };
    const auto combine = [&](Operation contributed, Operation op, std::size_t piece) {
        for (int r = 0; r < size_; ++r) {
            ring_.await(contributed, r);
        }
        const Parts::Part part = parts.of(piece, rank_);
        const auto count = static_cast<MPI_Count>(part.bytes / size);
        const auto* mine = static_cast<const std::byte*>(in) + part.first;
        auto* result_part = static_cast<std::byte*>(out) + part.first;
        std::byte* total = place(cut, op, rank_, rank_);
        const auto operand = [&](int r) {
            return r == rank_ ? mine
                              : static_cast<const std::byte*>(place(cut, contributed, r, rank_));
        };
        fold(reduction, total, count, size_, operand);
        std::memcpy(result_part, total, part.bytes);
    };
    const auto collect = [&](Operation op, std::size_t piece) {
        for (int r = 0; r < size_; ++r) {
            if (r != rank_) {
                const Parts::Part part = parts.of(piece, r);
                ring_.await(op, r);
                get(place(cut, op, r, r), result, part.first, part.bytes);
            }
        }
    };
    for (std::size_t step = 0; step <= pieces; ++step) {
        ring_.in_row(
            step == 0,
            [&](Operation op) {
                if (step < pieces) {
                    contribute(op, step);
                }
                if (step > 0) {
                    combine(op - 1, op, step - 1);
                }
            },
            [&](Operation op) {
                if (step > 1) {
                    collect(op, step - 2);
                }
            });
        if (ring_.call().unequal()) {
            return true;
        }
    }
    ring_.end_row([&](Operation op) { collect(op, pieces - 1); });
    return true;
}

bool SharedData::reduce(const Reduction& reduction, const void* in, void* out, int root) {
    const auto size = static_cast<std::size_t>(reduction.type.size);
    const std::size_t bytes = static_cast<std::size_t>(reduction.count) * size;
    const bool in_parts = parts_are_worth(bytes);
    Cut cut = this->cut(Rows::own, size_, 1, bytes, in_parts ? bytes : reduce_limit(bytes), size);
    if (cut.piece == 0) {
        return false;
    }
    ring_.call().begin(Tag::reduce, reduction.count * reduction.type.size, root,
                       reduction.op.kind());
    if (in_parts) {
        combine_in_parts(reduction, cut, in, out, root);
        return true;
    }
    // One of two ranks writes. Long data always uses the first row, and each line once per call if
    // possible, so that lines alternate as the roots do (PhaseRing::alternating_row).
    const bool in_first = ring_.is_pair() && cut.area != nullptr && bytes > short_block_bytes;
    // The root writes no operand if the operation is predefined: it combines in place.
    const bool in_place = ring_.is_pair() && reduction.op.kernel(reduction.type) != nullptr;
    if (in_first) {
        cut.turn_bytes = (in_place ? 1 : 2) * cut.pitch;
        cut.turns = cut.phase_bytes / cut.turn_bytes;
    }
    const auto row = [&](int r) { return in_first ? (r == root ? 1 : 0) : r; };
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const std::size_t pipeline_bytes = collective_phases * cut.piece;
    if (rank_ != root && bytes > pipeline_bytes) {
        begin_writing(bytes);
    }
    for (std::size_t first = 0; first < bytes && !ring_.call().unequal(); first += cut.piece) {
        const std::size_t part = std::min(cut.piece, bytes - first);
        ring_.to_root(
            root,
            [&](Operation op) {
                if (first >= pipeline_bytes) {
                    time_from_here(); // the first piece has been read
                }
                put(own, first, part, place(cut, op, row(rank_)));
            },
            [&](Operation op) {
                const auto* mine = static_cast<const std::byte*>(in) + first;
                if (in == out && rank_ != size_ - 1 && !in_place) {
                    // The total takes its place.
                    if (!ring_.settle(op)) {
                        return;
                    }
                    std::byte* copy = place(cut, op, row(rank_));
                    put(own, first, part, copy);
                    mine = copy;
                }
                for (int r = 0; r < size_; ++r) {
                    ring_.await(op, r);
                }
                auto* total = static_cast<std::byte*>(out) + first;
                const auto count = static_cast<MPI_Count>(part / size);
                if (size_ == 2 &&
                    combine_pair(reduction, total, mine, place(cut, op, row(1 - rank_)), count)) {
                    return;
                }
                fold(reduction, total, count, size_, [&](int r) {
                    return r == rank_ ? mine
                                      : static_cast<const std::byte*>(place(cut, op, row(r)));
                });
            });
    }
    end_writing(bytes);
    return true;
}

bool SharedData::allreduce(const Reduction& reduction, const void* in, void* out) {
    const auto size = static_cast<std::size_t>(reduction.type.size);
    const std::size_t bytes = static_cast<std::size_t>(reduction.count) * size;
    const bool in_parts = parts_are_worth(bytes);
    const Cut cut = this->cut(Rows::alternating, size_, 1, bytes,
                              in_parts ? bytes : exchange_limit(bytes), size);
    if (cut.piece == 0) {
        return false;
    }
    ring_.call().begin(Tag::allreduce, reduction.count * reduction.type.size, 0,
                       reduction.op.kind());
    // Each of two ranks combines everything instead: neither waits for a result, and nothing is
    // copied.
    if (ring_.is_flat() && size_ > 2 && bytes > parts_from_bytes &&
        allreduce_in_row(reduction, in, out)) {
        return true;
    }
    if (in_parts) {
        combine_in_parts(reduction, cut, in, out, -1);
        return true;
    }
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const Buffer result = {out, reduction.count, &reduction.type};
    const auto part = [&](std::size_t first) { return std::min(cut.piece, bytes - first); };
    exchange(
        bytes, cut.piece,
        [&](Operation op, std::size_t first) {
            put(own, first, part(first), place(cut, op, rank_));
        },
        [&](Operation op, std::size_t first) {
            fold(reduction, place(cut, op, size_ - 1), static_cast<MPI_Count>(part(first) / size),
                 size_, [&](int r) { return static_cast<const std::byte*>(place(cut, op, r)); });
        },
        [&](Operation op, std::size_t first) {
            if (!ring_.is_flat()) {
                get(place(cut, op, size_ - 1), result, first, part(first));
                return;
            }
            for (int r = 0; r < size_; ++r) {
                ring_.await(op, r);
            }
            auto* total = static_cast<std::byte*>(out) + first;
            const auto count = static_cast<MPI_Count>(part(first) / size);
            if (size_ == 2 &&
                combine_pair(reduction, total, static_cast<const std::byte*>(in) + first,
                             place(cut, op, 1 - rank_), count)) {
                return;
            }
            const bool own_stays = in != out || rank_ == size_ - 1;
            fold(reduction, total, count, size_, [&](int r) {
                return r == rank_ && own_stays ? static_cast<const std::byte*>(in) + first
                                               : static_cast<const std::byte*>(place(cut, op, r));
            });
        });
    return true;
}

bool SharedData::reduce_scatter(const Reduction& reduction, const void* in, void* out,
                                const MPI_Count counts[]) {
    const auto size = static_cast<std::size_t>(reduction.type.size);
    std::vector<std::size_t> begin(static_cast<std::size_t>(size_) + 1); // of each block
    std::size_t most = 0;
    for (std::size_t r = 0; r + 1 < begin.size(); ++r) {
        const std::size_t bytes = static_cast<std::size_t>(counts[r]) * size;
        begin[r + 1] = begin[r] + bytes;
        most = std::max(most, bytes);
    }
    const Cut cut = this->cut(Rows::alternating, size_, size_, most, exchange_limit(most), size);
    if (cut.piece == 0) {
        return false;
    }
    ring_.call().begin(Tag::reduce_scatter, reduction.count * reduction.type.size, 0,
                       reduction.op.kind());
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const std::size_t mine = begin[static_cast<std::size_t>(rank_)];
    const auto part = [&](int r, std::size_t first) {
        const auto block = static_cast<std::size_t>(r);
        const std::size_t bytes = begin[block + 1] - begin[block];
        return first < bytes ? std::min(cut.piece, bytes - first) : std::size_t{0};
    };
    // `in` and `out` may be the same memory: a piece's result is written below all data of any
    // block that is still to be read.
    exchange(
        most, cut.piece,
        [&](Operation op, std::size_t first) {
            for (int r = 0; r < size_; ++r) {
                if (r != rank_ || in == out) {
                    put(own, begin[static_cast<std::size_t>(r)] + first, part(r, first),
                        place(cut, op, rank_, r));
                }
            }
        },
        [](Operation, std::size_t) {},
        [&](Operation op, std::size_t first) {
            for (int r = 0; r < size_; ++r) {
                ring_.await(op, r);
            }
            fold(reduction, static_cast<std::byte*>(out) + first,
                 static_cast<MPI_Count>(part(rank_, first) / size), size_, [&](int r) {
                     return r == rank_ && in != out
                                ? static_cast<const std::byte*>(in) + mine + first
                                : static_cast<const std::byte*>(place(cut, op, r, rank_));
                 });
        });
    return true;
}

bool SharedData::scan(const Reduction& reduction, const void* in, void* out, bool exclusive) {
    const auto size = static_cast<std::size_t>(reduction.type.size);
    const std::size_t bytes = static_cast<std::size_t>(reduction.count) * size;
    const Cut cut = this->cut(Rows::alternating, size_, 1, bytes, exchange_limit(bytes), size);
    if (cut.piece == 0) {
        return false;
    }
    ring_.call().begin(Tag::scan, reduction.count * reduction.type.size, exclusive ? 1 : 0,
                       reduction.op.kind());
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const auto part = [&](std::size_t first) { return std::min(cut.piece, bytes - first); };
    const int ranks = exclusive ? rank_ : rank_ + 1;
    exchange(
        bytes, cut.piece,
        [&](Operation op, std::size_t first) {
            put(own, first, part(first), place(cut, op, rank_));
        },
        [](Operation, std::size_t) {},
        [&](Operation op, std::size_t first) {
            for (int r = 0; r < size_; ++r) {
                ring_.await(op, r);
            }
            if (ranks > 0) {
                fold(reduction, static_cast<std::byte*>(out) + first,
                     static_cast<MPI_Count>(part(first) / size), ranks, [&](int r) {
                         return r == rank_ ? static_cast<const std::byte*>(in) + first
                                           : static_cast<const std::byte*>(place(cut, op, r));
                     });
            }
        });
    return true;
}

} // namespace warren::coll
