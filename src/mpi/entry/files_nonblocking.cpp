// Nonblocking accesses to files: requests whose work a helper thread does. Collective ones are each
// rank's own, for they must not wait for the others.
#include <memory>
#include <utility>

#include "mpi/entry/file_access.hpp"
#include "mpi/entry/files.hpp"

namespace warren::mpi {

using io::Direction;
using io::Pointer;
using message::Request;

namespace {

// State of a request for a file access.
struct FileRequest {
    std::unique_ptr<io::NonblockingAccess> access;
    Error error;
};

FileRequest& file_request_of(const Request& request) {
    return *static_cast<FileRequest*>(request.attachment);
}

// Under the rank's lock, which the functions of a data representation run without.
bool step_file_request(Request& request) {
    FileRequest& its = file_request_of(request);
    if (!its.access->finished()) {
        return false;
    }
    auto& context = *static_cast<Context*>(request.context);
    its.error = its.access->complete(request.outcome.bytes, context.rank.lock);
    request.outcome.error_class = its.error ? its.error.error_class() : MPI_SUCCESS;
    return true;
}

void release_file_request(Request& request) {
    FileRequest* its = &file_request_of(request);
    its->access->await_left();
    its->error.drop();
    delete its;
    release_bound(request);
}

Error start(Context& context, io::File& file, io::Access access, MPI_Request* handle) {
    const datatype::Kept kept(*access.memory.type); // while functions of the program run
    Request* request = context.messages.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    auto made = std::make_unique<FileRequest>();
    if (Error error = file.start(access, made->access)) {
        context.messages.requests().remove(*request);
        return error;
    }
    request->operation = message::Operation::file;
    request->envelope = {
        .context = file.communicator().context(), .source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    request->buffer = access.memory;
    io::NonblockingAccess& job = *made->access;
    request->attachment = made.release();
    bind(context, *request, file.communicator());
    request->release = release_file_request;
    request->stepping.step = step_file_request;
    context.messages.start_stepping(*request);
    *handle = request_handle(*request);
    io::Job::start(job);
    return {};
}

} // namespace

Error end_file_access(Request& request) {
    return std::exchange(file_request_of(request).error, Error());
}

Error file_iread(Context& context, io::File& fh, void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh,
                 access_of(Direction::read, Pointer::individual, 0, buf, count, datatype), request);
}

Error file_iread_all(Context& context, io::File& fh, void* buf, MPI_Count count,
                     const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh,
                 access_of(Direction::read, Pointer::individual, 0, buf, count, datatype), request);
}

Error file_iread_at(Context& context, io::File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                    const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh,
                 access_of(Direction::read, Pointer::explicit_offset, offset, buf, count, datatype),
                 request);
}

Error file_iread_at_all(Context& context, io::File& fh, MPI_Offset offset, void* buf,
                        MPI_Count count, const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh,
                 access_of(Direction::read, Pointer::explicit_offset, offset, buf, count, datatype),
                 request);
}

Error file_iread_shared(Context& context, io::File& fh, void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh, access_of(Direction::read, Pointer::shared, 0, buf, count, datatype),
                 request);
}

Error file_iwrite(Context& context, io::File& fh, const void* buf, MPI_Count count,
                  const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh,
                 access_of(Direction::write, Pointer::individual, 0, buf, count, datatype),
                 request);
}

Error file_iwrite_all(Context& context, io::File& fh, const void* buf, MPI_Count count,
                      const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh,
                 access_of(Direction::write, Pointer::individual, 0, buf, count, datatype),
                 request);
}

Error file_iwrite_at(Context& context, io::File& fh, MPI_Offset offset, const void* buf,
                     MPI_Count count, const datatype::Datatype& datatype, MPI_Request* request) {
    return start(
        context, fh,
        access_of(Direction::write, Pointer::explicit_offset, offset, buf, count, datatype),
        request);
}

Error file_iwrite_at_all(Context& context, io::File& fh, MPI_Offset offset, const void* buf,
                         MPI_Count count, const datatype::Datatype& datatype,
                         MPI_Request* request) {
    return start(
        context, fh,
        access_of(Direction::write, Pointer::explicit_offset, offset, buf, count, datatype),
        request);
}

Error file_iwrite_shared(Context& context, io::File& fh, const void* buf, MPI_Count count,
                         const datatype::Datatype& datatype, MPI_Request* request) {
    return start(context, fh, access_of(Direction::write, Pointer::shared, 0, buf, count, datatype),
                 request);
}

} // namespace warren::mpi
