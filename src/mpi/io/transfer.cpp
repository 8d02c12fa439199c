#include "mpi/io/transfer.hpp"

#include <algorithm>
#include <cstring>

#include "base/page.hpp"
#include "mpi.h"
#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/io/each_block.hpp"
#include "mpi/io/page_copies.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {

using datatype::Buffer;
using Mode = RangeGuard::Mode;

namespace {

Error no_buffer(std::size_t bytes = buffer_bytes) {
    return fail(MPI_ERR_NO_MEM, "no memory for a buffer of %zu bytes", bytes);
}

// The data, if it is one piece of memory. Only reads of the file change it.
std::byte* piece_of(const Buffer& memory) {
    return const_cast<std::byte*>(
        static_cast<const std::byte*>(memory.type->one_piece(memory.base, memory.count)));
}

// Whether the memory's pieces are worth a system call with a list of them.
bool has_long_pieces(const Buffer& memory) {
    return memory.type->size / memory.type->block_count() >= direct_piece_bytes;
}

} // namespace

std::byte* Scratch::Part::get(std::size_t bytes, std::uint64_t offset) {
    if (bytes_ < bytes) {
        memory_ = allocate_pages(bytes + page_bytes);
        bytes_ = memory_ != nullptr ? bytes : 0;
    }
    return memory_ != nullptr ? memory_.get() + offset % page_bytes : nullptr;
}

bool Transfer::sieves(Direction direction) const {
    const bool reads = direction == Direction::read;
    const Choice chosen = reads ? medium_.sieved_reads : medium_.sieved_writes;
    if (!view_.ordered() || !medium_.readable || chosen == Choice::never) {
        return false;
    }
    using Storage = SystemFile::Storage;
    const Storage storage = medium_.file->storage();
    const MPI_Count stride_limit = storage == Storage::remote   ? sieved_remote_stride
                                   : reads                      ? sieved_read_stride
                                   : storage == Storage::memory ? sieved_memory_write_stride
                                                                : sieved_write_stride;
    return chosen == Choice::always ||
           (view_.block_bytes() < direct_block_bytes && view_.block_stride() <= stride_limit);
}

// Blocks that are read one by one, so close that the system would do better to read all between.
bool Transfer::asks_ahead(Direction direction) const {
    return direction == Direction::read && view_.ordered() &&
           medium_.file->storage() == SystemFile::Storage::disk &&
           view_.block_bytes() < direct_block_bytes && view_.block_stride() <= read_ahead_stride;
}

Error Transfer::move(Direction direction, const Buffer& memory, MPI_Count first, MPI_Count& done) {
    done = 0;
    const MPI_Count bytes = memory.bytes();
    if (bytes == 0 || view_.empty()) {
        return {};
    }
    if (view_.contiguous()) {
        return move_block(direction, memory, view_.place(first), done);
    }
    if (std::byte* data = piece_of(memory)) {
        return move_blocks(direction, data, bytes, first, done);
    }
    std::byte* packed = scratch_.packed();
    if (packed == nullptr) {
        return no_buffer();
    }
    MPI_Count now = 0;
    MPI_Count moved = 0;
    while (done < bytes && moved == now) {
        now = std::min<MPI_Count>(bytes - done, buffer_bytes);
        moved = 0;
        if (direction == Direction::write) {
            memory.type->pack_part(memory.base, memory.count, done, now, packed);
        }
        Error error = move_blocks(direction, packed, now, first + done, moved);
        if (direction == Direction::read) {
            memory.type->unpack_part(packed, done, moved, memory.base, memory.count);
        }
        done += moved;
        if (error) {
            return error;
        }
    }
    return {};
}

