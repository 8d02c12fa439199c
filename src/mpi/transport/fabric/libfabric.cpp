#include "mpi/transport/fabric/libfabric.hpp"

#include <cstdint>
#include <dlfcn.h>

#include "mpi.h"

namespace warren::transport::fabric {

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

} // namespace

Error Libfabric::load(Libfabric& loaded) {
    void* const library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
        return fail(MPI_ERR_OTHER,
                    "a job of several nodes needs libfabric 1.17 or later: %s (install libfabric1, "
                    "or name its folder in LD_LIBRARY_PATH)",
                    dlerror());
    }
    if (!find(library, "fi_getinfo", loaded.getinfo) ||
        !find(library, "fi_freeinfo", loaded.freeinfo) ||
        !find(library, "fi_dupinfo", loaded.dupinfo) ||
        !find(library, "fi_fabric", loaded.fabric) ||
        !find(library, "fi_strerror", loaded.strerror) ||
        !find(library, "fi_version", loaded.version)) {
        return fail(MPI_ERR_OTHER, "libfabric.so.1 lacks a function: %s", dlerror());
    }
    const std::uint32_t there = loaded.version();
    if (FI_VERSION_LT(there, api_version)) {
        return fail(MPI_ERR_OTHER, "libfabric is version %u.%u; a job of several nodes needs 1.17",
                    FI_MAJOR(there), FI_MINOR(there));
    }
    return {};
}

} // namespace warren::transport::fabric
