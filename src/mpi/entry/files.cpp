// Files: how they are opened, and what they are. See files_access.cpp for what is done with them.
#include "mpi/entry/files.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include "mpi/entry/context.hpp"
#include "mpi/entry/file_release.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/rank_state.hpp"
#include "mpi/io/file_form.hpp"

namespace warren::mpi {

namespace {

io::Hints hints_of(Context& context, const comm::Info* info, io::Hints hints) {
    if (info != nullptr) {
        const std::lock_guard lock(context.process.mutex);
        hints.take(*info);
    }
    return hints;
}

// The hints of a file that is opened. The environment overrides the program.
io::Hints first_hints(Context& context, const comm::Info* info) {
    io::Hints hints = hints_of(context, info, {});
    if (const char* path = rank_environment("ROMIO_HINTS")) {
        hints.take_file(path);
    }
    return hints;
}

Error check_communicator(const comm::Communicator& comm) {
    if (comm.inter()) {
        return fail(MPI_ERR_COMM, "comm is an intercommunicator");
    }
    return {};
}

} // namespace

io::File* file_of(Context& context, const comm::Communicator& communicator) {
    io::File* found = nullptr;
    context.files.for_each([&](io::File& file) {
        if (&file.communicator() == &communicator) {
            found = &file;
        }
    });
    return found;
}

void release_attached(Context& context, io::File& file) {
    if (file.error_handler != nullptr) {
        const std::lock_guard lock(context.process.mutex);
        context.error_handlers.release(*std::exchange(file.error_handler, nullptr));
    }
}

Error file_open(Context& context, comm::Communicator& comm, const char* filename, int amode,
                comm::Info* info, MPI_File* fh) {
    *fh = MPI_FILE_NULL;
    if (Error error = check_communicator(comm)) {
        return error;
    }
    // The file gets a communicator of its own.
    comm::Communicator* own = nullptr;
    if (Error error = make_of_first(context, comm, comm.size(), own)) {
        return error;
    }
    io::File* file = context.files.insert(context.window_server, context.messages, *own,
                                          *context.representations.find("native"));
    Error error = file != nullptr
                      ? file->open(filename, amode, first_hints(context, info),
                                   rank_environment("ROMIO_FSTYPE_FORCE"))
                      : io::File::agree_to_open(context.messages, *own, amode,
                                                fail(MPI_ERR_NO_MEM, "no memory for another file"));
    if (error) {
        if (file != nullptr) {
            context.files.remove(*file);
        }
        give_up(context, *own);
        return error;
    }
    if (context.file_error_handler != nullptr) {
        const std::lock_guard lock(context.process.mutex);
        file->error_handler = context.file_error_handler;
        context.error_handlers.retain(*file->error_handler);
    }
    *fh = handle_of(file);
    return {};
}

Error refuse_file_open(Context& context, comm::Communicator& comm, Error wrong) {
    comm::Communicator* own = nullptr;
    Error error = check_communicator(comm);
    error = error ? error : make_of_first(context, comm, comm.size(), own);
    if (error) { // at all ranks
        error.drop();
        return wrong;
    }
    error = io::File::agree_to_open(context.messages, *own, MPI_MODE_RDONLY, wrong);
    give_up(context, *own);
    return error;
}

Error file_close(Context& context, io::File& fh) {
    Error error = fh.close();
    comm::Communicator& own = fh.communicator();
    if (!error) {
        release_attached(context, fh);
        context.files.remove(fh);
        give_up(context, own);
    }
    return error;
}

Error file_delete(Context&, const char* filename, comm::Info*) {
    return io::File::remove(filename);
}

Error file_get_amode(Context&, io::File& fh, int* amode) {
    *amode = fh.amode();
    return {};
}

Error file_get_atomicity(Context&, io::File& fh, int* flag) {
    *flag = fh.atomic() ? 1 : 0;
    return {};
}

Error file_set_atomicity(Context&, io::File& fh, int flag) {
    return fh.set_atomic(flag != 0);
}

Error file_get_byte_offset(Context&, io::File& fh, MPI_Offset offset, MPI_Offset* disp) {
    return fh.byte_offset(offset, *disp);
}

Error file_get_group(Context& context, io::File& fh, MPI_Group* group) {
    *group = context.communicators.insert_group(fh.communicator().map(), fh.communicator().session);
    return *group != MPI_GROUP_NULL ? Error() : fail(MPI_ERR_NO_MEM, "no memory for another group");
}

Error file_get_info(Context& context, io::File& fh, MPI_Info* info_used) {
    comm::Info info;
    fh.hints.report(info, fh.communicator().size());
    const std::lock_guard lock(context.process.mutex);
    return make_info(context.process, &info, info_used);
}

Error file_set_info(Context& context, io::File& fh, comm::Info& info) {
    fh.take_hints(hints_of(context, &info, fh.hints));
    return {};
}

Error file_get_position(Context&, io::File& fh, MPI_Offset* offset) {
    return fh.position(*offset);
}

Error file_get_position_shared(Context&, io::File& fh, MPI_Offset* offset) {
    return fh.position_shared(*offset);
}

Error file_seek(Context&, io::File& fh, MPI_Offset offset, int whence) {
    return fh.seek(offset, whence);
}

Error file_seek_shared(Context&, io::File& fh, MPI_Offset offset, int whence) {
    return fh.seek_shared(offset, whence);
}

Error file_get_size(Context&, io::File& fh, MPI_Offset* size) {
    return fh.size(*size);
}

Error file_set_size(Context&, io::File& fh, MPI_Offset size) {
    return fh.set_size(size);
}

Error file_preallocate(Context&, io::File& fh, MPI_Offset size) {
    return fh.preallocate(size);
}

Error file_sync(Context&, io::File& fh) {
    return fh.synchronise();
}

Error file_get_type_extent(Context& context, io::File& fh, const datatype::Datatype& datatype,
                           MPI_Count& extent) {
    const datatype::Kept kept(datatype);
    io::FileForms forms(fh.view().representation(), context.rank.lock);
    return forms.extent_of(datatype, extent);
}

Error file_get_view(Context&, io::File& fh, MPI_Offset* disp, MPI_Datatype* etype,
                    MPI_Datatype* filetype, char* datarep) {
    const io::View& view = fh.view();
    *disp = static_cast<MPI_Offset>(view.displacement());
    // (Derived types get a handle that the program frees.)
    *etype = datatype::TypeTable::share(view.etype());
    *filetype = datatype::TypeTable::share(view.filetype());
    std::strcpy(datarep, view.representation().name.c_str());
    return {};
}

Error file_set_view(Context& context, io::File& fh, MPI_Offset disp,
                    const datatype::Datatype& etype, const datatype::Datatype& filetype,
                    const char* datarep, comm::Info* info) {
    const io::Representation* representation = context.representations.find(datarep);
    Error wrong;
    if (representation == nullptr) {
        wrong = fail(MPI_ERR_UNSUPPORTED_DATAREP, "there is no data representation \"%.128s\"",
                     datarep);
    }
    if (Error error = fh.set_view(disp, etype, filetype, representation, wrong)) {
        return error;
    }
    fh.take_hints(hints_of(context, info, fh.hints));
    return {};
}

Error register_datarep(Context& context, const char* datarep,
                       MPI_Datarep_conversion_function* read_conversion_fn,
                       MPI_Datarep_conversion_function_c* read_conversion_fn_c,
                       MPI_Datarep_conversion_function* write_conversion_fn,
                       MPI_Datarep_conversion_function_c* write_conversion_fn_c,
                       MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) {
    const std::size_t length = strnlen(datarep, MPI_MAX_DATAREP_STRING);
    if (length == 0 || length >= MPI_MAX_DATAREP_STRING) {
        return fail(MPI_ERR_ARG, "datarep has %zu characters, not 1 … %d", length,
                    MPI_MAX_DATAREP_STRING - 1);
    }
    if (dtype_file_extent_fn == nullptr) {
        return fail(MPI_ERR_ARG, "dtype_file_extent_fn is a null pointer");
    }
    return context.representations.add({.name = datarep,
                                        .kind = io::Representation::Kind::registered,
                                        .read = read_conversion_fn,
                                        .write = write_conversion_fn,
                                        .read_c = read_conversion_fn_c,
                                        .write_c = write_conversion_fn_c,
                                        .extent = dtype_file_extent_fn,
                                        .extra_state = extra_state});
}

} // namespace warren::mpi
