// Accesses: checks, pointers, data representation; and the accesses of one rank.

#include <algorithm>
#include <new>
#include <utility>

#include "mpi/io/access_guard.hpp"
#include "mpi/io/file.hpp"
#include "mpi/io/file_form.hpp"
#include "mpi/io/logged_write.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {

namespace {

// Bytes of what is never torn in a write that is too large to be entered as a whole: an element of
// memory, of so many bytes in the file, or a larger etype.
MPI_Count record_bytes(const View& view, const Buffer& data, MPI_Count element) {
    const MPI_Count etype = view.etype_bytes();
    return etype > element && etype % element == 0 && data.bytes() % etype == 0 ? etype : element;
}

// An action of datatype::Walk that finds out whether a kill could tear a record: the kernel stops
// between pages, and between calls. It may say so where none can be.
class MayTear {
  public:
    static constexpr bool in_order = true;
    explicit MayTear(std::uint64_t record) : record_(record) {} // divides a page

    bool enough() const { return found_; }
    void block(std::uint64_t offset, MPI_Count, MPI_Count bytes) {
        found_ =
            found_ || offset % record_ != 0 || static_cast<std::uint64_t>(bytes) % record_ != 0;
    }
    void blocks(std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count, MPI_Count count,
                MPI_Count bytes) {
        block(offset, at, bytes);
        if (count > 1) {
            block(offset + static_cast<std::uint64_t>(stride), at, bytes);
        }
    }
    void scattered(std::uint64_t base, const MPI_Count* places, MPI_Count at, MPI_Count count,
                   MPI_Count bytes) {
        for (MPI_Count i = 0; i < count && !found_; ++i) {
            block(base + static_cast<std::uint64_t>(places[i]), at, bytes);
        }
    }

  private:
    const std::uint64_t record_;
    bool found_ = false;
};

// The place of data that lie in memory one behind the other; 0: they don't.
std::uintptr_t place_of(const Buffer& data) {
    return reinterpret_cast<std::uintptr_t>(data.type->one_piece(data.base, data.count));
}

// Whether a write goes without the log: the kernel stops between pages only, of the file and of
// memory. `all`: from its first byte in the file to its last.
bool is_whole_anyway(const Medium& medium, const View& view, const ByteRange& all,
                     const Buffer& data, MPI_Count element, MPI_Count first) {
    const MPI_Count bytes = data.bytes();
    if (LoggedWrite::may_fit(view, bytes)) {
        const std::uintptr_t place = place_of(data);
        return all.bytes() == static_cast<std::uint64_t>(bytes) &&
               !LoggedWrite::crosses_page(all.begin, all.end) && place != 0 &&
               !LoggedWrite::crosses_page(place, place + static_cast<std::uint64_t>(bytes));
    }
    const auto record = static_cast<std::uint64_t>(record_bytes(view, data, element));
    if (record > node::logged_data_bytes) {
        return true; // as whole as it can be
    }
    if (page_bytes % record != 0 || medium.write_sieve % record != 0 ||
        place_of(data) % record != 0) {
        return false;
    }
    MayTear action(record);
    view.walk(first, bytes, action);
    return !action.enough();
}

// Writes in atomic mode. What the log has room for becomes whole also if the rank is killed; of
// more data, each record. The caller holds an exclusive lock.
Error write_whole(const Medium& medium, const View& view, Transfer& transfer, const ByteRange& all,
                  const Buffer& data, MPI_Count element, MPI_Count first, MPI_Count& done) {
    if (is_whole_anyway(medium, view, all, data, element, first)) {
        return transfer.move(Direction::write, data, first, done);
    }
    using Result = LoggedWrite::Result;
    const MPI_Count record = record_bytes(view, data, element);
    const MPI_Count elements = record / data.type->size; // of a record
    // A call of the system that writes them all tears records between pages only: the file's, if
    // those of memory begin with the same bytes.
    const std::uintptr_t place = place_of(data);
    const bool in_one_call =
        view.contiguous() && place != 0 && place % page_bytes == all.begin % page_bytes;
    const auto most =
        static_cast<MPI_Count>(in_one_call ? largest_logged_call : node::logged_data_bytes);
    bool by_records = !LoggedWrite::may_fit(view, data.bytes());
    MPI_Count at_once = by_records ? std::max(most / record, MPI_Count{1}) * elements : data.count;
    for (MPI_Count begin = 0; begin < data.count;) {
        Buffer part = data;
        // (An integer, because the base may be MPI_BOTTOM.)
        part.base = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data.base) +
                                            static_cast<std::uintptr_t>(begin * data.type->extent));
        part.count = std::min(at_once, data.count - begin);
        LoggedWrite log(medium.log, *medium.file, medium.system_locks != SystemLocks::none);
        const Result result = by_records && in_one_call
                                  ? log.enter_records(view, part, first + done, record)
                                  : log.enter(view, part, first + done);
        if (result == Result::too_large && part.count > elements) {
            at_once = std::max(part.count / 2 / elements, MPI_Count{1}) * elements;
            by_records = true;
            continue;
        }
        if (result == Result::impossible) {
            part.count = data.count - begin;
        }
        MPI_Count moved = 0;
        Error error = transfer.move(Direction::write, part, first + done, moved);
        done += moved;
        if (error) {
            return error;
        }
        begin += part.count;
    }
    return {};
}

