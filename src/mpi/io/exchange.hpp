// ExchangedAccess: a collective access by messages, of ranks that share no memory, or to a file
// system where nobody may write bytes that are not his.
//
// Each round handles a stretch of the file, of which each writer has a domain: some whole blocks. A
// rank tells each writer which bytes of its domain it wants (BlockRun) and sends or gets their
// data. A writer puts the data of a domain together, and reads or writes it by few large calls.
// Where a domain has holes it writes what is between them, by a call for each piece.
//
// Thread rule: under the rank's lock, which waits release. Invariants
//  1. A byte is written by the writer of its domain only.
//  2. What another rank says of its blocks is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/datatype/buffer.hpp"
#include "mpi/io/transfer.hpp"
#include "mpi/io/view.hpp"
#include "mpi/message/engine.hpp"

namespace warren::io {

// Evenly spaced blocks of a domain; what a rank has of the data follows their order.
struct BlockRun {
    std::uint64_t offset;
    std::int64_t stride;
    std::int64_t count;
    std::int64_t length;
};

class ExchangedAccess {
  public:
    struct Parts {
        const Medium& medium;
        const View& view;
        std::uint64_t domain_bytes; // at most
        int writers;                // so many first ranks at most; 0: all
    };
    ExchangedAccess(message::Engine& engine, comm::Communicator& communicator, const Parts& parts,
                    const datatype::Buffer& data, MPI_Count first);

    // `all`: from the first to the last byte that any rank wants.
    Error write(const ByteRange& all);
    Error read(const ByteRange& all, MPI_Count& done);

    // How much of a writer's domain a rank wants.
    struct Announcement {
        std::uint64_t runs;
        std::uint64_t bytes;

        // Whether a domain may have so much: a run has a byte or more, and none is named twice.
        bool fits(const ByteRange& domain) const {
            return bytes <= domain.bytes() && runs <= bytes && (runs != 0 || bytes == 0);
        }
    };

  private:
    using Buffer = datatype::Buffer;

    // How reading a domain has ended.
    struct Note {
        std::uint64_t end; // of the file, where it has been seen
        std::int64_t error_class;
    };

    std::size_t ranks() const { return wanted_.size(); }
    Error divide(const ByteRange& all);
    void begin_round(std::uint64_t begin);
    void list_runs();
    void add_run(std::uint64_t offset, MPI_Count stride, MPI_Count count, MPI_Count length);
    Error announce();
    Error send(const std::vector<Buffer>& out, const std::vector<Buffer>& in);
    std::byte* memory_of_round();

    // --- Of a writer
    bool is_valid(const BlockRun& run) const;
    Error check_runs();
    template <typename Copy>
    void each_run(Copy copy);
    void make_room_for_asked();
    Error write_domain();
    Error write_pieces();
    Error read_domain(std::uint64_t& file_end);
    Error share_notes(Error own, std::uint64_t& file_end);

    message::Engine& engine_;
    comm::Communicator& communicator_;
    const Parts parts_;
    const Buffer data_;
    const MPI_Count bytes_;
    const MPI_Count first_;
    std::byte* const piece_; // the data's memory, if it has no gaps
    const int writers_;
    ByteRange all_ = {0, 0};
    std::uint64_t domain_bytes_ = 0; // the same at all ranks

    // The rest changes with each round.
    ByteRange round_ = {0, 0};
    MPI_Count done_ = 0;                // before it
    std::vector<Announcement> wanted_;  // by this rank, by writers
    std::vector<BlockRun> runs_;        // for all writers, one after the other
    std::size_t wanted_runs_begin_ = 0; // of the writer whose runs are being listed
    MPI_Count wanted_bytes_ = 0;
    std::vector<std::byte> packed_;
    // A writer has a domain, and what all ranks want of it, one after the other.
    ByteRange domain_ = {0, 0};
    std::vector<Announcement> asked_;
    std::vector<BlockRun> asked_runs_;
    std::vector<std::byte> asked_data_;
    ByteRange asked_range_ = {0, 0};
    PageMemory memory_; // of the domain, and marks
};

} // namespace warren::io
