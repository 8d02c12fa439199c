// Collective accesses through a staging area in the node's memory, for data whose blocks in the
// file are small and those of many ranks together dense.
//
//     window of the file:   |  half 0  |  half 1  |  half 0  |  …
//
// Each round handles a window. Of a write, all ranks copy what they have of it into a half of the
// staging area; after a barrier each writes a part of the window to the file, with few large calls,
// while others already fill the other half. Of a read it is the other way round. So a half is used
// again when all have passed the barrier of the round between: one barrier per round.
//
// A window with holes (tiling.hpp) must not destroy what the file has there: ranks mark the bytes
// that they have, and each part's holes are read from the file, under an exclusive lock.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/page.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/io/byte_marks.hpp"
#include "mpi/io/exchange.hpp"
#include "mpi/io/file.hpp"
#include "mpi/io/tiling.hpp"
#include "mpi/rma/heap.hpp"

namespace warren::io {

using Mode = RangeGuard::Mode;

namespace {

std::uint64_t staging_bytes(std::uint64_t half) {
    return 2 * half + half / ByteMarks::bytes_per_mark;
}

// Copies from `file` to `staging` the bytes of [begin, end) that nobody has marked.
void fill_holes(std::byte* staging, const ByteMarks& marks, const std::byte* file,
                std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t at = begin; at < end;) {
        const std::uint64_t next = marks.change(at, end);
        if (!marks.has(at)) {
            std::memcpy(staging + at, file + (at - begin), next - at);
        }
        at = next;
    }
}

} // namespace

// One staged access of this rank.
class StagedAccess {
  public:
    struct Parts {
        const comm::Communicator& communicator;
        ControlBlock control;
        const Medium& medium;
        const View& view;
        Scratch& scratch;
        std::byte* staging;
        std::uint64_t half;
        int writers;
    };
    StagedAccess(message::Engine& engine, comm::Communicator& communicator, const Parts& parts,
                 const Buffer& data, MPI_Count first)
        : engine_(engine),
          communicator_(communicator),
          parts_(parts),
          data_(data),
          bytes_(data.bytes()),
          first_(first),
          piece_(static_cast<std::byte*>(data.type->one_piece(data.base, data.count))) {}

    Error write(const ByteRange& all);
    Error read(const ByteRange& all, MPI_Count& done);

  private:
    // Own and others' bytes of a round: the window in the file.
    struct Window {
        std::uint64_t begin;
        std::uint64_t end;
        std::uint64_t half_begin; // of the file, where the half of the staging area begins
        int turn;                 // which half

        std::uint64_t bytes() const { return end - begin; }
    };
    Window window_of(const ByteRange& all, std::uint64_t begin, int turn) const {
        return {std::max(all.begin, begin), std::min(all.end, begin + parts_.half), begin, turn};
    }
    std::byte* place(const Window& window, std::uint64_t offset) const {
        return parts_.staging + static_cast<std::uint64_t>(window.turn) * parts_.half +
               (offset - window.half_begin);
    }
    ByteMarks marks() const { return ByteMarks(parts_.staging + 2 * parts_.half); }
    ByteRange part_of(const Window& window) const;
    RoundNote& note(int rank, int turn) const { return parts_.control.rank(rank).notes[turn]; }
    RoundNote& own_note(int turn) const { return note(communicator_.rank(), turn); }
    Error barrier() const { return coll::Collectives(engine_, communicator_).barrier(); }
    int failure(int turn) const;

    template <typename Copy>
    MPI_Count each_block(MPI_Count from, MPI_Count bytes, std::uint64_t end, Copy copy) const;
    template <typename Copy>
    void exchange(std::uint64_t end, bool writes, Copy copy);
    void scatter(const Window& window, Tiling& tiling);
    void gather(const Window& window, std::uint64_t end);
    Error mark_window(const Window& window, MPI_Count from);
    Error write_part(const Window& window, bool with_holes);

    message::Engine& engine_;
    comm::Communicator& communicator_;
    const Parts parts_;
    const Buffer data_;
    const MPI_Count bytes_;
    const MPI_Count first_;
    std::byte* const piece_; // the data's memory, if it has no gaps
    MPI_Count done_ = 0;
};

