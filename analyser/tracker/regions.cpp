// Marks of the program: phases, by warren/locality.h or any library's MPI_Pcontrol, and names of
// structures.

#include <cstdarg>
#include <dlfcn.h>

#include "analyser/tracker/tracker.hpp"
#include "warren/locality.h"

namespace warren::locality::tracker {

namespace {

void phase(PhaseRecord::Event event, std::int32_t level, const char* name) {
    const Inside inside;
    if (inside) {
        record_phase(event, level, name);
    }
}

} // namespace

extern "C" {

// The constructor makes processes connect that allocate nothing.
[[gnu::constructor]] static void make_known() {
    threshold();
}

void warren_locality_begin(const char* name) {
    phase(PhaseRecord::began, 0, name);
}

void warren_locality_end(const char* name) {
    phase(PhaseRecord::ended, 0, name);
}

void warren_locality_name(const void* memory, std::size_t bytes, const char* name) {
    const Inside inside;
    if (inside) {
        record_name(memory, bytes, name);
    }
}

int warren_locality_recording(void) {
    return threshold() != UINT64_MAX ? 1 : 0;
}

// Only profiling libraries use the further arguments. Those that fit in registers are passed on.
int MPI_Pcontrol(int level, ...) {
    phase(PhaseRecord::pcontrol, level, nullptr);
    using Pcontrol = int (*)(int, ...);
    static Pcontrol next = nullptr;
    if (next == nullptr) {
        next = reinterpret_cast<Pcontrol>(dlsym(RTLD_NEXT, "MPI_Pcontrol"));
    }
    if (next == nullptr) {
        return 0; // MPI_SUCCESS: it has no effect without a profiler
    }
    va_list arguments;
    va_start(arguments, level);
    void* first = va_arg(arguments, void*);
    void* second = va_arg(arguments, void*);
    void* third = va_arg(arguments, void*);
    va_end(arguments);
    return next(level, first, second, third);
}

// Fortran's MPI_Pcontrol, which libraries implement without calling the C function. The `f08` form
// passes an integer, too.
static void fortran_pcontrol(const int* level, const char* name) {
    phase(PhaseRecord::pcontrol, *level, nullptr);
    if (void* next = dlsym(RTLD_NEXT, name)) {
        const Inside inside; // it may call the above
        reinterpret_cast<void (*)(const int*)>(next)(level);
    }
}

// NOLINTBEGIN(readability-identifier-naming)
void mpi_pcontrol_(const int* level) {
    fortran_pcontrol(level, "mpi_pcontrol_");
}
void mpi_pcontrol_f08_(const int* level) {
    fortran_pcontrol(level, "mpi_pcontrol_f08_");
}
// NOLINTEND(readability-identifier-naming)

} // extern "C"

} // namespace warren::locality::tracker
