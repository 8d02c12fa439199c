// Accesses: checks, pointers, data representation; and the accesses of one rank.

#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "mpi/io/file.hpp"
#include "mpi/io/file_form.hpp"

namespace warren::io {

using Mode = RangeGuard::Mode;

namespace {

// Offsets in files stay below this, so that sums of a few never overflow.
constexpr MPI_Count largest_offset = MPI_Count{1} << 62;

// Reads or writes contiguous or laid-out data. In atomic mode nobody else reads what is written
// or writes what is read meanwhile.
Error perform_transfer(const Medium& medium, const View& view, Scratch& scratch, bool atomic,
                       Direction direction, const Buffer& data, MPI_Count first, MPI_Count& done) {
    done = 0;
    const MPI_Count bytes = data.bytes();
    if (bytes == 0 || view.empty()) {
        return {};
    }
    const bool writes = direction == Direction::write;
    ByteRange all = {0, ~std::uint64_t{0}};
    if (atomic && view.ordered()) {
        all = view.range(first, bytes);
    }
    const RangeGuard guard(atomic ? &medium.locks : nullptr,
                           writes ? Mode::exclusive : Mode::shared, all.begin, all.end);
    Transfer transfer(medium, view, scratch, atomic);
    return transfer.move(direction, data, first, done);
}

// The data of an access as it is in the file: the memory itself, or a converted copy.
Error data_of(const Access& access, const Representation& representation, RankLock& lock,
              std::unique_ptr<std::byte[]>& converted, Buffer& data) {
    const bool writes = access.direction == Direction::write;
    data = access.memory;
    if (!(writes ? representation.converts_writes() : representation.converts_reads())) {
        return {};
    }
    const MPI_Count bytes = access.item_bytes * access.memory.count;
    converted.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
    if (converted == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory to convert %lld bytes",
                    static_cast<long long>(bytes));
    }
    data = {.base = converted.get(), .count = bytes, .type = &datatype::basic(MPI_BYTE)};
    return writes ? representation.to_file(access.memory, converted.get(), lock) : Error();
}

// Bytes of memory that have been read or written, of those in the file; converts what was read.
Error end_of_data(const Access& access, const Representation& representation, RankLock& lock,
                  const std::byte* converted, MPI_Count done, MPI_Count& bytes) {
    bytes = done;
    if (converted == nullptr) {
        return {};
    }
    const MPI_Count items = access.item_bytes != 0 ? done / access.item_bytes : 0;
    bytes = items * access.memory.type->size;
    return access.direction == Direction::write || items == 0
               ? Error()
               : representation.from_file(converted, items, access.memory, lock);
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
    if (view_->representation().converts()) {
        FileForms forms(view_->representation());
        if (Error error = forms.bytes_of(*access.memory.type, access.item_bytes)) {
            return error;
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
    return access.pointer == Pointer::explicit_offset ? check_position(access.offset, access.etypes)
                                                      : Error();
}

Error File::check_position(MPI_Offset offset, MPI_Count etypes) const {
    MPI_Count last = 0;
    if (offset < 0) {
        return fail(MPI_ERR_ARG, "offset = %lld is negative", static_cast<long long>(offset));
    }
    if (__builtin_add_overflow(offset, etypes, &last) ||
        __builtin_mul_overflow(last, std::max<MPI_Count>(view_->etype_bytes(), 1), &last) ||
        last > largest_offset) {
        return fail(MPI_ERR_ARG, "offset = %lld is beyond the largest of a file",
                    static_cast<long long>(offset));
    }
    // (The file is longer than its data by the gaps.)
    const MPI_Count size = std::max<MPI_Count>(view_->filetype().size, 1);
    MPI_Count reach = 0;
    if (!view_->contiguous() &&
        __builtin_mul_overflow(last / size + 1, view_->filetype().extent, &reach)) {
        return fail(MPI_ERR_ARG, "offset = %lld is beyond the largest of a file",
                    static_cast<long long>(offset));
    }
    return {};
}

// Finds where the access begins, and moves the pointer behind it.
Error File::place(Access& access) {
    MPI_Offset begin = access.offset;
    switch (access.pointer) {
    case Pointer::explicit_offset:
        break;
    case Pointer::individual:
        begin = individual_pointer_;
        if (Error error = check_position(begin, access.etypes)) {
            return error;
        }
        individual_pointer_ += access.etypes;
        break;
    case Pointer::shared:
        begin = control_.file().shared_pointer.fetch_add(access.etypes, std::memory_order_relaxed);
        if (Error error = check_position(begin, access.etypes)) {
            return error;
        }
        break;
    }
    access.first = begin * view_->etype_bytes();
    return {};
}

Error File::transfer(const Access& access, const Buffer& data, bool collectively, MPI_Count& done) {
    if (collectively) {
        return transfer_staged(access, data, done);
    }
    RankLock& lock = engine_.rank().lock;
    if (!lock.shared()) {
        return perform_transfer(medium_, *view_, scratch_, atomic_, access.direction, data,
                                access.first, done);
    }
    // Other threads of the rank go on meanwhile.
    Scratch scratch;
    const std::shared_ptr<const View> view = view_;
    const std::shared_ptr<SystemFile> file = file_;
    const Medium medium = medium_;
    const bool atomic = atomic_;
    lock.unlock();
    Error error = perform_transfer(medium, *view, scratch, atomic, access.direction, data,
                                   access.first, done);
    lock.lock();
    return error;
}

namespace {

void count_bytes(Counts& counts, Direction direction, MPI_Count bytes) {
    const auto moved = static_cast<std::uint64_t>(bytes);
    (direction == Direction::read ? counts.file_bytes_read : counts.file_bytes_written).add(moved);
}

} // namespace

// An access that has been checked and placed.
Error File::carry_out(Access& access, bool collectively, MPI_Count& bytes) {
    Error error = carry_out_uncounted(access, collectively, bytes);
    count_bytes(engine_.rank().counts, access.direction, bytes);
    return error;
}

Error File::carry_out_uncounted(Access& access, bool collectively, MPI_Count& bytes) {
    const Representation& representation = view_->representation();
    RankLock& lock = engine_.rank().lock;
    if (!representation.converts()) {
        return transfer(access, access.memory, collectively, bytes);
    }
    std::unique_ptr<std::byte[]> converted;
    Buffer data;
    if (Error error = data_of(access, representation, lock, converted, data)) {
        if (collectively) {
            // The others hear of it.
            access.memory.count = 0;
            MPI_Count nothing = 0;
            Error others = transfer(access, access.memory, true, nothing);
            others.drop();
        }
        return error;
    }
    MPI_Count done = 0;
    Error error = transfer(access, data, collectively, done);
    Error ended = end_of_data(access, representation, lock, converted.get(), done, bytes);
    if (error) {
        ended.drop();
        return error;
    }
    return ended;
}

Error File::independent(Access& access, MPI_Count& bytes) {
    bytes = 0;
    if (Error error = check(access)) {
        return error;
    }
    if (Error error = place(access)) {
        return error;
    }
    return carry_out(access, false, bytes);
}

Error File::start(Access& access, std::unique_ptr<NonblockingAccess>& made) {
    if (Error error = check(access)) {
        return error;
    }
    if (Error error = place(access)) {
        return error;
    }
    made = std::make_unique<NonblockingAccess>(*this, access);
    return data_of(access, view_->representation(), engine_.rank().lock, made->converted_,
                   made->data_);
}

NonblockingAccess::NonblockingAccess(File& file, const Access& access)
    : Job(file.engine_.rank()),
      counts_(file.engine_.rank().counts),
      file_(file.file_),
      medium_(file.medium_),
      view_(file.view_),
      access_(access),
      atomic_(file.atomic_) {}

NonblockingAccess::~NonblockingAccess() {
    error_.drop();
}

void NonblockingAccess::perform(Scratch& scratch) {
    error_ = perform_transfer(medium_, *view_, scratch, atomic_, access_.direction, data_,
                              access_.first, done_);
}

Error NonblockingAccess::complete(MPI_Count& bytes, RankLock& lock) {
    Error error = std::exchange(error_, Error());
    Error ended =
        end_of_data(access_, view_->representation(), lock, converted_.get(), done_, bytes);
    count_bytes(counts_, access_.direction, bytes);
    if (error) {
        ended.drop();
        return error;
    }
    return ended;
}

// --- Split collective accesses

namespace {

const char* name_of_split(File::Split kind) {
    return kind == File::Split::at_all ? "at_all" : kind == File::Split::all ? "all" : "ordered";
}

} // namespace

Error File::begin_split(Access& access, Split kind) {
    if (split_.kind != Split::none) {
        return fail(MPI_ERR_IO, "the file has an active split collective access (…_%s_begin)",
                    name_of_split(split_.kind));
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
