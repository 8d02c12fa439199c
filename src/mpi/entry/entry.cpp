#include "mpi/entry/entry.hpp"

#include "mpi/comm/topology.hpp"
#include "mpi/entry/file_release.hpp"
#include "mpi/entry/files.hpp"
#include "mpi/entry/windows.hpp"

namespace warren::mpi {

namespace {

// "MPI_COMM_NULL", "0x1000000001000", …: handles as a reader knows them.
const char* null_handle_name(int error_class) {
    switch (error_class) {
    case MPI_ERR_COMM:
        return "MPI_COMM_NULL";
    case MPI_ERR_TYPE:
        return "MPI_DATATYPE_NULL";
    case MPI_ERR_GROUP:
        return "MPI_GROUP_NULL";
    case MPI_ERR_OP:
        return "MPI_OP_NULL";
    case MPI_ERR_INFO:
        return "MPI_INFO_NULL";
    case MPI_ERR_ERRHANDLER:
        return "MPI_ERRHANDLER_NULL";
    case MPI_ERR_SESSION:
        return "MPI_SESSION_NULL";
    case MPI_ERR_WIN:
        return "MPI_WIN_NULL";
    case MPI_ERR_FILE:
        return "MPI_FILE_NULL";
    default:
        return "MPI_REQUEST_NULL";
    }
}

bool is_null_handle(const void* handle) {
    return handle == MPI_COMM_NULL || handle == MPI_DATATYPE_NULL || handle == MPI_GROUP_NULL ||
           handle == MPI_OP_NULL || handle == MPI_INFO_NULL || handle == MPI_ERRHANDLER_NULL ||
           handle == MPI_SESSION_NULL || handle == MPI_WIN_NULL || handle == MPI_FILE_NULL ||
           handle == MPI_REQUEST_NULL || handle == MPI_MESSAGE_NULL;
}

} // namespace

int Entry::failed(Error error) {
    if (object_ != nullptr && belongs_to_ == BelongsTo::file) {
        return raise_on_file(context, call_,
                             object_ == this ? nullptr : static_cast<io::File*>(object_), error);
    }
    if (object_ != nullptr) {
        return belongs_to_ == BelongsTo::window
                   ? raise(context, call_, *static_cast<rma::Window*>(object_), error)
                   : raise(context, call_, *static_cast<comm::Session*>(object_), error);
    }
    if (handler_ != nullptr) {
        return raise_for_new(call_, *handler_, comm::ErrorHandler::Kind::communicator, error);
    }
    return raise(context, call_, communicator_, error);
}

int Entry::refuse(io::File& file, io::File::Call call) {
    return run(call_, [&] { return file.refuse(call, std::exchange(error_, Error())); });
}

int Entry::refuse_open(comm::Communicator& comm) {
    return run(call_,
               [&] { return refuse_file_open(context, comm, std::exchange(error_, Error())); });
}

int Entry::refuse_window(comm::Communicator& comm) {
    return run(call_,
               [&] { return refuse_new_window(context, comm, std::exchange(error_, Error())); });
}

int AnytimeEntry::failed(Error error) {
    if (handler_ != nullptr) {
        return raise_for_new(call_, *handler_, comm::ErrorHandler::Kind::session, error);
    }
    return raise_anytime(call_, error);
}

bool Entry::enter() {
    context.rank.lock.lock();
    if (!context.rank.profile.on()) {
        return false;
    }
    context.rank.profile.begin(call_, profiled_);
    return true;
}

void Entry::leave() {
    if (context.rank.profile.on()) {
        context.rank.profile.end(call_, profiled_);
    }
    context.rank.lock.unlock();
}

void Entry::measured(Profile::Pattern pattern, int root, std::uint64_t bytes) {
    comm::Communicator& communicator = *communicator_;
    if (communicator.inter() || communicator.size() == 1) { // nobody waits for one of these
        pattern = Profile::Pattern::none;
    }
    const std::uint32_t number =
        pattern == Profile::Pattern::none ? 0 : communicator.next_profiled();
    context.rank.profile.begin_collective(profiled_, pattern, root == communicator.rank(), bytes,
                                          communicator.context(), number);
}

std::uint64_t Entry::bytes(MPI_Count count, MPI_Datatype datatype) const {
    const datatype::Datatype* type = context.datatypes.find(datatype);
    return type != nullptr && count > 0 && !communicator_->inter()
               ? static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type->size)
               : 0;
}

// Arrays have no elements for the ranks of another group than this one's.
template <typename BytesFor>
std::uint64_t Entry::sum_for(Peers peers, BytesFor bytes_for) const {
    std::uint64_t sum = 0;
    if (peers == Peers::neighbours) {
        const comm::Topology* topology = communicator_->topology.get();
        for (std::size_t place = 0; topology != nullptr && place < topology->destinations.size();
             ++place) {
            if (topology->destinations[place] != MPI_PROC_NULL) {
                sum += bytes_for(static_cast<int>(place));
            }
        }
        return sum;
    }
    const int ranks = communicator_->inter() ? 0 : communicator_->size();
    for (int rank = 0; rank < ranks; ++rank) {
        sum += bytes_for(rank);
    }
    return sum;
}

std::uint64_t Entry::bytes(Peers peers, MPI_Count count, MPI_Datatype datatype) const {
    return sum_for(peers, [&](int) { return bytes(count, datatype); });
}

std::uint64_t Entry::bytes(Peers peers, CountArray counts, MPI_Datatype datatype) const {
    return sum_for(peers, [&](int place) { return bytes(counts[place], datatype); });
}

