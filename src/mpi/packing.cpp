// MPI_Pack and its relatives (MPI chapter 5.2).
#include <cstring>

#include "datatype/datatype.hpp"
#include "mpi/context.hpp"
#include "mpi/datatypes.hpp"

namespace warren::mpi {

using datatype::Datatype;

namespace {

// Bytes of `count` elements, which must fit between position and the buffer's size.
Error check_fit(const char* buffer, MPI_Count size, MPI_Count position, const Datatype& type,
                MPI_Count count, MPI_Count& bytes) {
    if (!type.bytes_of(count, bytes)) {
        return fail(MPI_ERR_COUNT, "%lld elements of %lld bytes exceed 64 bits",
                    static_cast<long long>(count), static_cast<long long>(type.size));
    }
    if (position < 0 || position > size || bytes > size - position) {
        return fail(MPI_ERR_ARG, "%s of %lld bytes has no %lld bytes from position %lld on", buffer,
                    static_cast<long long>(size), static_cast<long long>(bytes),
                    static_cast<long long>(position));
    }
    return {};
}

} // namespace

Error pack(Context&, const void* inbuf, MPI_Count incount, const Datatype& datatype, void* outbuf,
           MPI_Count outsize, MPI_Count& position, comm::Communicator&) {
    MPI_Count bytes = 0;
    if (Error error = check_fit("outbuf", outsize, position, datatype, incount, bytes)) {
        return error;
    }
    datatype.pack(inbuf, incount, static_cast<std::byte*>(outbuf) + position);
    position += bytes;
    return {};
}

Error unpack(Context&, const void* inbuf, MPI_Count insize, MPI_Count& position, void* outbuf,
             MPI_Count outcount, const Datatype& datatype, comm::Communicator&) {
    MPI_Count bytes = 0;
    if (Error error = check_fit("inbuf", insize, position, datatype, outcount, bytes)) {
        return error;
    }
    datatype.unpack(static_cast<const std::byte*>(inbuf) + position, bytes, outbuf, outcount);
    position += bytes;
    return {};
}

Error pack_size(Context&, MPI_Count incount, const Datatype& datatype, comm::Communicator&,
                MPI_Count& size) {
    if (!datatype.bytes_of(incount, size)) {
        return fail(MPI_ERR_COUNT, "%lld elements of %lld bytes exceed 64 bits",
                    static_cast<long long>(incount), static_cast<long long>(datatype.size));
    }
    return {};
}

} // namespace warren::mpi