// The part of a window that this rank reads or writes: whole blocks of the file.
ByteRange StagedAccess::part_of(const Window& window) const {
    const auto ranks = static_cast<std::uint64_t>(communicator_.size());
    const std::uint64_t writers =
        parts_.writers > 0 ? std::min(static_cast<std::uint64_t>(parts_.writers), ranks) : ranks;
    const std::uint64_t blocks = (window.end - window.half_begin + block_bytes - 1) / block_bytes;
    const std::uint64_t each = (blocks + writers - 1) / writers * block_bytes;
    const std::uint64_t begin =
        window.half_begin + static_cast<std::uint64_t>(communicator_.rank()) * each;
    const std::uint64_t from = std::clamp(begin, window.begin, window.end);
    return {from, std::clamp(begin + each, from, window.end)};
}

// The class of the first error that any rank has noted.
int StagedAccess::failure(int turn) const {
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        if (const int error_class = note(rank, turn).error_class; error_class != MPI_SUCCESS) {
            return error_class;
        }
    }
    return MPI_SUCCESS;
}

template <typename Copy>
MPI_Count StagedAccess::each_block(MPI_Count from, MPI_Count bytes, std::uint64_t end,
                                   Copy copy) const {
    BlocksBefore action(end, copy);
    parts_.view.walk(first_ + from, bytes, action);
    return action.covered();
}

// Copies this rank's data that lies before `end`. copy: as BlocksBefore's, with the data's memory.
template <typename Copy>
void StagedAccess::exchange(std::uint64_t end, bool writes, Copy copy) {
    const auto ignore = [](std::uint64_t, MPI_Count, MPI_Count, MPI_Count, MPI_Count) {};
    while (done_ < bytes_) {
        MPI_Count now = bytes_ - done_;
        std::byte* memory = nullptr;
        if (piece_ != nullptr) {
            memory = piece_ + done_;
        } else {
            // As much as there is a buffer for is packed or unpacked.
            now = each_block(done_, std::min<MPI_Count>(now, buffer_bytes), end, ignore);
            memory = parts_.scratch.packed();
            if (now > 0 && writes) {
                data_.type->pack_part(data_.base, data_.count, done_, now, memory);
            }
        }
        if (now == 0) {
            break;
        }
        const MPI_Count covered =
            each_block(done_, now, end,
                       [&](std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count count,
                           MPI_Count length) { copy(offset, stride, memory + at, count, length); });
        if (piece_ == nullptr && !writes) {
            data_.type->unpack_part(memory, done_, covered, data_.base, data_.count);
        }
        done_ += covered;
        if (piece_ != nullptr) {
            break;
        }
    }
}

void StagedAccess::scatter(const Window& window, Tiling& tiling) {
    exchange(window.end, true,
             [&](std::uint64_t offset, MPI_Count stride, const std::byte* memory, MPI_Count count,
                 MPI_Count length) {
                 datatype::copy_blocks(place(window, offset), stride, memory, length, count,
                                       length);
                 for (MPI_Count i = 0; i < count; ++i) {
                     tiling.add(offset, offset + static_cast<std::uint64_t>(length));
                     offset += static_cast<std::uint64_t>(stride);
                 }
             });
}

void StagedAccess::gather(const Window& window, std::uint64_t end) {
    exchange(end, false,
             [&](std::uint64_t offset, MPI_Count stride, std::byte* memory, MPI_Count count,
                 MPI_Count length) {
                 datatype::copy_blocks(memory, length, place(window, offset), stride, count,
                                       length);
             });
}

// Marks this rank's bytes of the window, which begin at byte `from` of its data. All ranks do.
Error StagedAccess::mark_window(const Window& window, MPI_Count from) {
    const ByteRange part = part_of(window);
    // (Parts are whole bytes of the map, but the first and the last.)
    const ByteMarks all_marks = marks();
    all_marks.clear(part.begin - window.half_begin, part.end - window.half_begin);
    if (Error error = barrier()) {
        return error;
    }
    each_block(
        from, done_ - from, window.end,
        [&](std::uint64_t offset, MPI_Count stride, MPI_Count, MPI_Count count, MPI_Count length) {
            std::uint64_t begin = offset - window.half_begin;
            for (MPI_Count i = 0; i < count; ++i) {
                all_marks.mark(begin, begin + static_cast<std::uint64_t>(length));
                begin += static_cast<std::uint64_t>(stride);
            }
        });
    return barrier();
}

