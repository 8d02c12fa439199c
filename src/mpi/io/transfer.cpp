#include "mpi/io/transfer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "mpi.h"
#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {

using datatype::Buffer;
using Mode = RangeGuard::Mode;

namespace {

Error no_buffer() {
    return fail(MPI_ERR_NO_MEM, "no memory for a buffer of %zu bytes", buffer_bytes);
}

const std::byte* piece_of(const Buffer& memory) {
    return static_cast<const std::byte*>(memory.type->one_piece(memory.base, memory.count));
}

// Whether the memory's pieces are worth a system call with a list of them.
bool has_long_pieces(const Buffer& memory) {
    return memory.type->size / memory.type->block_count() >= direct_piece_bytes;
}

// An action that reads or writes adjacent blocks by one call. call(offset, at, bytes): false stops.
template <typename Call>
class EachBlock {
  public:
    static constexpr bool in_order = true;
    explicit EachBlock(Call& call) : call_(call) {}

    bool enough() const { return stopped_; }

    void block(std::uint64_t offset, MPI_Count at, MPI_Count bytes) {
        if (stopped_) {
            return;
        }
        if (bytes_ > 0 && offset == offset_ + static_cast<std::uint64_t>(bytes_)) {
            bytes_ += bytes;
            return;
        }
        flush();
        offset_ = offset;
        at_ = at;
        bytes_ = bytes;
    }
    void blocks(std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count, MPI_Count count,
                MPI_Count bytes) {
        for (MPI_Count i = 0; i < count && !stopped_; ++i) {
            block(offset + static_cast<std::uint64_t>(i * stride), at + i * bytes, bytes);
        }
    }
    void scattered(std::uint64_t base, const MPI_Count* places, MPI_Count at, MPI_Count count,
                   MPI_Count bytes) {
        for (MPI_Count i = 0; i < count && !stopped_; ++i) {
            block(base + static_cast<std::uint64_t>(places[i]), at + i * bytes, bytes);
        }
    }
    void flush() {
        if (bytes_ > 0 && !stopped_) {
            stopped_ = !call_(offset_, at_, bytes_);
        }
        bytes_ = 0;
    }

  private:
    Call& call_;
    bool stopped_ = false;
    std::uint64_t offset_ = 0;
    MPI_Count at_ = 0;
    MPI_Count bytes_ = 0;
};

} // namespace

std::byte* Scratch::get(std::unique_ptr<std::byte[]>& buffer) {
    if (buffer == nullptr) {
        buffer.reset(new (std::nothrow) std::byte[buffer_bytes]);
    }
    return buffer.get();
}

bool Transfer::sieves(Sieving chosen, MPI_Count stride_limit) const {
    if (!view_.ordered() || !medium_.readable || chosen == Sieving::never) {
        return false;
    }
    return chosen == Sieving::always ||
           (view_.block_bytes() < direct_block_bytes && view_.block_stride() <= stride_limit);
}

Error Transfer::write(const Buffer& memory, MPI_Count first, MPI_Count& done) {
    done = 0;
    const MPI_Count bytes = memory.bytes();
    if (bytes == 0 || view_.empty()) {
        return {};
    }
    if (view_.contiguous()) {
        return write_block(memory, view_.place(first), done);
    }
    if (const std::byte* data = piece_of(memory)) {
        return write_blocks(data, bytes, first, done);
    }
    std::byte* packed = scratch_.packed();
    if (packed == nullptr) {
        return no_buffer();
    }
    while (done < bytes) {
        const MPI_Count now = std::min<MPI_Count>(bytes - done, buffer_bytes);
        memory.type->pack_part(memory.base, memory.count, done, now, packed);
        MPI_Count written = 0;
        Error error = write_blocks(packed, now, first + done, written);
        done += written;
        if (error) {
            return error;
        }
    }
    return {};
}

Error Transfer::write_block(const Buffer& memory, std::uint64_t offset, MPI_Count& done) {
    const MPI_Count bytes = memory.bytes();
    const RangeGuard guard(locks_, Mode::shared, offset,
                           offset + static_cast<std::uint64_t>(bytes));
    const SystemFile& file = *medium_.file;
    if (const std::byte* data = piece_of(memory)) {
        Error error = file.write(data, static_cast<std::size_t>(bytes), offset);
        done = error ? 0 : bytes;
        return error;
    }
    const bool listed = has_long_pieces(memory);
    std::byte* packed = listed ? nullptr : scratch_.packed();
    if (!listed && packed == nullptr) {
        return no_buffer();
    }
    while (done < bytes) {
        MPI_Count now = 0;
        Error error;
        const std::uint64_t place = offset + static_cast<std::uint64_t>(done);
        if (listed) {
            iovec pieces[pieces_at_once];
            const std::size_t count = memory.type->pieces(
                memory.base, memory.count, done, bytes - done, pieces, pieces_at_once, now);
            error = file.write(pieces, count, place);
        } else {
            now = std::min<MPI_Count>(bytes - done, buffer_bytes);
            memory.type->pack_part(memory.base, memory.count, done, now, packed);
            error = file.write(packed, static_cast<std::size_t>(now), place);
        }
        if (error) {
            return error;
        }
        done += now;
    }
    return {};
}

