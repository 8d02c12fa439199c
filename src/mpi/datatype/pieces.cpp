// A buffer's memory as a list of pieces, and copies from one layout to another.
#include <algorithm>
#include <array>
#include <cstring>

#include "mpi/datatype/buffer.hpp"
#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/datatype/tuning.hpp"
#include "mpi/datatype/walk.hpp"

namespace warren::datatype {

namespace {

struct List {
    static constexpr bool in_order = true;
    bool enough() const { return full; }

    void block(Address memory, MPI_Count, MPI_Count bytes) {
        const auto length = static_cast<std::size_t>(bytes);
        if (full) {
            return;
        }
        if (count > 0 && end == memory) {
            pieces[count - 1].iov_len += length;
        } else if (count < limit) {
            pieces[count++] = {.iov_base = reinterpret_cast<void*>(memory), .iov_len = length};
        } else {
            full = true;
            return;
        }
        end = memory + length;
        covered += bytes;
    }
    void blocks(Address memory, MPI_Count stride, MPI_Count, MPI_Count, MPI_Count number,
                MPI_Count bytes) {
        for (MPI_Count i = 0; i < number && !full; ++i) {
            block(memory, 0, bytes);
            memory += static_cast<Address>(stride);
        }
    }
    void scattered(Address base, const MPI_Count* places, MPI_Count, MPI_Count number,
                   MPI_Count bytes) {
        for (MPI_Count i = 0; i < number && !full; ++i) {
            block(base + static_cast<Address>(places[i]), 0, bytes);
        }
    }

    iovec* pieces;
    std::size_t limit;
    std::size_t count = 0;
    MPI_Count covered = 0;
    Address end = 0; // of the last piece
    bool full = false;
};

// Copies bytes [first, first + bytes) of the data, where one side's blocks are large: piece by
// piece of that side.
template <typename CopyPiece>
void copy_by_pieces(const Buffer& coarse, MPI_Count first, MPI_Count bytes, CopyPiece copy_piece) {
    std::array<iovec, 32> pieces;
    while (bytes > 0) {
        MPI_Count covered = 0;
        const std::size_t count = coarse.type->pieces(coarse.base, coarse.count, first, bytes,
                                                      pieces.data(), pieces.size(), covered);
        MPI_Count at = first;
        for (std::size_t i = 0; i < count; ++i) {
            copy_piece(pieces[i].iov_base, at, static_cast<MPI_Count>(pieces[i].iov_len));
            at += static_cast<MPI_Count>(pieces[i].iov_len);
        }
        first += covered;
        bytes -= covered;
    }
}

// Copies where both sides' blocks are small: through the first-level cache.
void copy_through_window(const Buffer& from, const Buffer& to, MPI_Count first, MPI_Count bytes) {
    std::array<std::byte, window_bytes> window;
    while (bytes > 0) {
        const MPI_Count now = std::min(bytes, window_bytes);
        from.type->pack_part(from.base, from.count, first, now, window.data());
        to.type->unpack_part(window.data(), first, now, to.base, to.count);
        first += now;
        bytes -= now;
    }
}

// Bytes [first, first + bytes) between any two layouts.
void copy_layouts(const Buffer& from, const Buffer& to, MPI_Count first, MPI_Count bytes) {
    if (bytes == 0) {
        return;
    }
    const MPI_Count from_block = from.type->size / from.type->block_count();
    const MPI_Count to_block = to.type->size / to.type->block_count();
    if (std::max(from_block, to_block) < coarse_bytes) {
        copy_through_window(from, to, first, bytes);
    } else if (from_block > to_block) {
        copy_by_pieces(from, first, bytes, [&](void* piece, MPI_Count at, MPI_Count length) {
            to.type->unpack_part(piece, at, length, to.base, to.count);
        });
    } else {
        copy_by_pieces(to, first, bytes, [&](void* piece, MPI_Count at, MPI_Count length) {
            from.type->pack_part(from.base, from.count, at, length, piece);
        });
    }
}

} // namespace

EvenBlocks even_blocks(const Buffer& buffer) {
    const Body* body = buffer.type->layout;
    if (body == nullptr || body->steps.size() != 1) {
        return {};
    }
    const Step& step = body->steps[0];
    if (step.inner != nullptr || step.places != nullptr || (buffer.count > 1 && step.count > 1)) {
        return {};
    }
    const Address first =
        reinterpret_cast<Address>(buffer.base) + static_cast<Address>(step.offset);
    return {.first = reinterpret_cast<std::byte*>(first),
            .stride = buffer.count > 1 ? buffer.type->extent : step.stride,
            .count = buffer.count * step.count,
            .bytes = step.bytes};
}

std::size_t Datatype::pieces(const void* base, MPI_Count count, MPI_Count first, MPI_Count bytes,
                             iovec* list, std::size_t limit, MPI_Count& covered) const {
    List action{.pieces = list, .limit = limit};
    Walk<List>(action).part(*this, base, count, first, bytes);
    covered = action.covered;
    return action.count;
}

MPI_Count Datatype::block_count() const {
    if (layout != nullptr) {
        return layout->blocks;
    }
    const auto pair = body_of(*this);
    return pair != nullptr ? pair->blocks : 1;
}

void copy_data(const Buffer& from, const Buffer& to, MPI_Count first, MPI_Count bytes) {
    if (bytes <= 0) {
        return;
    }
    if (const void* piece = from.type->one_piece(from.base, from.count)) {
        to.type->unpack_part(static_cast<const std::byte*>(piece) + first, first, bytes, to.base,
                             to.count);
        return;
    }
    if (void* piece = to.type->one_piece(to.base, to.count)) {
        from.type->pack_part(from.base, from.count, first, bytes,
                             static_cast<std::byte*>(piece) + first);
        return;
    }
    const EvenBlocks out = even_blocks(from);
    const EvenBlocks in = even_blocks(to);
    if (out.count != 0 && in.count != 0 && out.bytes == in.bytes) {
        // Up to the first whole block, those blocks, and what is left.
        const MPI_Count head = std::min(bytes, (in.bytes - first % in.bytes) % in.bytes);
        copy_layouts(from, to, first, head);
        first += head;
        bytes -= head;
        const MPI_Count block = first / in.bytes;
        const MPI_Count whole = bytes / in.bytes;
        copy_blocks(in.first + block * in.stride, in.stride, out.first + block * out.stride,
                    out.stride, whole, in.bytes);
        first += whole * in.bytes;
        bytes -= whole * in.bytes;
    }
    copy_layouts(from, to, first, bytes);
}

} // namespace warren::datatype