// Reads or writes contiguous or laid-out data. In atomic mode nobody else reads what is written
// or writes what is read meanwhile. `element`: bytes of an element of memory in the file.
Error perform_transfer(const Medium& medium, const View& view, Scratch& scratch, bool atomic,
                       Direction direction, const Buffer& data, MPI_Count element, MPI_Count first,
                       MPI_Count& done) {
    done = 0;
    const MPI_Count bytes = data.bytes();
    if (bytes == 0 || view.empty()) {
        return {};
    }
    const bool guarded = AccessGuard::is_needed(medium, atomic);
    ByteRange all = {0, ~std::uint64_t{0}};
    if (guarded && view.ordered()) {
        all = view.range(first, bytes);
    }
    AccessGuard guard(medium, atomic, direction, all);
    if (Error error = guard.take_error()) {
        return error;
    }
    Transfer transfer(medium, view, scratch, guarded);
    if (atomic && direction == Direction::write && medium.log) {
        return write_whole(medium, view, transfer, all, data, element, first, done);
    }
    return transfer.move(direction, data, first, done);
}

// Bytes of memory that have been read or written, of those in the file; converts what was read.
Error end_of_data(const Access& access, const Representation& representation, RankLock& lock,
                  const FileData& prepared, MPI_Count done, MPI_Count& bytes) {
    bytes = done;
    if (prepared.converted == nullptr) {
        return {};
    }
    if (access.direction == Direction::write) {
        const MPI_Count items = access.item_bytes != 0 ? done / access.item_bytes : 0;
        bytes = items * access.memory.type->size;
        return {};
    }
    return representation.from_file(prepared.converted.get(), done, access.item_bytes,
                                    access.memory, lock, bytes);
}

} // namespace

Error File::check(Access& access) const {
    const bool writes = access.direction == Direction::write;
    if (writes && (amode_ & MPI_MODE_RDONLY) != 0) {
        return fail(MPI_ERR_READ_ONLY, "%s was opened with MPI_MODE_RDONLY", path().c_str());
    }
    if (!writes && (amode_ & MPI_MODE_WRONLY) != 0) {
        return fail(MPI_ERR_ACCESS, "%s was opened with MPI_MODE_WRONLY", path().c_str());
    }
    if (access.pointer != Pointer::shared) {
        if (Error error = check_not_sequential("access but by the shared file pointer")) {
            return error;
        }
    }
    access.item_bytes = access.memory.type->size;
    const Representation& representation = view_->representation();
    if (representation.converts()) {
        FileForms forms(representation, engine_.rank().lock);
        if (Error error = forms.bytes_of(*access.memory.type, access.item_bytes)) {
            return error;
        }
        const bool converted =
            writes ? representation.converts_writes() : representation.converts_reads();
        if (!converted && access.item_bytes != access.memory.type->size) {
            return fail(MPI_ERR_CONVERSION,
                        "representation \"%s\" has no %s conversion function, but %lld bytes of "
                        "memory are %lld in the file",
                        representation.name.c_str(), writes ? "write" : "read",
                        static_cast<long long>(access.memory.type->size),
                        static_cast<long long>(access.item_bytes));
        }
    }
    MPI_Count bytes = 0;
    if (__builtin_mul_overflow(access.item_bytes, access.memory.count, &bytes)) {
        return fail(MPI_ERR_COUNT, "%lld elements are more bytes than a file has",
                    static_cast<long long>(access.memory.count));
    }
    const MPI_Count etype = view_->etype_bytes();
    if (bytes != 0 && (etype == 0 || bytes % etype != 0)) {
        return fail(MPI_ERR_IO, "%lld bytes are no whole etypes of %lld bytes",
                    static_cast<long long>(bytes), static_cast<long long>(etype));
    }
    access.etypes = bytes == 0 ? 0 : bytes / etype;
    return check_position(access.pointer == Pointer::explicit_offset ? access.offset : 0,
                          access.etypes);
}

