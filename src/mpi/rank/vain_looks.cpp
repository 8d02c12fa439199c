#include "mpi/rank/vain_looks.hpp"

#include <pthread.h>
#include <sys/resource.h>

namespace warren {

VainLooks::Switches VainLooks::count_switches() {
    rusage usage = {};
    getrusage(RUSAGE_THREAD, &usage);
    return {.thread = static_cast<std::uint64_t>(pthread_self()), .involuntary = usage.ru_nivcsw};
}

} // namespace warren