Error Transfer::write_blocks(const std::byte* data, MPI_Count bytes, MPI_Count first,
                             MPI_Count& done) {
    return sieves(medium_.sieved_writes, sieved_write_stride)
               ? write_sieved(data, bytes, first, done)
               : write_each(data, bytes, first, done);
}

Error Transfer::write_each(const std::byte* data, MPI_Count bytes, MPI_Count first,
                           MPI_Count& done) {
    Error error;
    const auto call = [&](std::uint64_t offset, MPI_Count at, MPI_Count length) {
        const RangeGuard guard(locks_, Mode::shared, offset,
                               offset + static_cast<std::uint64_t>(length));
        error = medium_.file->write(data + at, static_cast<std::size_t>(length), offset);
        if (!error) {
            done = at + length;
        }
        return !error;
    };
    EachBlock action(call);
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
    const std::uint64_t end = std::min(last, begin + buffer_bytes);
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
    std::byte* sieve = scratch_.sieve();
    if (sieve == nullptr) {
        return no_buffer();
    }
    while (done < bytes) {
        MPI_Count covered = 0;
        if (Error error = change_range(data + done, bytes - done, first + done, sieve, covered)) {
            return error;
        }
        done += covered;
    }
    return {};
}

Error Transfer::read(const Buffer& memory, MPI_Count first, MPI_Count& done) {
    done = 0;
    const MPI_Count bytes = memory.bytes();
    if (bytes == 0 || view_.empty()) {
        return {};
    }
    if (view_.contiguous()) {
        return read_block(memory, view_.place(first), done);
    }
    if (const std::byte* data = piece_of(memory)) {
        return read_blocks(const_cast<std::byte*>(data), bytes, first, done);
    }
    std::byte* packed = scratch_.packed();
    if (packed == nullptr) {
        return no_buffer();
    }
    MPI_Count now = 0;
    MPI_Count got = 0;
    while (done < bytes && got == now) {
        now = std::min<MPI_Count>(bytes - done, buffer_bytes);
        got = 0;
        Error error = read_blocks(packed, now, first + done, got);
        memory.type->unpack_part(packed, done, got, memory.base, memory.count);
        done += got;
        if (error) {
            return error;
        }
    }
    return {};
}

Error Transfer::read_block(const Buffer& memory, std::uint64_t offset, MPI_Count& done) {
    const MPI_Count bytes = memory.bytes();
    const SystemFile& file = *medium_.file;
    std::size_t got = 0;
    if (const std::byte* data = piece_of(memory)) {
        Error error =
            file.read(const_cast<std::byte*>(data), static_cast<std::size_t>(bytes), offset, got);
        done = static_cast<MPI_Count>(got);
        return error;
    }
    const bool listed = has_long_pieces(memory);
    std::byte* packed = listed ? nullptr : scratch_.packed();
    if (!listed && packed == nullptr) {
        return no_buffer();
    }
    MPI_Count now = 0;
    while (done < bytes && static_cast<MPI_Count>(got) == now) {
        Error error;
        const std::uint64_t place = offset + static_cast<std::uint64_t>(done);
        if (listed) {
            iovec pieces[pieces_at_once];
            const std::size_t count = memory.type->pieces(
                memory.base, memory.count, done, bytes - done, pieces, pieces_at_once, now);
            error = file.read(pieces, count, place, got);
        } else {
            now = std::min<MPI_Count>(bytes - done, buffer_bytes);
            error = file.read(packed, static_cast<std::size_t>(now), place, got);
            memory.type->unpack_part(packed, done, static_cast<MPI_Count>(got), memory.base,
                                     memory.count);
        }
        done += static_cast<MPI_Count>(got);
        if (error) {
            return error;
        }
    }
    return {};
}

Error Transfer::read_blocks(std::byte* data, MPI_Count bytes, MPI_Count first, MPI_Count& done) {
    return sieves(medium_.sieved_reads, sieved_read_stride) ? read_sieved(data, bytes, first, done)
                                                            : read_each(data, bytes, first, done);
}

Error Transfer::read_each(std::byte* data, MPI_Count bytes, MPI_Count first, MPI_Count& done) {
    Error error;
    const auto call = [&](std::uint64_t offset, MPI_Count at, MPI_Count length) {
        std::size_t got = 0;
        error = medium_.file->read(data + at, static_cast<std::size_t>(length), offset, got);
        done = at + static_cast<MPI_Count>(got);
        return !error && static_cast<MPI_Count>(got) == length;
    };
    EachBlock action(call);
    view_.walk(first, bytes, action);
    action.flush();
    return error;
}

Error Transfer::read_sieved(std::byte* data, MPI_Count bytes, MPI_Count first, MPI_Count& done) {
    std::byte* sieve = scratch_.sieve();
    if (sieve == nullptr) {
        return no_buffer();
    }
    const std::uint64_t last = view_.place(first + bytes - 1) + 1;
    while (done < bytes) {
        const std::uint64_t begin = view_.place(first + done);
        const std::uint64_t end = std::min(last, begin + buffer_bytes);
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
