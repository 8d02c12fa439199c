// Processor time: an image's is that of its threads. A fibre's is the time for which workers have
// run it.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/thread.hpp"
#include "runtime/fibres/scheduler.hpp"

namespace warren::image::libc {

namespace {

constexpr std::uint64_t ns_of_s = 1'000'000'000;
constexpr std::uint64_t ns_of_us = 1'000;

timespec as_timespec(std::uint64_t ns) {
    return {static_cast<std::time_t>(ns / ns_of_s), static_cast<long>(ns % ns_of_s)};
}

timeval as_timeval(std::uint64_t ns) {
    return {static_cast<std::time_t>(ns / ns_of_s),
            static_cast<suseconds_t>(ns % ns_of_s / ns_of_us)};
}

std::uint64_t in_ns(const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * ns_of_s +
           static_cast<std::uint64_t>(time.tv_usec) * ns_of_us;
}

std::clock_t in_ticks(const timeval& time) {
    static const auto per_s = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    return static_cast<std::clock_t>(in_ns(time) * per_s / ns_of_s);
}

} // namespace

int clock_gettime(clockid_t clock, timespec* time) {
    Image* image = nullptr;
    if (clock == CLOCK_PROCESS_CPUTIME_ID) {
        image = running_image();
    } else if (clock == CLOCK_THREAD_CPUTIME_ID) {
        if (const fibre::Fibre* fibre = fibre::Scheduler::current()) {
            *time = as_timespec(fibre::scheduler()->ran_ns(*fibre));
            return 0;
        }
    }
    if (image == nullptr) {
        return ::clock_gettime(clock, time);
    }
    *time = as_timespec(image->processor_ns());
    return 0;
}

std::clock_t clock() {
    Image* image = running_image();
    constexpr std::uint64_t ns_of_tick = ns_of_s / static_cast<std::uint64_t>(CLOCKS_PER_SEC);
    return image == nullptr ? std::clock()
                            : static_cast<std::clock_t>(image->processor_ns() / ns_of_tick);
}

// The clock of the calling process: programs ask it by clock_gettime.
int clock_getcpuclockid(pid_t process, clockid_t* clock) {
    if (running_image() != nullptr && (process == 0 || process == getpid())) {
        *clock = CLOCK_PROCESS_CPUTIME_ID;
        return 0;
    }
    return ::clock_getcpuclockid(process, clock);
}

// Page faults and context switches are the calling kernel thread's, because the system counts them
// for processes and threads only.
int getrusage(int who, rusage* usage) {
    Image* image = running_image();
    const fibre::Fibre* fibre = fibre::Scheduler::current();
    if (image == nullptr || (who != RUSAGE_SELF && (who != RUSAGE_THREAD || fibre == nullptr))) {
        return ::getrusage(static_cast<__rusage_who>(who), usage);
    }
    rusage process{};
    if (::getrusage(RUSAGE_SELF, &process) != 0 || ::getrusage(RUSAGE_THREAD, usage) != 0) {
        return -1;
    }
    usage->ru_maxrss = process.ru_maxrss;
    const std::uint64_t all =
        who == RUSAGE_SELF ? image->processor_ns() : fibre::scheduler()->ran_ns(*fibre);
    // The system's part is known of kernel threads only.
    const std::uint64_t system = fibre != nullptr ? 0 : std::min(all, in_ns(usage->ru_stime));
    usage->ru_stime = as_timeval(system);
    usage->ru_utime = as_timeval(all - system);
    return 0;
}

std::clock_t times(tms* result) {
    const std::clock_t now = ::times(result);
    rusage usage{};
    if (running_image() != nullptr && result != nullptr &&
        libc::getrusage(RUSAGE_SELF, &usage) == 0) {
        result->tms_utime = in_ticks(usage.ru_utime);
        result->tms_stime = in_ticks(usage.ru_stime);
    }
    return now;
}

} // namespace warren::image::libc
