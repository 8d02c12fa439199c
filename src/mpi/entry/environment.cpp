#include "mpi/entry/environment.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <pthread.h>
#include <string>
#include <sys/utsname.h>

#include "mpi/calls.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/failure.hpp"
#include "mpi/entry/release.hpp"
#include "warren/version.h"

namespace warren::mpi {

namespace {

// Copies a text to a caller's array of `room` bytes.
void give(const char* text, char* result, int* length, std::size_t room) {
    const std::size_t bytes = std::min(std::strlen(text), room - 1);
    std::memcpy(result, text, bytes);
    result[bytes] = '\0';
    *length = static_cast<int>(bytes);
}

} // namespace

Error init(int* argc, char*** argv) {
    int provided;
    return init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

Error init_thread(int*, char***, int required, int* provided) {
    if (life() != Life::before_init) {
        return fail(MPI_ERR_OTHER, life() == Life::after_finalize
                                       ? "MPI cannot be initialised again after MPI_Finalize"
                                       : "MPI is initialised already");
    }
    int level = MPI_THREAD_MULTIPLE;
    for (const int known : {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED}) {
        if (required <= known) {
            level = known;
            break;
        }
    }
    if (Error error = make_context(level)) {
        return error;
    }
    *provided = level;
    return {};
}

Error finalize() {
    Context* context = process_context();
    if (context == nullptr || life() != Life::running) {
        return fail(MPI_ERR_OTHER, life() == Life::after_finalize ? "was called before"
                                                                  : "MPI is not initialised");
    }
    {
        const std::lock_guard guard(context->rank.lock);
        // The first thing of all: the delete functions of MPI_COMM_SELF, while MPI still works.
        if (Error error = release_attached(*context, context->communicators.self())) {
            return error;
        }
        begin_end_of_context();
        context->messages.current_call = calls::MPI_Finalize;
        if (context->sessions.live() == 0) {
            context->ports.close_all();
            context->messages.flush();
        }
        if (Error error = release_attached(*context, context->communicators.world())) {
            return error;
        }
    }
    end_context();
    return {};
}

Error initialized(int* flag) {
    *flag = life() != Life::before_init;
    return {};
}

Error finalized(int* flag) {
    *flag = life() == Life::after_finalize;
    return {};
}

Error query_thread(Context& context, int* provided) {
    *provided = context.thread_level;
    return {};
}

Error is_thread_main(Context& context, int* flag) {
    *flag = pthread_equal(context.main_thread, pthread_self()) != 0 ? 1 : 0;
    return {};
}

Error abort(Context& context, comm::Communicator& comm, int errorcode) {
    if (context.rank.header().keeps_going != 0) {
        end_part(context, comm, errorcode);
    }
    char text[160];
    std::snprintf(text, sizeof text, "rank %d of %d called MPI_Abort with code %d", comm.rank(),
                  comm.size(), errorcode);
    end_job(context, node::JobEnd::aborted, errorcode,
            context.rank.bootstrap().has_launcher() ? "" : text);
}

Error get_version(int* version, int* subversion) {
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return {};
}

Error get_library_version(char* version, int* resultlen) {
    const std::string text =
        std::string("Warren ") + warren_version() + ", MPI 5.0, standard ABI 1.0";
    give(text.c_str(), version, resultlen, MPI_MAX_LIBRARY_VERSION_STRING);
    return {};
}

Error abi_get_version(int* abi_major, int* abi_minor) {
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return {};
}

Error get_processor_name(Context&, char* name, int* resultlen) {
    utsname machine;
    give(uname(&machine) == 0 ? machine.nodename : "localhost", name, resultlen,
         MPI_MAX_PROCESSOR_NAME);
    return {};
}

double wtime() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wtick() {
    timespec resolution;
    clock_getres(CLOCK_MONOTONIC, &resolution);
    return static_cast<double>(resolution.tv_sec) + 1e-9 * static_cast<double>(resolution.tv_nsec);
}

int pcontrol(int) {
    return MPI_SUCCESS;
}

MPI_Aint aint_add(MPI_Aint base, MPI_Aint disp) {
    return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) +
                                 static_cast<std::uintptr_t>(disp));
}

MPI_Aint aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
    return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) -
                                 static_cast<std::uintptr_t>(addr2));
}

} // namespace warren::mpi
