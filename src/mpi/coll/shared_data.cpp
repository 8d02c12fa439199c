#include "mpi/coll/shared_data.hpp"

#include <algorithm>
#include <cstring>

namespace warren::coll {

// --- Where data is

SharedData::Cut SharedData::cut(Rows which, int rows, int blocks, std::size_t bytes,
                                std::size_t limit, std::size_t unit) const {
    const auto width = static_cast<std::size_t>(blocks);
    const auto height = static_cast<std::size_t>(rows);
    Cut made;
    made.rows = which;
    if (bytes * width <= static_cast<std::size_t>(line_data_bytes)) {
        made.piece = bytes;
        made.stride = bytes;
        return made;
    }
    const auto fits = [&](StagingKind kind, std::size_t piece) {
        made.phase_bytes = staging_phase_bytes(kind, size_);
        made.piece = piece;
        made.stride = staging_block_stride(piece);
        made.pitch = staging_row_pitch(made.stride * width);
        return piece != 0 && made.pitch * height <= made.phase_bytes &&
               (made.area = ring_.staging_area(kind)) != nullptr;
    };
    const std::size_t wanted = std::max(std::min(bytes, limit) / unit * unit, unit);
    if (fits(StagingKind::small, wanted) || fits(StagingKind::large, wanted) ||
        (ring_.is_pair() &&
         (fits(StagingKind::wide, wanted) ||
          fits(StagingKind::large, std::min(wanted, pair_piece_bytes / unit * unit))))) {
        return made;
    }
    // The largest piece for which there is room, after what rounding may add.
    const auto largest = [&](StagingKind kind) {
        const std::size_t row = staging_phase_bytes(kind, size_) / height;
        const std::size_t block = (row - std::min(row, 2 * line_bytes)) / width;
        const std::size_t grain =
            unit < line_bytes && line_bytes % unit == 0 && block > line_bytes ? line_bytes : unit;
        std::size_t piece = std::min(block / grain * grain, wanted);
        while (piece > grain && staging_row_pitch(staging_block_stride(piece) * width) > row) {
            piece -= grain;
        }
        return piece;
    };
    if (fits(StagingKind::large, largest(StagingKind::large)) ||
        fits(StagingKind::small, largest(StagingKind::small))) {
        return made;
    }
    return {};
}

std::byte* SharedData::place(const Cut& cut, Operation operation, int rank, int block) const {
    std::byte* found = cut.rows == Rows::first ? cut.of_root(ring_, operation, rank, block)
                       : cut.rows == Rows::own ? cut.own(ring_, operation, rank, block)
                                               : cut.for_all(ring_, operation, rank, block);
    if (cut.turns > 1) {
        const std::uint64_t before =
            (operation - ring_.call().first_operation()) / collective_phases;
        found += before % cut.turns * cut.turn_bytes;
    }
    return found;
}

// --- Copies between the program's buffers and the shared ones

void SharedData::put(const Buffer& from, std::size_t first, std::size_t bytes,
                     std::byte* to) const {
    if (bytes == 0) {
        return; // and the buffer may be null
    }
    if (!from.type->contiguous) {
        from.type->pack_part(from.base, from.count, static_cast<MPI_Count>(first),
                             static_cast<MPI_Count>(bytes), to);
        return;
    }
    const std::byte* data = static_cast<const std::byte*>(from.base) + first;
    write(to, data, bytes);
}

void SharedData::write(std::byte* to, const void* from, std::size_t bytes) const {
    if (passes_) {
        transport::LargeCopy::pass(to, from, bytes);
    } else if (bytes >= large_copy_bytes) {
        engine_.copy().put(to, from, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

void SharedData::begin_writing(std::size_t bytes) {
    if (!transport::LargeCopy::can_pass || size_ != 2 || !ring_.is_flat() ||
        bytes < passing_from_bytes) {
        return;
    }
    writing_ = engine_.writing_for(communicator_.endpoint(1 - rank_));
    passes_ = writing_ != nullptr && writing_->next(bytes, trial_) == message::CopyMethod::pass;
}

void SharedData::time_from_here() {
    if (trial_.began != 0 && !timed_) {
        trial_.began = trial_.looked = message::node_time_ns();
        timed_ = true;
    }
}

void SharedData::end_writing(std::size_t bytes) {
    if (timed_ && !ring_.call().unequal()) {
        trial_.ended = message::node_time_ns();
        writing_->end(bytes, trial_);
    }
    passes_ = false;
    timed_ = false;
    trial_ = {};
}

void SharedData::get(const std::byte* from, const Buffer& to, std::size_t first,
                     std::size_t bytes) const {
    if (!to.type->contiguous) {
        to.type->unpack_part(from, static_cast<MPI_Count>(first), static_cast<MPI_Count>(bytes),
                             to.base, to.count);
        return;
    }
    std::byte* data = static_cast<std::byte*>(to.base) + first;
    if (bytes >= large_copy_bytes) {
        const std::size_t step = bytes <= vector_copy_bytes ? vector_copy_bytes / 2 : bytes;
        for (std::size_t at = 0; at < bytes; at += step) {
            engine_.copy().get(data + at, from + at, std::min(step, bytes - at), bytes);
        }
    } else {
        std::memcpy(data, from, bytes);
    }
}

void SharedData::copy_own(const Buffer& from, const Buffer& to, std::size_t first,
                          std::size_t bytes) const {
    const auto all = static_cast<std::size_t>(std::min(from.bytes(), to.bytes()));
    if (first < all && !from.same_place(to)) {
        datatype::copy_data(from, to, static_cast<MPI_Count>(first),
                            static_cast<MPI_Count>(std::min(bytes, all - first)));
    }
}

// Both limits are at least short_block_bytes: ShortBlocks cuts nothing.
std::size_t SharedData::flow_limit(std::size_t bytes) const {
    if (!ring_.is_flat()) {
        return bytes;
    }
    const auto& [few, more, most] = flow_pieces;
    return bytes <= few.data_bytes    ? few.piece_bytes
           : bytes <= more.data_bytes ? more.piece_bytes
                                      : most.piece_bytes;
}

std::size_t SharedData::exchange_limit(std::size_t bytes) const {
    if (!ring_.is_flat()) {
        return bytes;
    }
    return std::min(bytes, !ring_.is_pair()          ? piece_bytes
                           : bytes < wide_from_bytes ? pair_piece_bytes
                                                     : wide_piece_bytes);
}

bool SharedData::is_too_fine(const Cut& cut, std::size_t bytes) const {
    return cut.piece == 0 || (ring_.is_pair() && cut.piece < std::min(bytes, piece_bytes));
}

// --- Data that moves

bool SharedData::bcast(const Buffer& buffer, int root) {
    const auto bytes = static_cast<std::size_t>(buffer.bytes());
    const Cut cut = this->cut(Rows::first, 1, 1, bytes, flow_limit(bytes));
    if (cut.piece == 0) {
        return false;
    }
    ring_.call().begin(Tag::bcast, buffer.bytes(), root);
    for (std::size_t first = 0; first < bytes && !ring_.call().unequal(); first += cut.piece) {
        const std::size_t part = std::min(cut.piece, bytes - first);
        ring_.from_root(
            root, [&](Operation op) { put(buffer, first, part, place(cut, op, root)); },
            [&](Operation op) { get(place(cut, op, root), buffer, first, part); });
    }
    return true;
}

bool SharedData::gather(const Buffer& own, const Blocks& blocks, int root) {
    const auto bytes = static_cast<std::size_t>(own.bytes());
    const Cut cut = this->cut(Rows::own, size_, 1, bytes, flow_limit(bytes));
    if (cut.piece == 0) {
        return false;
    }
    ring_.call().begin(Tag::gather, own.bytes(), root);
    for (std::size_t first = 0; first < bytes && !ring_.call().unequal(); first += cut.piece) {
        const std::size_t part = std::min(cut.piece, bytes - first);
        ring_.to_root(
            root, [&](Operation op) { put(own, first, part, place(cut, op, rank_)); },
            [&](Operation op) {
                for (int r = 0; r < size_; ++r) {
                    if (r != rank_) {
                        ring_.await(op, r);
                        get(place(cut, op, r), blocks[r], first, part);
                    }
                }
            });
    }
    return true;
}

bool SharedData::scatter(const Blocks& blocks, const Buffer& own, int root) {
    const auto bytes = static_cast<std::size_t>(own.bytes());
    const Cut cut = this->cut(Rows::first, 1, size_, bytes, flow_limit(bytes));
    if (cut.piece == 0) {
        return false;
    }
    ring_.call().begin(Tag::scatter, own.bytes(), root);
    for (std::size_t first = 0; first < bytes && !ring_.call().unequal(); first += cut.piece) {
        const std::size_t part = std::min(cut.piece, bytes - first);
        ring_.from_root(
            root,
            [&](Operation op) {
                for (int r = 0; r < size_; ++r) {
                    if (r != rank_) {
                        put(blocks[r], first, part, place(cut, op, root, r));
                    }
                }
            },
            [&](Operation op) { get(place(cut, op, root, rank_), own, first, part); });
    }
    return true;
}

bool SharedData::allgather(const Buffer& own, const Blocks& blocks) {
    MPI_Count most = blocks[0].bytes();
    for (int r = 1; r < size_ && !blocks.regular(); ++r) {
        most = std::max(most, blocks[r].bytes());
    }
    const auto bytes = static_cast<std::size_t>(most);
    const Cut cut = this->cut(Rows::alternating, size_, 1, bytes, exchange_limit(bytes));
    if (is_too_fine(cut, bytes)) {
        return false;
    }
    ring_.call().begin(Tag::allgather, most);
    const auto part = [&](const Buffer& block, std::size_t first) {
        const auto all = static_cast<std::size_t>(block.bytes());
        return first < all ? std::min(cut.piece, all - first) : std::size_t{0};
    };
    exchange(
        bytes, cut.piece,
        [&](Operation op, std::size_t first) {
            put(own, first, part(own, first), place(cut, op, rank_));
        },
        [](Operation, std::size_t) {},
        [&](Operation op, std::size_t first) {
            copy_own(own, blocks[rank_], first, cut.piece);
            for (int r = 0; r < size_; ++r) {
                if (r != rank_) {
                    const Buffer block = blocks[r];
                    ring_.await(op, r);
                    get(place(cut, op, r), block, first, part(block, first));
                }
            }
        });
    return true;
}

bool SharedData::alltoall(const Blocks& out, const Blocks& in) {
    const auto bytes = static_cast<std::size_t>(in[rank_].bytes());
    // A rank's row has a block for every other one, or of every other one.
    const Cut cut = this->cut(Rows::own, size_, size_ - 1, bytes, exchange_limit(bytes));
    if (is_too_fine(cut, bytes)) {
        return false;
    }
    ring_.call().begin(Tag::alltoall, in[rank_].bytes());
    const auto where = [&](Operation op, int from, int to) {
        return cut.between(ring_, op, from, to);
    };
    exchange(
        bytes, cut.piece,
        [&](Operation op, std::size_t first) {
            const std::size_t part = std::min(cut.piece, bytes - first);
            for (int r = 0; r < size_; ++r) {
                if (r != rank_) {
                    put(out[r], first, part, where(op, rank_, r));
                }
            }
        },
        [](Operation, std::size_t) {},
        [&](Operation op, std::size_t first) {
            const std::size_t part = std::min(cut.piece, bytes - first);
            copy_own(out[rank_], in[rank_], first, part);
            for (int r = 0; r < size_; ++r) {
                if (r != rank_) {
                    ring_.await(op, r);
                    get(where(op, r, rank_), in[r], first, part);
                }
            }
        });
    return true;
}

} // namespace warren::coll