// Calls of the system that transfer `bytes` from or to one place in the file. `moved`: less than
// `bytes` after an error, or where the file ends.
Error Transfer::call(Direction direction, std::byte* data, MPI_Count bytes, std::uint64_t offset,
                     MPI_Count& moved) const {
    if (direction == Direction::read && bytes >= least_bounced_bytes &&
        medium_.file->storage() != SystemFile::Storage::remote && copies_slowly(data, offset)) {
        // Half a page away from both.
        if (std::byte* bounce = scratch_.bounce(offset + page_bytes / 2)) {
            return read_by_bounce(data, bytes, offset, bounce, moved);
        }
    }
    std::size_t got = 0;
    Error error = direction == Direction::read
                      ? medium_.file->read(data, static_cast<std::size_t>(bytes), offset, got)
                      : medium_.file->write(data, static_cast<std::size_t>(bytes), offset);
    moved = direction == Direction::read ? static_cast<MPI_Count>(got) : error ? 0 : bytes;
    return error;
}

// Through a buffer that the cache keeps, where the system would copy slowly to `data`.
Error Transfer::read_by_bounce(std::byte* data, MPI_Count bytes, std::uint64_t offset,
                               std::byte* bounce, MPI_Count& moved) const {
    moved = 0;
    std::size_t now = 0;
    std::size_t got = 0;
    Error error;
    while (moved < bytes && got == now && !error) {
        now = std::min(static_cast<std::size_t>(bytes - moved), bounce_bytes);
        error = medium_.file->read(bounce, now, offset + static_cast<std::uint64_t>(moved), got);
        std::memcpy(data + moved, bounce, got);
        moved += static_cast<MPI_Count>(got);
    }
    return error;
}

Error Transfer::call(Direction direction, std::span<iovec> pieces, MPI_Count bytes,
                     std::uint64_t offset, MPI_Count& moved) const {
    std::size_t got = 0;
    Error error = direction == Direction::read
                      ? medium_.file->read(pieces.data(), pieces.size(), offset, got)
                      : medium_.file->write(pieces.data(), pieces.size(), offset);
    moved = direction == Direction::read ? static_cast<MPI_Count>(got) : error ? 0 : bytes;
    return error;
}

// Writes lock their bytes against ranks that sieve; reads need no lock, because a sieve writes back
// what it has read.
RangeGuard Transfer::guard(Direction direction, std::uint64_t offset, MPI_Count bytes) const {
    return RangeGuard(direction == Direction::write ? locks_ : nullptr, Mode::shared, offset,
                      offset + static_cast<std::uint64_t>(bytes));
}

Error Transfer::move_block(Direction direction, const Buffer& memory, std::uint64_t offset,
                           MPI_Count& done) {
    const MPI_Count bytes = memory.bytes();
    const RangeGuard held = guard(direction, offset, bytes);
    if (std::byte* data = piece_of(memory)) {
        return call(direction, data, bytes, offset, done);
    }
    const bool listed = has_long_pieces(memory);
    std::byte* packed = listed ? nullptr : scratch_.packed(offset);
    if (!listed && packed == nullptr) {
        return no_buffer();
    }
    MPI_Count now = 0;
    MPI_Count moved = 0;
    while (done < bytes && moved == now) {
        Error error;
        const std::uint64_t place = offset + static_cast<std::uint64_t>(done);
        if (listed) {
            iovec pieces[pieces_at_once];
            const std::size_t count = memory.type->pieces(
                memory.base, memory.count, done, bytes - done, pieces, pieces_at_once, now);
            error = call(direction, {pieces, count}, now, place, moved);
        } else {
            now = std::min<MPI_Count>(bytes - done, buffer_bytes);
            if (direction == Direction::write) {
                memory.type->pack_part(memory.base, memory.count, done, now, packed);
            }
            error = call(direction, packed, now, place, moved);
            if (direction == Direction::read) {
                memory.type->unpack_part(packed, done, moved, memory.base, memory.count);
            }
        }
        done += moved;
        if (error) {
            return error;
        }
    }
    return {};
}

