// Files (MPI chapter 14): what their entry points call. Handles, counts and buffers have been
// checked; errors belong to the file, or to MPI_FILE_NULL. Under the rank's lock, which waits
// release.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

// Takes the part of a rank whose arguments of MPI_File_open are wrong: the others don't wait.
Error refuse_file_open(Context& context, comm::Communicator& comm, Error wrong);
Error file_close(Context& context, io::File& fh);
Error file_delete(Context& context, const char* filename, comm::Info* info);
Error file_get_amode(Context& context, io::File& fh, int* amode);
Error file_get_atomicity(Context& context, io::File& fh, int* flag);
Error file_get_byte_offset(Context& context, io::File& fh, MPI_Offset offset, MPI_Offset* disp);
Error file_get_group(Context& context, io::File& fh, MPI_Group* group);
Error file_get_info(Context& context, io::File& fh, MPI_Info* info_used);
Error file_get_position(Context& context, io::File& fh, MPI_Offset* offset);
Error file_get_position_shared(Context& context, io::File& fh, MPI_Offset* offset);
Error file_get_size(Context& context, io::File& fh, MPI_Offset* size);
Error file_get_type_extent(Context& context, io::File& fh, const datatype::Datatype& datatype,
                           MPI_Count& extent);
Error file_get_view(Context& context, io::File& fh, MPI_Offset* disp, MPI_Datatype* etype,
                    MPI_Datatype* filetype, char* datarep);
Error file_iread(Context& context, io::File& fh, void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, MPI_Request* request);
Error file_iread_all(Context& context, io::File& fh, void* buf, MPI_Count count,
                     const datatype::Datatype& datatype, MPI_Request* request);
Error file_iread_at(Context& context, io::File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                    const datatype::Datatype& datatype, MPI_Request* request);
Error file_iread_at_all(Context& context, io::File& fh, MPI_Offset offset, void* buf,
                        MPI_Count count, const datatype::Datatype& datatype, MPI_Request* request);
Error file_iread_shared(Context& context, io::File& fh, void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, MPI_Request* request);
Error file_iwrite(Context& context, io::File& fh, const void* buf, MPI_Count count,
                  const datatype::Datatype& datatype, MPI_Request* request);
Error file_iwrite_all(Context& context, io::File& fh, const void* buf, MPI_Count count,
                      const datatype::Datatype& datatype, MPI_Request* request);
Error file_iwrite_at(Context& context, io::File& fh, MPI_Offset offset, const void* buf,
                     MPI_Count count, const datatype::Datatype& datatype, MPI_Request* request);
Error file_iwrite_at_all(Context& context, io::File& fh, MPI_Offset offset, const void* buf,
                         MPI_Count count, const datatype::Datatype& datatype, MPI_Request* request);
Error file_iwrite_shared(Context& context, io::File& fh, const void* buf, MPI_Count count,
                         const datatype::Datatype& datatype, MPI_Request* request);
Error file_open(Context& context, comm::Communicator& comm, const char* filename, int amode,
                comm::Info* info, MPI_File* fh);
Error file_preallocate(Context& context, io::File& fh, MPI_Offset size);
Error file_read(Context& context, io::File& fh, void* buf, MPI_Count count,
                const datatype::Datatype& datatype, MPI_Status* status);
Error file_read_all(Context& context, io::File& fh, void* buf, MPI_Count count,
                    const datatype::Datatype& datatype, MPI_Status* status);
Error file_read_all_begin(Context& context, io::File& fh, void* buf, MPI_Count count,
                          const datatype::Datatype& datatype);
Error file_read_all_end(Context& context, io::File& fh, void* buf, MPI_Status* status);
Error file_read_at(Context& context, io::File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                   const datatype::Datatype& datatype, MPI_Status* status);
Error file_read_at_all(Context& context, io::File& fh, MPI_Offset offset, void* buf,
                       MPI_Count count, const datatype::Datatype& datatype, MPI_Status* status);
Error file_read_at_all_begin(Context& context, io::File& fh, MPI_Offset offset, void* buf,
                             MPI_Count count, const datatype::Datatype& datatype);
Error file_read_at_all_end(Context& context, io::File& fh, void* buf, MPI_Status* status);
Error file_read_ordered(Context& context, io::File& fh, void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, MPI_Status* status);
Error file_read_ordered_begin(Context& context, io::File& fh, void* buf, MPI_Count count,
                              const datatype::Datatype& datatype);
Error file_read_ordered_end(Context& context, io::File& fh, void* buf, MPI_Status* status);
Error file_read_shared(Context& context, io::File& fh, void* buf, MPI_Count count,
                       const datatype::Datatype& datatype, MPI_Status* status);
Error file_seek(Context& context, io::File& fh, MPI_Offset offset, int whence);
Error file_seek_shared(Context& context, io::File& fh, MPI_Offset offset, int whence);
Error file_set_atomicity(Context& context, io::File& fh, int flag);
Error file_set_info(Context& context, io::File& fh, comm::Info& info);
Error file_set_size(Context& context, io::File& fh, MPI_Offset size);
Error file_set_view(Context& context, io::File& fh, MPI_Offset disp,
                    const datatype::Datatype& etype, const datatype::Datatype& filetype,
                    const char* datarep, comm::Info* info);
Error file_sync(Context& context, io::File& fh);
Error file_write(Context& context, io::File& fh, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, MPI_Status* status);
Error file_write_all(Context& context, io::File& fh, const void* buf, MPI_Count count,
                     const datatype::Datatype& datatype, MPI_Status* status);
Error file_write_all_begin(Context& context, io::File& fh, const void* buf, MPI_Count count,
                           const datatype::Datatype& datatype);
Error file_write_all_end(Context& context, io::File& fh, const void* buf, MPI_Status* status);
Error file_write_at(Context& context, io::File& fh, MPI_Offset offset, const void* buf,
                    MPI_Count count, const datatype::Datatype& datatype, MPI_Status* status);
Error file_write_at_all(Context& context, io::File& fh, MPI_Offset offset, const void* buf,
                        MPI_Count count, const datatype::Datatype& datatype, MPI_Status* status);
Error file_write_at_all_begin(Context& context, io::File& fh, MPI_Offset offset, const void* buf,
                              MPI_Count count, const datatype::Datatype& datatype);
Error file_write_at_all_end(Context& context, io::File& fh, const void* buf, MPI_Status* status);
Error file_write_ordered(Context& context, io::File& fh, const void* buf, MPI_Count count,
                         const datatype::Datatype& datatype, MPI_Status* status);
Error file_write_ordered_begin(Context& context, io::File& fh, const void* buf, MPI_Count count,
                               const datatype::Datatype& datatype);
Error file_write_ordered_end(Context& context, io::File& fh, const void* buf, MPI_Status* status);
Error file_write_shared(Context& context, io::File& fh, const void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, MPI_Status* status);
Error register_datarep(Context& context, const char* datarep,
                       MPI_Datarep_conversion_function* read_conversion_fn,
                       MPI_Datarep_conversion_function_c* read_conversion_fn_c,
                       MPI_Datarep_conversion_function* write_conversion_fn,
                       MPI_Datarep_conversion_function_c* write_conversion_fn_c,
                       MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state);

} // namespace warren::mpi
