// How files are opened and closed, and what concerns a file as a whole. Ranks find out together
// whether it can be done.

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>
#include <utility>

#include "base/page.hpp"
#include "mpi/coll/agreement.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/io/file.hpp"
#include "mpi/io/file_name.hpp"
#include "mpi/rma/heap.hpp"

namespace warren::io {

// Properties of the opened file that the first rank sends to the others.
struct Opened {
    std::uint64_t control = 0; // where the control block is in the job's memory file
    FileIdentity identity;
    std::uint64_t staging_half = 0;
    std::int32_t writers = 0;
    std::int32_t error_class = MPI_SUCCESS;
    char text[300] = {};
};

namespace {

constexpr int access_modes = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
constexpr int all_modes = access_modes | MPI_MODE_CREATE | MPI_MODE_EXCL |
                          MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL |
                          MPI_MODE_APPEND;
constexpr unsigned new_file_permissions = 0666; // less the umask

Error check_amode(int amode) {
    const int access = amode & access_modes;
    if (access != MPI_MODE_RDONLY && access != MPI_MODE_WRONLY && access != MPI_MODE_RDWR) {
        return fail(MPI_ERR_AMODE,
                    "amode = %d needs exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and "
                    "MPI_MODE_RDWR",
                    amode);
    }
    if ((amode & ~all_modes) != 0) {
        return fail(MPI_ERR_AMODE, "amode = %d has bits that are no mode", amode);
    }
    if (access == MPI_MODE_RDONLY && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0) {
        return fail(MPI_ERR_AMODE,
                    "MPI_MODE_CREATE and MPI_MODE_EXCL don't go with MPI_MODE_RDONLY");
    }
    if (access == MPI_MODE_RDWR && (amode & MPI_MODE_SEQUENTIAL) != 0) {
        return fail(MPI_ERR_AMODE, "MPI_MODE_SEQUENTIAL does not go with MPI_MODE_RDWR");
    }
    return {};
}

// The name of a file wherever the program goes; as it is, if that can't be found out.
std::string absolute(const char* path) {
    std::array<char, PATH_MAX> folder;
    return path[0] == '/' || getcwd(folder.data(), folder.size()) == nullptr
               ? path
               : std::string(folder.data()) + "/" + path;
}

// Opens for reading, too, what is to be written only: sieving reads. Falls back to what was asked.
Error open_as(SystemFile& file, const char* path, int amode, int flags) {
    if ((amode & MPI_MODE_WRONLY) == 0) {
        const int access = (amode & MPI_MODE_RDONLY) != 0 ? O_RDONLY : O_RDWR;
        return file.open(path, access | flags, new_file_permissions);
    }
    Error error = file.open(path, O_RDWR | flags, new_file_permissions);
    if (error && error.error_class() == MPI_ERR_ACCESS) {
        error.drop();
        error = file.open(path, O_WRONLY | flags, new_file_permissions);
    }
    return error;
}

template <typename Value>
Buffer bytes_of_value(Value& value) {
    return {.base = &value, .count = sizeof value, .type = &datatype::basic(MPI_BYTE)};
}

void note_error(Opened& opened, const Error& error) {
    opened.error_class = error ? error.error_class() : MPI_SUCCESS;
    if (error) {
        Error copy = error;
        ErrorRecord* record = copy.take();
        std::strncpy(opened.text, record->text.c_str(), sizeof opened.text - 1);
    }
}

constexpr const char* other_rank = "another rank could not do its part";

constexpr const char* names_of_calls[] = {
    "MPI_File_open", "MPI_File_close",         "MPI_File_set_size", "MPI_File_preallocate",
    "MPI_File_sync", "MPI_File_set_atomicity", "MPI_File_set_view", "MPI_File_seek_shared"};

// Sets `same` of each value that is the same at all ranks. Calls that differ are an error.
Error compare_in(message::Engine& engine, comm::Communicator& communicator, WholeCall call,
                 std::initializer_list<MPI_Offset> values, Error own, bool* same) {
    // (As many for every call, so that calls that differ find it out here.)
    std::int64_t extremes[coll::Collectives::most_agreed] = {};
    std::int64_t* next = extremes;
    const auto add = [&](MPI_Offset value) {
        *next++ = value;
        *next++ = ~value; // (the smallest number has no negative)
    };
    const auto is_same = [&](std::size_t i) { return extremes[2 * i] == ~extremes[2 * i + 1]; };
    add(static_cast<MPI_Offset>(call));
    std::for_each(values.begin(), values.end(), add);
    Error error = coll::Collectives(engine, communicator).agree(own, other_rank, extremes);
    for (std::size_t i = 0; i < values.size(); ++i) {
        same[i] = is_same(i + 1);
    }
    if (!error && !is_same(0)) {
        return fail(MPI_ERR_OTHER, "the ranks' calls do not match: another rank's is no %s",
                    names_of_calls[static_cast<int>(call)]);
    }
    return error;
}

Error agree_in(message::Engine& engine, comm::Communicator& communicator, WholeCall call,
               MPI_Offset value, const char* name, Error own) {
    bool same = false;
    Error error = compare_in(engine, communicator, call, {value}, own, &same);
    if (!error && !same) {
        return fail(MPI_ERR_NOT_SAME, "%s = %lld here, but not at all ranks", name,
                    static_cast<long long>(value));
    }
    return error;
}

// A number that tells names of data representations apart (FNV-1a).
MPI_Offset number_of(const std::string& name) {
    std::uint64_t number = 0xcbf29ce484222325;
    for (const char letter : name) {
        number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
    return static_cast<MPI_Offset>(number);
}

} // namespace

Error File::barrier() const {
    return coll::Collectives(engine_, communicator_).barrier();
}

Error File::agree(Error own) const {
    return coll::Collectives(engine_, communicator_).agree(own, other_rank);
}

// Like agree(); ranks that give different values are an error, too.
Error File::agree_on(WholeCall call, MPI_Offset value, const char* name, Error own) const {
    return agree_in(engine_, communicator_, call, value, name, own);
}

// Waits for all ranks to make this call.
Error File::agree_on_call(WholeCall call) const {
    return compare_in(engine_, communicator_, call, {}, {}, nullptr);
}

// All ranks' views must have this in common. `representation` is null if there is none.
Error File::agree_on_view(MPI_Count etype_bytes, const Representation* representation,
                          Error own) const {
    enum { extent, name, values };
    bool same[values];
    const MPI_Offset number = representation != nullptr ? number_of(representation->name) : 0;
    Error error =
        compare_in(engine_, communicator_, WholeCall::set_view, {etype_bytes, number}, own, same);
    if (!error && !same[name]) {
        return fail(MPI_ERR_NOT_SAME, "datarep = \"%s\" here, but not at all ranks",
                    representation->name.c_str());
    }
    if (!error && !same[extent]) {
        return fail(MPI_ERR_NOT_SAME, "etype has %lld bytes in the file here, but not at all ranks",
                    static_cast<long long>(etype_bytes));
    }
    return error;
}

// The error of the first rank, as that of all.
Error File::share_result(Error own) const {
    Opened told;
    if (communicator_.rank() == 0) {
        note_error(told, own);
    }
    Error error = coll::Collectives(engine_, communicator_).bcast(bytes_of_value(told), 0);
    if (own) {
        error.drop();
        return own;
    }
    return error || told.error_class == MPI_SUCCESS ? error
                                                    : fail(told.error_class, "%s", told.text);
}

Error File::take_control(std::uint64_t& offset) const {
    const node::Segment& segment = engine_.rank().segment;
    const std::uint64_t bytes =
        ControlBlock::bytes(static_cast<std::uint64_t>(communicator_.size()));
    rma::WindowHeap heap;
    if (Error error = rma::WindowHeap::open(segment, engine_.rank().index, heap)) {
        return error;
    }
    if (Error error = heap.take(bytes, offset)) {
        return error;
    }
    if (Error error = rma::WindowHeap::commit(segment, offset, bytes)) {
        heap.give_back(std::exchange(offset, 0));
        return error;
    }
    return {};
}

void File::give_back(std::uint64_t extent) const {
    rma::WindowHeap heap;
    Error error = rma::WindowHeap::open(engine_.rank().segment, engine_.rank().index, heap);
    if (!error) {
        heap.give_back(extent);
    }
    error.drop(); // it stays taken, which does no harm
}

Error File::map_control(std::uint64_t offset) {
    const std::uint64_t bytes =
        whole_pages(ControlBlock::bytes(static_cast<std::uint64_t>(communicator_.size())));
    Error error = rma::SharedPart::map(engine_.rank().segment, offset, bytes, control_part_);
    if (!error) {
        control_ = ControlBlock(control_part_.base());
    }
    return error;
}

// The first rank makes the file if that is asked for, and takes memory for all.
Error File::open_first(const char* path, Opened& opened) {
    int flags = (amode_ & MPI_MODE_CREATE) != 0 ? O_CREAT : 0;
    flags |= flags != 0 && (amode_ & MPI_MODE_EXCL) != 0 ? O_EXCL : 0; // else it has no meaning
    if (Error error = open_as(*file_, path, amode_, flags)) {
        return error;
    }
    if (spans_nodes_) {
        opened.identity = file_->identity();
    } else {
        opened.identity = {.device = file_->device(), .number = file_->number()};
    }
    opened.staging_half = hints.staging_half;
    opened.writers = hints.writers;
    if (Error error =
            RangeLocks::commit(engine_.rank().segment, file_->device(), file_->number())) {
        return error;
    }
    return spans_nodes_ ? Error() : take_control(opened.control);
}

// Opens what the first rank has opened.
Error File::open_next(const char* path, const Opened& opened) {
    // A node may remember that the file was not there. Asked to make it, it looks again. On the
    // disk of another node this would make another file.
    const bool looks_again = spans_nodes_ && opened.identity.kernel == 0;
    Error error =
        open_as(*file_, path, amode_, looks_again && (amode_ & MPI_MODE_CREATE) != 0 ? O_CREAT : 0);
    if (error && spans_nodes_ && error.error_class() == MPI_ERR_NO_SUCH_FILE) {
        error.drop();
        return fail(MPI_ERR_NO_SUCH_FILE,
                    "%s is there at the first rank, but not on the node of rank %d: nodes open "
                    "files together that are on a shared file system",
                    path, communicator_.rank());
    }
    if (error) {
        return error;
    }
    const bool is_same = spans_nodes_ ? is_same_file(opened.identity, file_->identity())
                                      : opened.identity.device == file_->device() &&
                                            opened.identity.number == file_->number();
    if (!is_same) {
        return fail(MPI_ERR_NOT_SAME, "%s is another file here than at the first rank%s", path,
                    spans_nodes_ ? ": nodes open files together that are on a shared file system"
                                 : "");
    }
    return spans_nodes_
               ? RangeLocks::commit(engine_.rank().segment, file_->device(), file_->number())
               : Error();
}

// Once the file is open: this rank's part.
Error File::begin(const Opened& opened) {
    if (Error error = spans_nodes_ ? make_own_control() : map_control(opened.control)) {
        return error;
    }
    MPI_Offset end = 0;
    if ((amode_ & MPI_MODE_APPEND) != 0) {
        if (Error error = size(end)) {
            return error;
        }
    }
    const datatype::Datatype& byte = datatype::basic(MPI_BYTE);
    if (Error error = View::make(0, byte, byte, native_, true, engine_.rank().lock, view_)) {
        return error;
    }
    individual_pointer_ = end;
    if (!spans_nodes_ || communicator_.rank() == 0) {
        shared_pointer_.use(control_.file().shared_pointer);
    }
    if (communicator_.rank() == 0) {
        shared_pointer_.set(end);
    }
    hints.staging_half = opened.staging_half;
    hints.writers = opened.writers;
    set_medium();
    return {};
}

void File::set_medium() {
    const Rank& rank = engine_.rank();
    medium_.file = file_.get();
    medium_.locks = RangeLocks(rank.segment, file_->device(), file_->number(), rank.index,
                               !rank.oversubscribed());
    medium_.readable = file_->readable();
    medium_.sieved_reads = hints.sieved_reads;
    medium_.system_locks = !spans_nodes_              ? SystemLocks::none
                           : file_->caches_by_locks() ? SystemLocks::always
                                                      : SystemLocks::atomic;
    // This node's locks do not protect bytes that other nodes or processes write, and sieving would
    // overwrite those bytes.
    medium_.sieved_writes = is_shared_elsewhere() ? Choice::never : hints.sieved_writes;
    medium_.read_sieve = hints.read_sieve;
    medium_.write_sieve = hints.write_sieve;
}

void File::take_hints(const Hints& wanted) {
    const Hints before = hints;
    hints = wanted;
    hints.staging_half = before.staging_half;
    hints.writers = before.writers;
    set_medium();
}

Error File::agree_to_open(message::Engine& engine, comm::Communicator& communicator, int amode,
                          Error wrong) {
    Error own = wrong ? wrong : check_amode(amode);
    return agree_in(engine, communicator, WholeCall::open, amode, "amode", own);
}

Error File::open(const char* name, int amode, const Hints& wanted, const char* forced_kind) {
    const char* path = nullptr;
    Error unreachable = path_of_name(name, forced_kind, path);
    amode_ = amode;
    deletes_ = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
    deleted_path_ = deletes_ ? absolute(path) : std::string();
    hints = wanted;
    spans_nodes_ = coll::spans_nodes(engine_.rank(), communicator_.map());
    file_ = std::make_shared<SystemFile>();
    communicator_.set_name(std::string("file ") + path);
    // No file is made before all ranks agree to.
    if (Error error = agree_to_open(engine_, communicator_, amode, unreachable)) {
        return error;
    }
    Error own;
    Opened opened;
    if (communicator_.rank() == 0) {
        own = open_first(path, opened);
        note_error(opened, own);
    }
    Error told = coll::Collectives(engine_, communicator_).bcast(bytes_of_value(opened), 0);
    control_extent_ = opened.control;
    if (!own && told) {
        return told;
    }
    if (opened.error_class != MPI_SUCCESS) {
        told.drop();
        return own ? own : fail(opened.error_class, "%s", opened.text);
    }
    if (!own && communicator_.rank() != 0) {
        own = open_next(path, opened);
    }
    if (!own) {
        own = begin(opened);
    }
    Error error = agree(own);
    if (!error && spans_nodes_) {
        error = make_pointer();
    }
    if (error && communicator_.rank() == 0 && control_extent_ != 0) {
        control_part_.drop();
        give_back(control_extent_);
    }
    return error;
}

Error File::close() {
    // Afterwards nobody accesses the file any more.
    if (Error error = agree_on_call(WholeCall::close)) {
        return error;
    }
    if (file_->remote() && !deletes_ && !std::exchange(flushed_, true)) { // tried once
        if (Error error = agree(file_->flush())) {
            return error;
        }
    }
    if (deletes_) {
        deletes_ = false; // tried once
        Error error;
        if (communicator_.rank() == 0) {
            error = SystemFile::remove(deleted_path_.c_str());
            if (error && error.error_class() == MPI_ERR_NO_SUCH_FILE) {
                error.drop();
            }
        }
        if (Error shared = share_result(error)) {
            return shared;
        }
    }
    if (Error error = shared_pointer_.end()) {
        return error;
    }
    control_part_.drop();
    staging_part_.drop();
    if (communicator_.rank() == 0) {
        if (control_extent_ != 0) {
            give_back(control_extent_);
        }
        if (staging_extent_ != 0) {
            give_back(staging_extent_);
        }
    }
    return {};
}

Error File::remove(const char* name) {
    const char* path = nullptr;
    Error error = path_of_name(name, nullptr, path);
    return error ? error : SystemFile::remove(path);
}

Error File::size(MPI_Offset& bytes) const {
    std::uint64_t found = 0;
    Error error = file_->size(found);
    bytes = static_cast<MPI_Offset>(found);
    return error;
}

Error File::check_not_sequential(const char* what) const {
    if ((amode_ & MPI_MODE_SEQUENTIAL) != 0) {
        return fail(MPI_ERR_UNSUPPORTED_OPERATION,
                    "%s was opened with MPI_MODE_SEQUENTIAL, which allows no %s", path().c_str(),
                    what);
    }
    return {};
}

namespace {

Error check_new_size(MPI_Offset bytes, int amode, const std::string& path) {
    if (bytes < 0) {
        return fail(MPI_ERR_ARG, "size = %lld is negative", static_cast<long long>(bytes));
    }
    if ((amode & MPI_MODE_RDONLY) != 0) {
        return fail(MPI_ERR_READ_ONLY, "%s was opened with MPI_MODE_RDONLY", path.c_str());
    }
    return {};
}

} // namespace

Error File::set_size(MPI_Offset bytes) {
    Error own = check_not_sequential("change of its size");
    own = own ? own : check_new_size(bytes, amode_, path());
    if (Error error = agree_on(WholeCall::set_size, bytes, "size", own)) {
        return error;
    }
    Error result;
    if (communicator_.rank() == 0) {
        result = file_->set_size(static_cast<std::uint64_t>(bytes));
    }
    return share_result(result);
}

Error File::preallocate(MPI_Offset bytes) {
    Error own = check_not_sequential("preallocation");
    own = own ? own : check_new_size(bytes, amode_, path());
    if (Error error = agree_on(WholeCall::preallocate, bytes, "size", own)) {
        return error;
    }
    Error result;
    if (communicator_.rank() == 0) {
        result = file_->allocate(static_cast<std::uint64_t>(bytes));
    }
    return share_result(result);
}

// The ranks of a node share the file's pages: one of them synchronises what all have written.
Error File::synchronise() {
    if (Error error = agree_on_call(WholeCall::synchronise)) {
        return error;
    }
    if (spans_nodes_) {
        return synchronise_nodes();
    }
    Error result;
    if (communicator_.rank() == 0) {
        result = file_->sync();
    }
    return share_result(result);
}

Error File::set_atomic(bool atomic) {
    Error error = agree_on(WholeCall::set_atomicity, atomic ? 1 : 0, "flag", {});
    if (!error) {
        atomic_ = atomic;
    }
    if (!error && atomic && file_->regular() && (amode_ & MPI_MODE_RDONLY) == 0 && !medium_.log) {
        file_->find_full_path();
        medium_.log = WriteLog(engine_.rank().segment, engine_.rank().index);
    }
    return error;
}

Error File::set_view(MPI_Offset displacement, const datatype::Datatype& etype,
                     const datatype::Datatype& filetype, const Representation* representation,
                     Error wrong) {
    const bool sequential = (amode_ & MPI_MODE_SEQUENTIAL) != 0;
    if (sequential) { // the view begins where the shared pointer is once all have come
        if (Error error = agree_on_call(WholeCall::set_view)) {
            wrong.drop();
            return error;
        }
    }
    Error own = wrong;
    if (!own && split_.kind != Split::none) {
        own = fail(MPI_ERR_IO, "a split collective access is active");
    }
    std::uint64_t begin = static_cast<std::uint64_t>(displacement);
    if (!own && displacement == MPI_DISPLACEMENT_CURRENT) {
        if (!sequential) {
            own = fail(MPI_ERR_ARG, "disp is MPI_DISPLACEMENT_CURRENT, which is for files opened "
                                    "with MPI_MODE_SEQUENTIAL");
        } else {
            MPI_Offset position = 0;
            own = shared_pointer_.get(position);
            begin = own              ? 0
                    : view_->empty() ? view_->displacement()
                                     : view_->place(position * view_->etype_bytes());
        }
    } else if (!own && sequential) {
        own = fail(MPI_ERR_ARG,
                   "disp = %lld is not MPI_DISPLACEMENT_CURRENT, which a file opened "
                   "with MPI_MODE_SEQUENTIAL needs",
                   static_cast<long long>(displacement));
    } else if (!own && displacement < 0) {
        own = fail(MPI_ERR_ARG, "disp = %lld is negative", static_cast<long long>(displacement));
    }
    std::shared_ptr<const View> made;
    if (!own) {
        const bool writable = (amode_ & MPI_MODE_RDONLY) == 0;
        own = View::make(begin, etype, filetype, *representation, writable, engine_.rank().lock,
                         made);
    }
    if (Error error =
            agree_on_view(made != nullptr ? made->etype_bytes() : 0, representation, own)) {
        return error;
    }
    view_ = std::move(made);
    individual_pointer_ = 0;
    if (communicator_.rank() == 0) {
        shared_pointer_.set(0);
    }
    return barrier(); // before anybody moves the pointer
}

} // namespace warren::io
