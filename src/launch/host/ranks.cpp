#include "launch/host/ranks.hpp"

#include <atomic>
#include <cerrno>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/host_plan.hpp"
#include "member/member.hpp"

namespace warren::launch {

namespace {

struct Ranks {
    int reports = -1;
    pid_t process = 0; // children of fork report nothing
    std::atomic<std::uint32_t> running{0};
};

Ranks& ranks() {
    static Ranks& only = *new Ranks; // outlives everything
    return only;
}

void report(std::uint32_t rank, HostReport::Kind kind, int value) {
    const HostReport text{.rank = rank, .kind = kind, .value = value};
    const int error = errno;
    while (getpid() == ranks().process && write(ranks().reports, &text, sizeof text) < 0 &&
           errno == EINTR) {
    }
    errno = error;
}

} // namespace

void prepare_ranks(std::uint32_t count, int reports) {
    Ranks& all = ranks();
    all.reports = reports;
    all.process = getpid();
    all.running = count;
}

std::uint32_t rank_of_thread() {
    const member::Member* member = warren_member_current();
    return member != nullptr ? member->number : no_rank;
}

void report_start(std::uint32_t rank) {
    report(rank, HostReport::Kind::started, static_cast<int>(syscall(SYS_gettid)));
}

void report_end(std::uint32_t rank, int exit_code) {
    report(rank, HostReport::Kind::ended, exit_code);
    // Who reads a pipe or a socket of the rank sees its end, as of a process. Threads that the
    // program has left behind, or that are about to end, keep the table.
    if (unshare(CLONE_FILES) == 0) {
        syscall(SYS_close_range, 0U, ~0U, 0U);
    }
    if (ranks().running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        _exit(0);
    }
}

void report_crash(std::uint32_t rank, int signal) {
    report(rank, HostReport::Kind::crashed, signal);
}

} // namespace warren::launch