Error File::check_position(MPI_Offset offset, MPI_Count etypes) const {
    MPI_Count last = 0;
    if (offset < 0) {
        return fail(MPI_ERR_ARG, "offset = %lld is negative", static_cast<long long>(offset));
    }
    if (__builtin_add_overflow(offset, etypes, &last) ||
        __builtin_mul_overflow(last, std::max<MPI_Count>(view_->etype_bytes(), 1), &last) ||
        !view_->holds(last)) {
        return fail(MPI_ERR_ARG, "%lld etypes from offset = %lld on are beyond the largest file",
                    static_cast<long long>(etypes), static_cast<long long>(offset));
    }
    return {};
}

// The data to write, converted, or memory for what is to be read and converted.
Error File::prepare(const Access& access, FileData& prepared) const {
    const Representation& representation = view_->representation();
    const bool writes = access.direction == Direction::write;
    prepared.data = access.memory;
    if (!(writes ? representation.converts_writes() : representation.converts_reads())) {
        return {};
    }
    const MPI_Count bytes = access.item_bytes * access.memory.count;
    std::unique_ptr<std::byte[]>& converted = prepared.converted;
    converted.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
    if (converted == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory to convert %lld bytes",
                    static_cast<long long>(bytes));
    }
    prepared.data = {.base = converted.get(), .count = bytes, .type = &datatype::basic(MPI_BYTE)};
    return writes ? representation.to_file(access.memory, converted.get(), engine_.rank().lock)
                  : Error();
}

// Finds where the access begins, and moves the pointer behind it.
Error File::place(Access& access) {
    MPI_Offset begin = access.offset;
    Error error;
    if (access.pointer == Pointer::individual) {
        begin = individual_pointer_;
        error = check_position(begin, access.etypes);
        individual_pointer_ += error ? 0 : access.etypes;
    } else if (access.pointer == Pointer::shared) {
        error = advance_shared(access.etypes, begin);
    }
    access.first = error ? 0 : begin * view_->etype_bytes();
    return error;
}

Error File::transfer(const Access& access, const Buffer& data, bool collectively, MPI_Count& done) {
    if (collectively) {
        return transfer_staged(access, data, done);
    }
    RankLock& lock = engine_.rank().lock;
    if (!lock.shared()) {
        return perform_transfer(medium_, *view_, scratch_, atomic_, access.direction, data,
                                access.item_bytes, access.first, done);
    }
    // Other threads of the rank go on meanwhile.
    std::unique_ptr<Scratch> scratch;
    if (spare_scratches_.empty()) {
        scratch = std::make_unique<Scratch>();
    } else {
        scratch = std::move(spare_scratches_.back());
        spare_scratches_.pop_back();
    }
    const std::shared_ptr<const View> view = view_;
    const std::shared_ptr<SystemFile> file = file_;
    const Medium medium = medium_;
    const bool atomic = atomic_;
    lock.unlock();
    Error error = perform_transfer(medium, *view, *scratch, atomic, access.direction, data,
                                   access.item_bytes, access.first, done);
    lock.lock();
    if (spare_scratches_.size() < spare_scratches) {
        spare_scratches_.push_back(std::move(scratch));
    }
    return error;
}

namespace {

void count_bytes(Counts& counts, Direction direction, MPI_Count bytes) {
    const auto moved = static_cast<std::uint64_t>(bytes);
    (direction == Direction::read ? counts.file_bytes_read : counts.file_bytes_written).add(moved);
}

} // namespace