Error StagedAccess::write_part(const Window& window, bool with_holes) {
    const ByteRange part = part_of(window);
    if (part.bytes() == 0) {
        return {};
    }
    const SystemFile& file = *parts_.medium.file;
    const RangeGuard guard(&parts_.medium.locks, with_holes ? Mode::exclusive : Mode::shared,
                           part.begin, part.end);
    if (with_holes) {
        std::byte* sieve = parts_.scratch.sieve();
        for (std::uint64_t at = part.begin; at < part.end; at += buffer_bytes) {
            const std::uint64_t end = std::min(part.end, at + buffer_bytes);
            std::size_t got = 0;
            if (Error error = file.read(sieve, end - at, at, got)) {
                return error;
            }
            std::memset(sieve + got, 0, end - at - got);
            fill_holes(place(window, window.half_begin), marks(), sieve, at - window.half_begin,
                       end - window.half_begin);
        }
    }
    return file.write(place(window, part.begin), part.bytes(), part.begin);
}

Error StagedAccess::write(const ByteRange& all) {
    Error own;
    int failed = MPI_SUCCESS; // the class of any rank's error, once all know it
    int turn = 0;
    std::uint64_t begin = all.begin / block_bytes * block_bytes;
    for (bool first = true; begin < all.end; begin += parts_.half, turn ^= 1, first = false) {
        const Window window = window_of(all, begin, turn);
        const MPI_Count from = done_;
        Tiling tiling;
        scatter(window, tiling);
        own_note(turn).value = tiling.sum();
        if (Error error = barrier()) {
            own.drop();
            return error;
        }
        failed = first ? MPI_SUCCESS : failure(turn ^ 1);
        if (failed != MPI_SUCCESS) {
            break;
        }
        Tiling together;
        for (int rank = 0; rank < communicator_.size(); ++rank) {
            together.add(note(rank, turn).value);
        }
        const bool holes = !together.covers(window.begin, window.end);
        Error error = holes ? mark_window(window, from) : Error();
        own = error ? error : write_part(window, holes);
        own_note(turn).error_class = own ? own.error_class() : MPI_SUCCESS;
    }
    if (failed == MPI_SUCCESS) {
        Error error = barrier();
        failed = error ? error.error_class() : failure(turn ^ 1);
        error.drop();
    }
    return own || failed == MPI_SUCCESS
               ? own
               : fail(failed, "another rank could not write its part of %s",
                      parts_.medium.file->path().c_str());
}

Error StagedAccess::read(const ByteRange& all, MPI_Count& done) {
    int turn = 0;
    std::uint64_t begin = all.begin / block_bytes * block_bytes;
    for (; begin < all.end; begin += parts_.half, turn ^= 1) {
        const Window window = window_of(all, begin, turn);
        const ByteRange part = part_of(window);
        std::size_t got = 0;
        Error own =
            parts_.medium.file->read(place(window, part.begin), part.bytes(), part.begin, got);
        own_note(turn) = {.value = got < part.bytes() ? part.begin + got : no_end,
                          .error_class = own ? own.error_class() : MPI_SUCCESS,
                          .unused = 0};
        if (Error error = barrier()) {
            own.drop();
            return error;
        }
        const int failed = failure(turn);
        if (failed != MPI_SUCCESS) {
            done = done_;
            return own ? own
                       : fail(failed, "another rank could not read its part of %s",
                              parts_.medium.file->path().c_str());
        }
        std::uint64_t end = window.end;
        for (int rank = 0; rank < communicator_.size(); ++rank) {
            end = std::min(end, note(rank, turn).value);
        }
        gather(window, end);
        if (end < window.end) {
            break; // the file ends
        }
    }
    done = done_;
    return {};
}

