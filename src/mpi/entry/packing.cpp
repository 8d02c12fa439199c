// MPI_Pack and its relatives (MPI chapter 5.2).
#include <cstring>

#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/external32.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/datatypes.hpp"

namespace warren::mpi {

using datatype::Datatype;

namespace {

Error packed_size(MPI_Count count, MPI_Count element_bytes, MPI_Count& bytes) {
    if (__builtin_mul_overflow(count, element_bytes, &bytes)) {
        return fail(MPI_ERR_COUNT, "%lld elements of %lld bytes exceed 64 bits",
                    static_cast<long long>(count), static_cast<long long>(element_bytes));
    }
    return {};
}

// Bytes of `count` elements, which must fit between position and the size of the packed buffer.
Error check_fit(const char* name, const void* packed, MPI_Count size, MPI_Count position,
                MPI_Count element_bytes, MPI_Count count, MPI_Count& bytes) {
    if (Error error = packed_size(count, element_bytes, bytes)) {
        return error;
    }
    if (packed == nullptr && bytes > 0) {
        return fail(MPI_ERR_BUFFER, "%s is a null pointer, but %lld bytes are to be there", name,
                    static_cast<long long>(bytes));
    }
    if (position < 0 || position > size || bytes > size - position) {
        return fail(MPI_ERR_ARG, "%s of %lld bytes has no %lld bytes from position %lld on", name,
                    static_cast<long long>(size), static_cast<long long>(bytes),
                    static_cast<long long>(position));
    }
    return {};
}

Error check_datarep(const char* datarep) {
    if (std::strcmp(datarep, "external32") != 0) {
        return fail(MPI_ERR_ARG, "datarep \"%.64s\" is not \"external32\"", datarep);
    }
    return {};
}

} // namespace

Error pack(Context&, const void* inbuf, MPI_Count incount, const Datatype& datatype, void* outbuf,
           MPI_Count outsize, MPI_Count& position, comm::Communicator&) {
    MPI_Count bytes = 0;
    if (Error error =
            check_fit("outbuf", outbuf, outsize, position, datatype.size, incount, bytes)) {
        return error;
    }
    datatype.pack(inbuf, incount, static_cast<std::byte*>(outbuf) + position);
    position += bytes;
    return {};
}

Error unpack(Context&, const void* inbuf, MPI_Count insize, MPI_Count& position, void* outbuf,
             MPI_Count outcount, const Datatype& datatype, comm::Communicator&) {
    MPI_Count bytes = 0;
    if (Error error = check_fit("inbuf", inbuf, insize, position, datatype.size, outcount, bytes)) {
        return error;
    }
    datatype.unpack(static_cast<const std::byte*>(inbuf) + position, bytes, outbuf, outcount);
    position += bytes;
    return {};
}

Error pack_size(Context&, MPI_Count incount, const Datatype& datatype, comm::Communicator&,
                MPI_Count& size) {
    return packed_size(incount, datatype.size, size);
}

Error pack_external(Context&, const char* datarep, const void* inbuf, MPI_Count incount,
                    const Datatype& datatype, void* outbuf, MPI_Count outsize,
                    MPI_Count& position) {
    if (Error error = check_datarep(datarep)) {
        return error;
    }
    MPI_Count bytes = 0;
    if (Error error = check_fit("outbuf", outbuf, outsize, position,
                                datatype::external_size(datatype), incount, bytes)) {
        return error;
    }
    datatype::pack_external(datatype, inbuf, incount, static_cast<std::byte*>(outbuf) + position);
    position += bytes;
    return {};
}

Error unpack_external(Context&, const char datarep[], const void* inbuf, MPI_Count insize,
                      MPI_Count& position, void* outbuf, MPI_Count outcount,
                      const Datatype& datatype) {
    if (Error error = check_datarep(datarep)) {
        return error;
    }
    MPI_Count bytes = 0;
    if (Error error = check_fit("inbuf", inbuf, insize, position, datatype::external_size(datatype),
                                outcount, bytes)) {
        return error;
    }
    datatype::unpack_external(datatype, static_cast<const std::byte*>(inbuf) + position, outbuf,
                              outcount);
    position += bytes;
    return {};
}

Error pack_external_size(Context&, const char* datarep, MPI_Count incount, const Datatype& datatype,
                         MPI_Count& size) {
    if (Error error = check_datarep(datarep)) {
        return error;
    }
    return packed_size(incount, datatype::external_size(datatype), size);
}

} // namespace warren::mpi