Error Transfer::move_blocks(Direction direction, std::byte* data, MPI_Count bytes, MPI_Count first,
                            MPI_Count& done) {
    if (!sieves(direction)) {
        return move_each(direction, data, bytes, first, done);
    }
    return direction == Direction::read ? read_sieved(data, bytes, first, done)
                                        : write_sieved(data, bytes, first, done);
}

Error Transfer::move_each(Direction direction, std::byte* data, MPI_Count bytes, MPI_Count first,
                          MPI_Count& done) {
    const std::uint64_t end = asks_ahead(direction) ? view_.place(first + bytes - 1) + 1 : 0;
    std::uint64_t asked = 0; // up to here
    Error error;
    const auto call_for = [&](std::uint64_t offset, MPI_Count at, MPI_Count length) {
        if (offset < end && offset >= asked) {
            asked = std::min(end, offset + medium_.read_sieve);
            medium_.file->ask_ahead(offset, asked);
        }
        const RangeGuard held = guard(direction, offset, length);
        MPI_Count moved = 0;
        error = call(direction, data + at, length, offset, moved);
        done = at + moved;
        return !error && moved == length;
    };
    EachBlock action(call_for);
    view_.walk(first, bytes, action);
    action.flush();
    return error;
}

// Reads from the first byte on what the sieve holds, changes the bytes of the view, and writes it
// back up to the last of them.
Error Transfer::change_range(const std::byte* data, MPI_Count bytes, MPI_Count first,
                             std::byte* sieve, MPI_Count& covered) {
    const std::uint64_t begin = view_.place(first);
    const std::uint64_t last = view_.place(first + bytes - 1) + 1;
    const std::uint64_t end = std::min(last, begin + medium_.write_sieve);
    const RangeGuard guard(locks_, Mode::exclusive, begin, end);
    std::size_t got = 0;
    if (Error error = medium_.file->read(sieve, end - begin, begin, got)) {
        return error;
    }
    std::memset(sieve + got, 0, end - begin - got);
    const auto copy = [&](std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count count,
                          MPI_Count length) {
        datatype::copy_blocks(sieve + (offset - begin), stride, data + at, length, count, length);
    };
    BlocksBefore action(end, copy);
    view_.walk(first, bytes, action);
    if (Error error = medium_.file->write(sieve, action.reached() - begin, begin)) {
        return error;
    }
    covered = action.covered();
    return {};
}

Error Transfer::write_sieved(const std::byte* data, MPI_Count bytes, MPI_Count first,
                             MPI_Count& done) {
    while (done < bytes) {
        std::byte* sieve = scratch_.sieve(medium_.write_sieve, view_.place(first + done));
        if (sieve == nullptr) {
            return no_buffer(medium_.write_sieve);
        }
        MPI_Count covered = 0;
        if (Error error = change_range(data + done, bytes - done, first + done, sieve, covered)) {
            return error;
        }
        done += covered;
    }
    return {};
}

Error Transfer::read_sieved(std::byte* data, MPI_Count bytes, MPI_Count first, MPI_Count& done) {
    const std::uint64_t last = view_.place(first + bytes - 1) + 1;
    while (done < bytes) {
        const std::uint64_t begin = view_.place(first + done);
        std::byte* sieve = scratch_.sieve(medium_.read_sieve, begin);
        if (sieve == nullptr) {
            return no_buffer(medium_.read_sieve);
        }
        const std::uint64_t end = std::min(last, begin + medium_.read_sieve);
        std::size_t got = 0;
        if (Error error = medium_.file->read(sieve, end - begin, begin, got)) {
            return error;
        }
        std::byte* const to = data + done;
        const auto copy = [&](std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count count,
                              MPI_Count length) {
            datatype::copy_blocks(to + at, length, sieve + (offset - begin), stride, count, length);
        };
        BlocksBefore action(begin + got, copy);
        view_.walk(first + done, bytes - done, action);
        done += action.covered();
        if (got < end - begin) {
            break; // the file ends
        }
    }
    return {};
}

} // namespace warren::io