// Whether this rank has what a staged access needs: it fills holes with what it reads.
bool File::may_stage(bool writes) {
    return !staging_refused_ && !(writes && !medium_.readable) && scratch_.packed() != nullptr &&
           scratch_.sieve() != nullptr;
}

// This rank's part of the next collective access; see AccessPlan.
AccessPlan& File::next_plan(int& turn) {
    turn = static_cast<int>(plans_made_++ & 1);
    AccessPlan& own = control_.rank(communicator_.rank()).plans[turn];
    own = {};
    return own;
}

// Whether all ranks that have come have made the same kind of access; an error at all of them else.
Error File::check_parts(int turn) const {
    constexpr const char* names[] = {"", "reading", "writing", "reading in order",
                                     "writing in order"};
    Part first = Part::unknown;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        const Part its = control_.rank(rank).plans[turn].part;
        first = first != Part::unknown ? first : its;
        if (its != Part::unknown && its != first) {
            return fail(
                MPI_ERR_OTHER, "the ranks' accesses to %s do not match: one is %s, another %s",
                path().c_str(), names[static_cast<int>(first)], names[static_cast<int>(its)]);
        }
    }
    return {};
}

// Tells the others what this rank wants. `staged`: all together take the staging area.
Error File::make_plan(const Access& access, MPI_Count bytes, Error refused, bool& staged,
                      ByteRange& all) {
    int turn = 0;
    const bool writes = access.direction == Direction::write;
    AccessPlan& own = next_plan(turn);
    own.refused = refused ? refused.error_class() : MPI_SUCCESS;
    own.part = refused ? Part::unknown : writes ? Part::writes : Part::reads;
    const Choice wanted = writes ? hints.staged_writes : hints.staged_reads;
    own.stageable = wanted == Choice::always ? Stageable::always : Stageable::if_worth;
    if (!refused && bytes > 0 && !view_->empty()) {
        const ByteRange range = view_->ordered() ? view_->range(access.first, bytes) : ByteRange{};
        own.begin = range.begin;
        own.end = range.end;
        own.bytes = static_cast<std::uint64_t>(bytes);
        own.block_bytes = view_->contiguous()
                              ? own.bytes
                              : static_cast<std::uint64_t>(std::min(view_->block_bytes(), bytes));
        if (!view_->ordered()) {
            own.stageable = Stageable::no;
        }
    }
    if (wanted == Choice::never || atomic_ || (!is_shared_elsewhere() && !may_stage(writes))) {
        own.stageable = Stageable::no;
    }
    Error told = tell_all(&own, sizeof own);
    if (told) {
        refused.drop();
        return told;
    }
    told = check_parts(turn);
    if (told && !refused) {
        return told;
    }
    told.drop();
    all = {no_end, 0};
    std::uint64_t sum = 0;
    std::uint64_t spans = 0;
    std::uint64_t longest = 0;
    Stageable stageable = Stageable::always;
    int failed = MPI_SUCCESS;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        const AccessPlan& plan = control_.rank(rank).plans[turn];
        failed = failed != MPI_SUCCESS ? failed : plan.refused;
        stageable = std::min(stageable, plan.stageable);
        if (plan.bytes > 0) {
            all = {std::min(all.begin, plan.begin), std::max(all.end, plan.end)};
            sum += plan.bytes;
            spans += plan.end - plan.begin;
            longest = std::max(longest, plan.block_bytes);
        }
    }
    if (refused) {
        return refused;
    }
    if (failed != MPI_SUCCESS) {
        return fail(failed, "another rank can't take part in the access to %s", path().c_str());
    }
    const std::uint64_t unstaged =
        writes || is_shared_elsewhere() ? unstaged_block_bytes : unstaged_read_bytes;
    // Ranges that don't interleave are each written at once.
    const bool can =
        stageable != Stageable::no && all.bytes() / staged_density <= sum && spans > all.bytes();
    staged = can && (stageable == Stageable::always || (sum >= staged_bytes && longest < unstaged));
    return {};
}

