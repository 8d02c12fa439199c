#include "mpi/io/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "mpi/coll/algorithms.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/io/access_guard.hpp"
#include "mpi/io/byte_marks.hpp"
#include "mpi/io/tiling.hpp"

namespace warren::io {

using Mode = RangeGuard::Mode;

namespace {

std::uint64_t whole_blocks(std::uint64_t bytes) {
    return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

template <typename Value>
datatype::Buffer values_at(Value* values, std::size_t count) {
    return {.base = values,
            .count = static_cast<MPI_Count>(count * sizeof(Value)),
            .type = &datatype::basic(MPI_BYTE)};
}

// Bytes of the data that lie before an offset in the file.
std::uint64_t data_before(std::span<const BlockRun> runs, std::uint64_t end) {
    std::uint64_t bytes = 0;
    for (const BlockRun& run : runs) {
        std::uint64_t offset = run.offset;
        for (std::int64_t i = 0; i < run.count; ++i) {
            if (offset >= end) {
                return bytes;
            }
            bytes += std::min(static_cast<std::uint64_t>(run.length), end - offset);
            offset += static_cast<std::uint64_t>(run.stride);
        }
    }
    return bytes;
}

} // namespace

ExchangedAccess::ExchangedAccess(message::Engine& engine, comm::Communicator& communicator,
                                 const Parts& parts, const datatype::Buffer& data, MPI_Count first)
    : engine_(engine),
      communicator_(communicator),
      parts_(parts),
      data_(data),
      bytes_(data.bytes()),
      first_(first),
      piece_(static_cast<std::byte*>(data.type->one_piece(data.base, data.count))),
      writers_(parts.writers > 0 ? std::min(parts.writers, communicator.size())
                                 : communicator.size()),
      wanted_(static_cast<std::size_t>(communicator.size())),
      asked_(wanted_.size()) {}

// Divides the file among writers. The ranks agree, because a writer may lack memory.
Error ExchangedAccess::divide(const ByteRange& all) {
    all_ = all;
    const std::uint64_t begin = all.begin / block_bytes * block_bytes;
    const auto writers = static_cast<std::uint64_t>(writers_);
    domain_bytes_ = std::min(whole_blocks((all.end - begin + writers - 1) / writers),
                             whole_blocks(parts_.domain_bytes));
    const std::uint64_t bytes = domain_bytes_ + domain_bytes_ / ByteMarks::bytes_per_mark;
    Error own;
    if (communicator_.rank() < writers_) {
        memory_ = allocate_pages(bytes);
        own = memory_ == nullptr
                  ? fail(MPI_ERR_NO_MEM, "no memory for %llu bytes of %s",
                         static_cast<unsigned long long>(bytes), parts_.medium.file->path().c_str())
                  : Error();
    }
    return coll::Collectives(engine_, communicator_)
        .agree(own, "another rank has no memory for its part of the file");
}

void ExchangedAccess::begin_round(std::uint64_t begin) {
    round_ = {begin, begin + domain_bytes_ * static_cast<std::uint64_t>(writers_)};
    const std::uint64_t own =
        begin + domain_bytes_ * static_cast<std::uint64_t>(communicator_.rank());
    domain_ =
        communicator_.rank() < writers_ ? ByteRange{own, own + domain_bytes_} : ByteRange{0, 0};
    list_runs();
}

// Goes on with the last run where blocks are as far apart as its own.
void ExchangedAccess::add_run(std::uint64_t offset, MPI_Count stride, MPI_Count count,
                              MPI_Count length) {
    if (count == 1 && !runs_.empty() && runs_.size() > wanted_runs_begin_) {
        BlockRun& last = runs_.back();
        const auto distance = static_cast<std::int64_t>(
            offset - last.offset - static_cast<std::uint64_t>(last.stride * (last.count - 1)));
        if (last.length == length && (last.count == 1 || last.stride == distance)) {
            last.stride = distance;
            ++last.count;
            return;
        }
    }
    runs_.push_back({offset, count > 1 ? stride : length, count, length});
}

// Lists what this rank wants of each domain.
void ExchangedAccess::list_runs() {
    runs_.clear();
    wanted_bytes_ = 0;
    for (int writer = 0; writer < writers_; ++writer) {
        Announcement& wanted = wanted_[static_cast<std::size_t>(writer)];
        const std::size_t before = wanted_runs_begin_ = runs_.size();
        const std::uint64_t end =
            round_.begin + domain_bytes_ * static_cast<std::uint64_t>(writer + 1);
        const MPI_Count from = done_ + wanted_bytes_;
        MPI_Count covered = 0;
        if (from < bytes_) {
            const auto add = [&](std::uint64_t offset, MPI_Count stride, MPI_Count, MPI_Count count,
                                 MPI_Count length) { add_run(offset, stride, count, length); };
            BlocksBefore action(end, add);
            parts_.view.walk(first_ + from, bytes_ - from, action);
            covered = action.covered();
        }
        wanted = {.runs = runs_.size() - before, .bytes = static_cast<std::uint64_t>(covered)};
        wanted_bytes_ += covered;
    }
}

Error ExchangedAccess::send(const std::vector<Buffer>& out, const std::vector<Buffer>& in) {
    coll::Immediate steps(engine_, communicator_);
    steps.name(coll::Tag::alltoall);
    coll::alltoall_batches(steps, coll::Blocks(out.data()), coll::Blocks(in.data()));
    return steps.end();
}

// Tells the writers what this rank wants; a writer learns what all want.
Error ExchangedAccess::announce() {
    if (Error error = coll::Collectives(engine_, communicator_)
                          .alltoall(coll::Blocks(values_at(wanted_.data(), 1)),
                                    coll::Blocks(values_at(asked_.data(), 1)))) {
        return error;
    }
    std::uint64_t runs = 0;
    Error refused;
    for (const Announcement& asked : asked_) {
        if (!asked.fits(domain_) && !refused) {
            refused = fail(MPI_ERR_INTERN, "another rank wants more of a domain of %s than it has",
                           parts_.medium.file->path().c_str());
        }
        runs += asked.runs;
    }
    // The ranks agree, because nobody receives the runs of a refused announcement.
    if (Error error = coll::Collectives(engine_, communicator_)
                          .agree(refused, "another rank refuses a part of the access")) {
        return error;
    }
    asked_runs_.resize(runs);
    std::vector<Buffer> out(ranks());
    std::vector<Buffer> in(ranks());
    BlockRun* own = runs_.data();
    BlockRun* its = asked_runs_.data();
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
        out[rank] = values_at(own, wanted_[rank].runs);
        in[rank] = values_at(its, asked_[rank].runs);
        own += wanted_[rank].runs;
        its += asked_[rank].runs;
    }
    return send(out, in);
}

// --- A writer

bool ExchangedAccess::is_valid(const BlockRun& run) const {
    const auto length = static_cast<std::uint64_t>(run.length);
    if (run.length <= 0 || run.count <= 0 || run.stride < run.length ||
        run.offset < domain_.begin || run.offset >= domain_.end ||
        length > domain_.end - run.offset) {
        return false;
    }
    const std::uint64_t room = domain_.end - run.offset - length;
    return static_cast<std::uint64_t>(run.count - 1) <=
           room / static_cast<std::uint64_t>(run.stride);
}

// Also finds from where to where they lead.
Error ExchangedAccess::check_runs() {
    asked_range_ = {no_end, 0};
    const BlockRun* run = asked_runs_.data();
    for (const Announcement& asked : asked_) {
        std::uint64_t bytes = 0;
        for (std::uint64_t i = 0; i < asked.runs; ++i, ++run) {
            if (!is_valid(*run)) {
                return fail(MPI_ERR_INTERN, "another rank names blocks outside of a domain of %s",
                            parts_.medium.file->path().c_str());
            }
            bytes += static_cast<std::uint64_t>(run->count * run->length);
            const std::uint64_t last =
                run->offset + static_cast<std::uint64_t>(run->stride * (run->count - 1));
            asked_range_.begin = std::min(asked_range_.begin, run->offset);
            asked_range_.end =
                std::max(asked_range_.end, last + static_cast<std::uint64_t>(run->length));
        }
        if (bytes != asked.bytes) {
            return fail(MPI_ERR_INTERN, "another rank names other blocks of %s than it has",
                        parts_.medium.file->path().c_str());
        }
    }
    return {};
}

// copy(run, data): of the runs of all ranks, with the place of their data.
template <typename Copy>
void ExchangedAccess::each_run(Copy copy) {
    std::byte* data = asked_data_.data();
    for (const BlockRun& run : asked_runs_) {
        copy(run, data);
        data += run.count * run.length;
    }
}

// Writes what lies between holes, piece by piece.
Error ExchangedAccess::write_pieces() {
    const ByteMarks marks(memory_.get() + domain_bytes_);
    const std::uint64_t last = asked_range_.end - domain_.begin;
    std::uint64_t at = asked_range_.begin - domain_.begin;
    marks.clear(at / ByteMarks::bytes_per_mark * ByteMarks::bytes_per_mark, last);
    each_run([&](const BlockRun& run, const std::byte*) {
        std::uint64_t begin = run.offset - domain_.begin;
        for (std::int64_t i = 0; i < run.count; ++i) {
            marks.mark(begin, begin + static_cast<std::uint64_t>(run.length));
            begin += static_cast<std::uint64_t>(run.stride);
        }
    });
    while (at < last) {
        const std::uint64_t end = marks.change(at, last);
        if (marks.has(at)) {
            if (Error error =
                    parts_.medium.file->write(memory_.get() + at, end - at, domain_.begin + at)) {
                return error;
            }
        }
        at = end;
    }
    return {};
}

Error ExchangedAccess::write_domain() {
    if (asked_runs_.empty()) {
        return {};
    }
    Tiling tiling;
    each_run([&](const BlockRun& run, const std::byte* data) {
        datatype::copy_blocks(memory_.get() + (run.offset - domain_.begin), run.stride, data,
                              run.length, run.count, run.length);
        std::uint64_t begin = run.offset;
        for (std::int64_t i = 0; i < run.count; ++i) {
            tiling.add(begin, begin + static_cast<std::uint64_t>(run.length));
            begin += static_cast<std::uint64_t>(run.stride);
        }
    });
    const Medium& medium = parts_.medium;
    const AccessGuard guard(medium, false, Direction::write, asked_range_);
    const RangeGuard own(AccessGuard::is_needed(medium, false) ? nullptr : &medium.locks,
                         Mode::shared, asked_range_.begin, asked_range_.end);
    if (!tiling.covers(asked_range_.begin, asked_range_.end)) {
        return write_pieces();
    }
    return medium.file->write(memory_.get() + (asked_range_.begin - domain_.begin),
                              asked_range_.bytes(), asked_range_.begin);
}

// Reads all that is wanted of the domain, and what lies between.
Error ExchangedAccess::read_domain(std::uint64_t& file_end) {
    file_end = no_end;
    if (asked_runs_.empty()) {
        return {};
    }
    const AccessGuard guard(parts_.medium, false, Direction::read, asked_range_);
    std::size_t got = 0;
    Error error = parts_.medium.file->read(memory_.get() + (asked_range_.begin - domain_.begin),
                                           asked_range_.bytes(), asked_range_.begin, got);
    if (got < asked_range_.bytes()) {
        file_end = asked_range_.begin + got;
    }
    return error;
}

// `file_end`: of this rank's domain, then of all.
Error ExchangedAccess::share_notes(Error own, std::uint64_t& file_end) {
    Note note = {.end = file_end, .error_class = own ? own.error_class() : MPI_SUCCESS};
    std::vector<Note> notes(ranks());
    Error error = coll::Collectives(engine_, communicator_)
                      .allgather(values_at(&note, 1), coll::Blocks(values_at(notes.data(), 1)));
    if (own || error) {
        if (own) {
            error.drop();
        }
        return own ? own : error;
    }
    for (const Note& its : notes) {
        if (its.error_class != MPI_SUCCESS) {
            return fail(static_cast<int>(its.error_class),
                        "another rank could not read its part of %s",
                        parts_.medium.file->path().c_str());
        }
        file_end = std::min(file_end, its.end);
    }
    return {};
}

// --- Data

// The data of the round, or room for it, in one piece.
std::byte* ExchangedAccess::memory_of_round() {
    if (piece_ != nullptr) {
        return piece_ + done_;
    }
    packed_.resize(static_cast<std::size_t>(wanted_bytes_));
    return packed_.data();
}

void ExchangedAccess::make_room_for_asked() {
    std::uint64_t bytes = 0;
    for (const Announcement& asked : asked_) {
        bytes += asked.bytes;
    }
    asked_data_.resize(bytes);
}

Error ExchangedAccess::write(const ByteRange& all) {
    Error own;
    if (Error error = divide(all)) {
        return error;
    }
    std::vector<Buffer> out(ranks());
    std::vector<Buffer> in(ranks());
    for (std::uint64_t begin = all.begin / block_bytes * block_bytes; begin < all.end;
         begin = round_.end) {
        begin_round(begin);
        if (Error error = announce()) {
            own.drop();
            return error;
        }
        std::byte* data = memory_of_round();
        if (piece_ == nullptr) {
            data_.type->pack_part(data_.base, data_.count, done_, wanted_bytes_, data);
        }
        done_ += wanted_bytes_;
        // (Nothing is taken that has not been checked; but it is received, or its sender waits.)
        Error wrong = check_runs();
        make_room_for_asked();
        std::byte* its = asked_data_.data();
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
            out[rank] = values_at(data, wanted_[rank].bytes);
            in[rank] = values_at(its, asked_[rank].bytes);
            data += wanted_[rank].bytes;
            its += asked_[rank].bytes;
        }
        if (Error error = send(out, in)) {
            own.drop();
            wrong.drop();
            return error;
        }
        if (own) {
            wrong.drop(); // it writes no more
        } else {
            own = wrong ? wrong : write_domain();
        }
    }
    return coll::Collectives(engine_, communicator_)
        .agree(own, "another rank could not write its part of the file");
}