// An access that has been checked, prepared and placed.
Error File::carry_out(const Access& access, const FileData& prepared, bool collectively,
                      MPI_Count& bytes) {
    MPI_Count done = 0;
    Error error = transfer(access, prepared.data, collectively, done);
    Error ended =
        end_of_data(access, view_->representation(), engine_.rank().lock, prepared, done, bytes);
    count_bytes(engine_.rank().counts, access.direction, bytes);
    if (error) {
        ended.drop();
        return error;
    }
    return ended;
}

Error File::independent(Access& access, MPI_Count& bytes) {
    bytes = 0;
    FileData prepared;
    Error error = check(access);
    error = error ? error : prepare(access, prepared);
    error = error ? error : place(access);
    return error ? error : carry_out(access, prepared, false, bytes);
}

Error File::start(Access& access, std::unique_ptr<NonblockingAccess>& made) {
    FileData prepared;
    Error error = check(access);
    error = error ? error : prepare(access, prepared);
    error = error ? error : place(access);
    if (!error) {
        made = std::make_unique<NonblockingAccess>(*this, access, std::move(prepared));
    }
    return error;
}

NonblockingAccess::NonblockingAccess(File& file, const Access& access, FileData prepared)
    : Job(file.engine_.rank()),
      counts_(file.engine_.rank().counts),
      file_(file.file_),
      medium_(file.medium_),
      view_(file.view_),
      access_(access),
      atomic_(file.atomic_),
      prepared_(std::move(prepared)) {}

NonblockingAccess::~NonblockingAccess() {
    error_.drop();
}

void NonblockingAccess::perform(Scratch& scratch) {
    error_ = perform_transfer(medium_, *view_, scratch, atomic_, access_.direction, prepared_.data,
                              access_.item_bytes, access_.first, done_);
}

Error NonblockingAccess::complete(MPI_Count& bytes, RankLock& lock) {
    Error error = std::exchange(error_, Error());
    Error ended = end_of_data(access_, view_->representation(), lock, prepared_, done_, bytes);
    count_bytes(counts_, access_.direction, bytes);
    if (error) {
        ended.drop();
        return error;
    }
    return ended;
}

Error File::refuse(Call call, Error own) {
    if (call == Call::access) {
        return refuse_access(own);
    }
    if (call == Call::ordered_access) {
        MPI_Offset begin = 0;
        return order(own, Part::unknown, 0, begin);
    }
    if ((amode_ & MPI_MODE_SEQUENTIAL) != 0) {
        if (Error error = agree_on_call(WholeCall::set_view)) { // see set_view()
            own.drop();
            return error;
        }
    }
    return agree_on_view(0, nullptr, own);
}

// --- Split collective accesses

namespace {

const char* name_of_split(File::Split kind) {
    return kind == File::Split::at_all ? "at_all" : kind == File::Split::all ? "all" : "ordered";
}

} // namespace

Error File::begin_split(Access& access, Split kind) {
    if (split_.kind != Split::none) {
        return refuse(kind == Split::ordered ? Call::ordered_access : Call::access,
                      fail(MPI_ERR_IO,
                           "the file has an active split collective access "
                           "(…_%s_begin)",
                           name_of_split(split_.kind)));
    }
    MPI_Count bytes = 0;
    Error error = kind == Split::ordered ? ordered(access, bytes) : collective(access, bytes);
    if (!error) {
        split_ = {.kind = kind,
                  .direction = access.direction,
                  .base = access.memory.base,
                  .bytes = bytes};
    }
    return error;
}

Error File::end_split(Direction direction, Split kind, const void* base, MPI_Count& bytes) {
    if (split_.kind != kind || split_.direction != direction) {
        return fail(MPI_ERR_IO, "the file has no such split collective access: %s%s",
                    split_.kind == Split::none ? "none is active" : "the active one is …_",
                    split_.kind == Split::none ? "" : name_of_split(split_.kind));
    }
    if (split_.base != base) {
        return fail(MPI_ERR_BUFFER, "buf is not the one of the call that began the access");
    }
    bytes = split_.bytes;
    split_.kind = Split::none;
    return {};
}

} // namespace warren::io