std::uint64_t Entry::bytes(Peers peers, CountArray counts, const MPI_Datatype datatypes[]) const {
    return sum_for(peers, [&](int place) { return bytes(counts[place], datatypes[place]); });
}

std::uint64_t Entry::own_bytes(CountArray counts, MPI_Datatype datatype) const {
    return communicator_->inter() ? 0 : bytes(counts[communicator_->rank()], datatype);
}

int Entry::failed_under_lock(Error error) {
    if (context.rank.profile.on()) {
        context.rank.profile.end(call_, profiled_);
    }
    comm::Communicator* communicator = std::exchange(context.failed_on, nullptr);
    const int failed_class = context.failed_class;
    io::File* file = communicator != nullptr ? file_of(context, *communicator) : nullptr;
    context.rank.lock.unlock();
    if (communicator == nullptr) {
        return failed(error);
    }
    const int code = file != nullptr ? raise_on_file(context, call_, file, error, failed_class)
                                     : raise(context, call_, communicator, error, failed_class);
    const std::lock_guard guard(context.rank.lock);
    release(context, *communicator);
    return code;
}

bool PlainChecks::no_object(int error_class, const char* name, const char* kind,
                            const void* handle) {
    if (is_null_handle(handle)) {
        const char* null =
            handle == MPI_MESSAGE_NULL ? "MPI_MESSAGE_NULL" : null_handle_name(error_class);
        error_ = fail(error_class, "%s is %s", name, null);
    } else {
        error_ = fail(error_class, "%s = %p is no %s: it was never made, or has been freed", name,
                      handle, kind);
    }
    return false;
}

bool Entry::too_many(const char* name, MPI_Count elements) {
    error_ = fail(MPI_ERR_COUNT, "%lld elements at %s are more bytes than 64 bits count",
                  static_cast<long long>(elements), name);
    return false;
}

bool Entry::not_committed(const char* name, MPI_Datatype handle) {
    error_ = fail(MPI_ERR_TYPE, "%s = %p has not been committed: call MPI_Type_commit first", name,
                  static_cast<void*>(handle));
    return false;
}

bool Entry::of_nothing(int peer, MPI_Count count, MPI_Datatype handle,
                       const datatype::Datatype*& object) {
    if ((peer != MPI_PROC_NULL && count != 0) || handle != MPI_DATATYPE_NULL) {
        return false;
    }
    error_.drop();
    object = unused_type();
    return true;
}

bool Entry::of_no_op(MPI_Op op, const datatype::Datatype*& object) {
    if (op != MPI_NO_OP) {
        return false;
    }
    error_.drop();
    object = unused_type();
    return true;
}

bool PlainChecks::negative(int error_class, const char* name, MPI_Count value) {
    error_ = fail(error_class, "%s = %lld is negative", name, static_cast<long long>(value));
    return false;
}

bool Entry::no_rank(int error_class, const char* name, int rank,
                    const comm::Communicator& communicator) {
    const char* meant = rank == MPI_ANY_SOURCE  ? " (MPI_ANY_SOURCE)"
                        : rank == MPI_PROC_NULL ? " (MPI_PROC_NULL)"
                        : rank == MPI_ROOT      ? " (MPI_ROOT)"
                                                : "";
    error_ = fail(error_class, "%s = %d%s is not in 0 … %d", name, rank, meant,
                  communicator.peers() - 1);
    return false;
}

bool PlainChecks::bad_tag(const char* name, int value) {
    error_ = fail(MPI_ERR_TAG, "%s = %d%s is not in 0 … %d", name, value,
                  value == MPI_ANY_TAG ? " (MPI_ANY_TAG)" : "", tag_limit);
    return false;
}

bool Entry::null_buffer(const char* name, MPI_Count elements) {
    error_ = fail(MPI_ERR_BUFFER, "%s is a null pointer, but %lld elements are to be there", name,
                  static_cast<long long>(elements));
    return false;
}

bool PlainChecks::null_pointer(const char* name) {
    error_ = fail(MPI_ERR_ARG, "%s is a null pointer", name);
    return false;
}

bool Entry::in_place(const char* name) {
    error_ = fail(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which has no meaning here", name);
    return false;
}

// Two layouts that begin at the same address may yet have nothing in common, unless they are blocks
// or the same.
bool Entry::not_same_memory(const void* place, const datatype::Datatype* sent,
                            const datatype::Datatype* received) {
    if (sent == nullptr || received == nullptr || sent->size == 0 ||
        !(sent == received || (sent->contiguous && received->contiguous))) {
        return true;
    }
    error_ = fail(MPI_ERR_BUFFER,
                  "sendbuf and recvbuf are the same memory (what the rank sends to itself is to be "
                  "received at %p, where it is already): pass MPI_IN_PLACE",
                  place);
    return false;
}

Error narrow(const char* name, MPI_Count value, int* result) {
    if (value != static_cast<int>(value)) {
        return fail(MPI_ERR_VALUE_TOO_LARGE,
                    "%s = %lld does not fit an int: use the call's _c form", name,
                    static_cast<long long>(value));
    }
    *result = static_cast<int>(value);
    return {};
}

Error no_memory() {
    return fail(MPI_ERR_NO_MEM, "memory is exhausted");
}

int unsupported(std::uint32_t call, MPI_Comm communicator) {
    Context& context = find_context(call);
    return raise(context, call, context.communicators.find(communicator),
                 fail(MPI_ERR_UNSUPPORTED_OPERATION, "Warren does not implement this call yet"));
}

} // namespace warren::mpi