// Collective. Leaves staging_refused_ if the area can't be had at all ranks.
Error File::prepare_staging() {
    struct Told {
        std::uint64_t extent;
        std::uint64_t half;
    } told = {0, hints.staging_half};
    const node::Segment& segment = engine_.rank().segment;
    if (communicator_.rank() == 0) {
        const std::uint64_t bytes = staging_bytes(told.half);
        rma::WindowHeap heap;
        Error error = rma::WindowHeap::open(segment, engine_.rank().index, heap);
        error = error ? error : heap.take(bytes, told.extent);
        error = error ? error : rma::WindowHeap::commit(segment, told.extent, bytes);
        if (error && told.extent != 0) {
            heap.give_back(std::exchange(told.extent, 0));
        }
        error.drop(); // then without
    }
    const Buffer buffer = {.base = &told, .count = sizeof told, .type = &datatype::basic(MPI_BYTE)};
    if (Error error = coll::Collectives(engine_, communicator_).bcast(buffer, 0)) {
        return error;
    }
    staging_extent_ = told.extent;
    staging_half_ = told.half;
    staging_refused_ = told.extent == 0;
    if (staging_refused_) {
        return {};
    }
    Error unmapped = rma::SharedPart::map(segment, told.extent,
                                          whole_pages(staging_bytes(told.half)), staging_part_);
    std::int64_t refusals = unmapped ? 1 : 0;
    unmapped.drop(); // nobody uses what one rank can't map
    Error error = coll::Collectives(engine_, communicator_).agree({}, "", {&refusals, 1});
    if (error || refusals != 0) {
        staging_refused_ = true;
        staging_part_.drop();
        const std::uint64_t extent = std::exchange(staging_extent_, 0);
        if (communicator_.rank() == 0) {
            give_back(extent);
        }
    }
    return error;
}

// Moves the pointer back: the access failed before anybody touched anything.
void File::take_back(const Access& access) {
    individual_pointer_ -= access.pointer == Pointer::individual ? access.etypes : 0;
}

Error File::transfer_staged(const Access& access, const Buffer& data, MPI_Count& done) {
    done = 0;
    if (communicator_.size() == 1) {
        return transfer(access, data, false, done);
    }
    bool staged = false;
    ByteRange all = {0, 0};
    if (Error error = make_plan(access, data.bytes(), {}, staged, all)) {
        take_back(access);
        return error;
    }
    if (staged && is_shared_elsewhere()) {
        return transfer_exchanged(access, data, all, done);
    }
    if (staged && !staging_part_) {
        if (Error error = prepare_staging()) {
            take_back(access);
            return error;
        }
        staged = !staging_refused_;
    }
    if (!staged) {
        return transfer(access, data, false, done);
    }
    StagedAccess staging(engine_, communicator_,
                         {.communicator = communicator_,
                          .control = control_,
                          .medium = medium_,
                          .view = *view_,
                          .scratch = scratch_,
                          .staging = staging_part_.base(),
                          .half = staging_half_,
                          .writers = hints.writers},
                         data, access.first);
    if (access.direction == Direction::read) {
        return staging.read(all, done);
    }
    Error error = staging.write(all);
    done = error ? 0 : data.bytes();
    return error;
}

Error File::transfer_exchanged(const Access& access, const Buffer& data, const ByteRange& all,
                               MPI_Count& done) {
    ExchangedAccess exchanged(engine_, communicator_,
                              {.medium = medium_,
                               .view = *view_,
                               .domain_bytes = hints.staging_half,
                               .writers = hints.writers},
                              data, access.first);
    if (access.direction == Direction::read) {
        return exchanged.read(all, done);
    }
    Error error = exchanged.write(all);
    done = error ? 0 : data.bytes();
    return error;
}

// This rank takes no part in a collective access: the others hear of it.
Error File::refuse_access(Error own) {
    if (communicator_.size() == 1) {
        return own;
    }
    bool staged = false;
    ByteRange all = {0, 0};
    return make_plan({}, 0, own, staged, all);
}

Error File::collective(Access& access, MPI_Count& bytes) {
    bytes = 0;
    FileData prepared;
    Error own = split_.kind != Split::none ? fail(MPI_ERR_IO, "a split collective access is active")
                                           : check(access);
    own = own ? own : prepare(access, prepared);
    own = own ? own : place(access);
    return own ? refuse_access(own) : carry_out(access, prepared, true, bytes);
}

} // namespace warren::io
