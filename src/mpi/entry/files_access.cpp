// Blocking and split collective accesses to files.
#include "mpi/entry/file_access.hpp"
#include "mpi/entry/files.hpp"

namespace warren::mpi {

using io::Direction;
using io::Pointer;
using Split = io::File::Split;

namespace {

using Way = Error (io::File::*)(io::Access&, MPI_Count&);

// The status says what was read or written, also where an error ended the access.
Error do_access(io::File& file, io::Access access, Way way, MPI_Status* status) {
    const datatype::Kept kept(*access.memory.type);
    MPI_Count bytes = 0;
    Error error = (file.*way)(access, bytes);
    set_file_status(status, bytes);
    return error;
}

Error do_independent(io::File& file, const io::Access& access, MPI_Status* status) {
    return do_access(file, access, &io::File::independent, status);
}

Error do_collective(io::File& file, const io::Access& access, MPI_Status* status) {
    return do_access(file, access, &io::File::collective, status);
}

Error do_ordered(io::File& file, const io::Access& access, MPI_Status* status) {
    return do_access(file, access, &io::File::ordered, status);
}

Error begin_split(io::File& file, io::Access access, Split split) {
    const datatype::Kept kept(*access.memory.type);
    return file.begin_split(access, split);
}

Error end_split(io::File& file, Direction direction, Split split, const void* base,
                MPI_Status* status) {
    MPI_Count bytes = 0;
    Error error = file.end_split(direction, split, base, bytes);
    if (!error) {
        set_file_status(status, bytes);
    }
    return error;
}

} // namespace

Error file_read(Context&, io::File& fh, void* buf, MPI_Count count,
                const datatype::Datatype& datatype, MPI_Status* status) {
    return do_independent(
        fh, access_of(Direction::read, Pointer::individual, 0, buf, count, datatype), status);
}

Error file_read_all(Context&, io::File& fh, void* buf, MPI_Count count,
                    const datatype::Datatype& datatype, MPI_Status* status) {
    return do_collective(
        fh, access_of(Direction::read, Pointer::individual, 0, buf, count, datatype), status);
}

Error file_read_all_begin(Context&, io::File& fh, void* buf, MPI_Count count,
                          const datatype::Datatype& datatype) {
    return begin_split(fh, access_of(Direction::read, Pointer::individual, 0, buf, count, datatype),
                       Split::all);
}

Error file_read_all_end(Context&, io::File& fh, void* buf, MPI_Status* status) {
    return end_split(fh, Direction::read, Split::all, buf, status);
}

Error file_read_at(Context&, io::File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                   const datatype::Datatype& datatype, MPI_Status* status) {
    return do_independent(
        fh, access_of(Direction::read, Pointer::explicit_offset, offset, buf, count, datatype),
        status);
}

Error file_read_at_all(Context&, io::File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                       const datatype::Datatype& datatype, MPI_Status* status) {
    return do_collective(
        fh, access_of(Direction::read, Pointer::explicit_offset, offset, buf, count, datatype),
        status);
}

Error file_read_at_all_begin(Context&, io::File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                             const datatype::Datatype& datatype) {
    return begin_split(
        fh, access_of(Direction::read, Pointer::explicit_offset, offset, buf, count, datatype),
        Split::at_all);
}

Error file_read_at_all_end(Context&, io::File& fh, void* buf, MPI_Status* status) {
    return end_split(fh, Direction::read, Split::at_all, buf, status);
}

Error file_read_ordered(Context&, io::File& fh, void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, MPI_Status* status) {
    return do_ordered(fh, access_of(Direction::read, Pointer::shared, 0, buf, count, datatype),
                      status);
}

Error file_read_ordered_begin(Context&, io::File& fh, void* buf, MPI_Count count,
                              const datatype::Datatype& datatype) {
    return begin_split(fh, access_of(Direction::read, Pointer::shared, 0, buf, count, datatype),
                       Split::ordered);
}

Error file_read_ordered_end(Context&, io::File& fh, void* buf, MPI_Status* status) {
    return end_split(fh, Direction::read, Split::ordered, buf, status);
}

Error file_read_shared(Context&, io::File& fh, void* buf, MPI_Count count,
                       const datatype::Datatype& datatype, MPI_Status* status) {
    return do_independent(fh, access_of(Direction::read, Pointer::shared, 0, buf, count, datatype),
                          status);
}

Error file_write(Context&, io::File& fh, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, MPI_Status* status) {
    return do_independent(
        fh, access_of(Direction::write, Pointer::individual, 0, buf, count, datatype), status);
}

Error file_write_all(Context&, io::File& fh, const void* buf, MPI_Count count,
                     const datatype::Datatype& datatype, MPI_Status* status) {
    return do_collective(
        fh, access_of(Direction::write, Pointer::individual, 0, buf, count, datatype), status);
}

Error file_write_all_begin(Context&, io::File& fh, const void* buf, MPI_Count count,
                           const datatype::Datatype& datatype) {
    return begin_split(
        fh, access_of(Direction::write, Pointer::individual, 0, buf, count, datatype), Split::all);
}

Error file_write_all_end(Context&, io::File& fh, const void* buf, MPI_Status* status) {
    return end_split(fh, Direction::write, Split::all, buf, status);
}

Error file_write_at(Context&, io::File& fh, MPI_Offset offset, const void* buf, MPI_Count count,
                    const datatype::Datatype& datatype, MPI_Status* status) {
    return do_independent(
        fh, access_of(Direction::write, Pointer::explicit_offset, offset, buf, count, datatype),
        status);
}

Error file_write_at_all(Context&, io::File& fh, MPI_Offset offset, const void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, MPI_Status* status) {
    return do_collective(
        fh, access_of(Direction::write, Pointer::explicit_offset, offset, buf, count, datatype),
        status);
}

Error file_write_at_all_begin(Context&, io::File& fh, MPI_Offset offset, const void* buf,
                              MPI_Count count, const datatype::Datatype& datatype) {
    return begin_split(
        fh, access_of(Direction::write, Pointer::explicit_offset, offset, buf, count, datatype),
        Split::at_all);
}

Error file_write_at_all_end(Context&, io::File& fh, const void* buf, MPI_Status* status) {
    return end_split(fh, Direction::write, Split::at_all, buf, status);
}

Error file_write_ordered(Context&, io::File& fh, const void* buf, MPI_Count count,
                         const datatype::Datatype& datatype, MPI_Status* status) {
    return do_ordered(fh, access_of(Direction::write, Pointer::shared, 0, buf, count, datatype),
                      status);
}

Error file_write_ordered_begin(Context&, io::File& fh, const void* buf, MPI_Count count,
                               const datatype::Datatype& datatype) {
    return begin_split(fh, access_of(Direction::write, Pointer::shared, 0, buf, count, datatype),
                       Split::ordered);
}

Error file_write_ordered_end(Context&, io::File& fh, const void* buf, MPI_Status* status) {
    return end_split(fh, Direction::write, Split::ordered, buf, status);
}

Error file_write_shared(Context&, io::File& fh, const void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, MPI_Status* status) {
    return do_independent(fh, access_of(Direction::write, Pointer::shared, 0, buf, count, datatype),
                          status);
}

} // namespace warren::mpi
