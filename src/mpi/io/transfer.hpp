// Transfer: reads and writes bytes of a view's data from and to one rank's memory, for which
// nobody has to wait but those who lock the same bytes.
//
// Blocks of the file that are long, or far apart, are read and written one by one. Others are
// sieved: the file from the first to the last is read into a buffer, changed there and written
// back, under an exclusive lock of these bytes (range_locks.hpp). Thread rule: any thread, one at a
// time per Scratch; no state but in the file and the locks.
#pragma once

#include <cstddef>
#include <span>
#include <sys/uio.h>

#include "base/error.hpp"
#include "mpi/datatype/buffer.hpp"
#include "mpi/io/logged_write.hpp"
#include "mpi/io/page_memory.hpp"
#include "mpi/io/range_locks.hpp"
#include "mpi/io/system_file.hpp"
#include "mpi/io/tuning.hpp"
#include "mpi/io/view.hpp"

namespace warren::io {

// Buffers, made at their first use and kept: pages of new memory cost more than their data. They
// are where in a page the offset of the file is, so that copies are fast (page_copies.hpp).
class Scratch {
  public:
    // A buffer of at least `bytes`, or null if memory is out.
    std::byte* sieve(std::size_t bytes = buffer_bytes, std::uint64_t offset = 0) {
        return sieve_.get(bytes, offset);
    }
    std::byte* packed(std::uint64_t offset = 0) { return packed_.get(buffer_bytes, offset); }
    std::byte* bounce(std::uint64_t offset) { return bounce_.get(bounce_bytes, offset); }

  private:
    class Part {
      public:
        std::byte* get(std::size_t bytes, std::uint64_t offset);

      private:
        PageMemory memory_;
        std::size_t bytes_ = 0;
    };
    Part sieve_;
    Part packed_;
    Part bounce_;
};

enum class Direction : std::uint8_t { read, write };

// Whether something is done that a hint asks for or forbids.
enum class Choice : std::uint8_t { automatic, always, never };

// Which accesses lock their bytes by the system, for ranks of other nodes.
enum class SystemLocks : std::uint8_t { none, atomic, always };

// The file, its locks and its hints: shared by all transfers of an open file.
struct Medium {
    const SystemFile* file = nullptr;
    RangeLocks locks;
    SystemLocks system_locks = SystemLocks::none;
    WriteLog log;         // of this rank, in atomic mode
    bool readable = true; // a file open for writing only may not be
    Choice sieved_reads = Choice::automatic;
    Choice sieved_writes = Choice::automatic;
    // Bytes of the file that a sieve holds, up to largest_sieve.
    std::uint64_t read_sieve = buffer_bytes;
    std::uint64_t write_sieve = buffer_bytes;
};

class Transfer {
  public:
    // `locked`: the caller holds a lock of all bytes.
    Transfer(const Medium& medium, const View& view, Scratch& scratch, bool locked)
        : medium_(medium),
          view_(view),
          scratch_(scratch),
          locks_(locked ? nullptr : &medium.locks) {}

    // Moves all bytes of the buffer, from byte `first` of the view's data on. `done`: bytes before
    // the error, or of a read before the end of the file.
    Error move(Direction direction, const datatype::Buffer& memory, MPI_Count first,
               MPI_Count& done);

  private:
    bool sieves(Direction direction) const;
    bool asks_ahead(Direction direction) const;
    RangeGuard guard(Direction direction, std::uint64_t offset, MPI_Count bytes) const;
    Error call(Direction direction, std::byte* data, MPI_Count bytes, std::uint64_t offset,
               MPI_Count& moved) const;
    Error call(Direction direction, std::span<iovec> pieces, MPI_Count bytes, std::uint64_t offset,
               MPI_Count& moved) const;
    Error read_by_bounce(std::byte* data, MPI_Count bytes, std::uint64_t offset, std::byte* bounce,
                         MPI_Count& moved) const;
    // In one block of the file.
    Error move_block(Direction direction, const datatype::Buffer& memory, std::uint64_t offset,
                     MPI_Count& done);
    // These move contiguous data.
    Error move_blocks(Direction direction, std::byte* data, MPI_Count bytes, MPI_Count first,
                      MPI_Count& done);
    Error move_each(Direction direction, std::byte* data, MPI_Count bytes, MPI_Count first,
                    MPI_Count& done);
    Error write_sieved(const std::byte* data, MPI_Count bytes, MPI_Count first, MPI_Count& done);
    Error read_sieved(std::byte* data, MPI_Count bytes, MPI_Count first, MPI_Count& done);
    Error change_range(const std::byte* data, MPI_Count bytes, MPI_Count first, std::byte* sieve,
                       MPI_Count& covered);

    const Medium& medium_;
    const View& view_;
    Scratch& scratch_;
    const RangeLocks* const locks_;
};

} // namespace warren::io