Error ExchangedAccess::read(const ByteRange& all, MPI_Count& done) {
    done = 0;
    if (Error error = divide(all)) {
        return error;
    }
    std::vector<Buffer> out(ranks());
    std::vector<Buffer> in(ranks());
    for (std::uint64_t begin = all.begin / block_bytes * block_bytes; begin < all.end;
         begin = round_.end) {
        begin_round(begin);
        if (Error error = announce()) {
            return error;
        }
        std::uint64_t file_end = no_end;
        Error own = check_runs();
        own = own ? own : read_domain(file_end);
        if (Error error = share_notes(own, file_end)) {
            return error;
        }
        make_room_for_asked();
        each_run([&](const BlockRun& run, std::byte* data) {
            datatype::copy_blocks(data, run.length, memory_.get() + (run.offset - domain_.begin),
                                  run.stride, run.count, run.length);
        });
        std::byte* const data = memory_of_round();
        MPI_Count got = 0;
        const BlockRun* own_runs = runs_.data();
        const BlockRun* its_runs = asked_runs_.data();
        std::byte* its = asked_data_.data();
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
            const Announcement& wanted = wanted_[rank];
            const Announcement& asked = asked_[rank];
            // Where the file ends, so do the data of each rank.
            const bool ends = file_end < round_.end;
            const std::uint64_t now =
                ends ? data_before({own_runs, wanted.runs}, file_end) : wanted.bytes;
            out[rank] =
                values_at(its, ends ? data_before({its_runs, asked.runs}, file_end) : asked.bytes);
            in[rank] = values_at(data + got, now);
            got += static_cast<MPI_Count>(now);
            own_runs += wanted.runs;
            its_runs += asked.runs;
            its += asked.bytes;
        }
        if (Error error = send(out, in)) {
            return error;
        }
        if (piece_ == nullptr) {
            data_.type->unpack_part(data, done_, got, data_.base, data_.count);
        }
        done_ += got;
        done = done_;
        if (file_end < round_.end) {
            break;
        }
    }
    return {};
}

} // namespace warren::io
