#include "launch/host/ranks.hpp"

#include <atomic>
#include <cerrno>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "runtime/process_ranks/process_ranks.hpp"

namespace warren::launch {

namespace {

// On the stack of who waits until it is written.
struct Letter {
    HostReport report;
    Letter* next = nullptr;
    std::atomic<std::uint32_t> written{0};
};

struct Ranks {
    int reports = -1;
    pid_t process = 0; // children of fork report nothing
    std::atomic<std::uint32_t> running{0};
    std::atomic<Letter*> letters{nullptr}; // to be written, the newest first
    std::atomic<std::uint32_t> posted{0};  // counts them
};

Ranks& ranks() {
    static Ranks& only = *new Ranks; // outlives everything
    return only;
}

void write_report(const HostReport& report) {
    while (write(ranks().reports, &report, sizeof report) < 0 && errno == EINTR) {
    }
}

// Hands the report to the main thread, whose descriptors no program can close or replace.
void post(std::uint32_t rank, HostReport::Kind kind, int value) {
    Ranks& all = ranks();
    if (getpid() != all.process) {
        return;
    }
    const int error = errno;
    Letter letter{.report = {.rank = rank, .kind = kind, .value = value}};
    letter.next = all.letters.load(std::memory_order_relaxed);
    while (!all.letters.compare_exchange_weak(letter.next, &letter, std::memory_order_release,
                                              std::memory_order_relaxed)) {
    }
    all.posted.fetch_add(1, std::memory_order_release);
    kernel_wake(all.posted, 1);
    while (letter.written.load(std::memory_order_acquire) == 0) {
        kernel_wait(letter.written, 0, nullptr);
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

namespace {

thread_local std::uint32_t acting_rank = no_rank;

} // namespace

std::uint32_t act_for(std::uint32_t rank) {
    return std::exchange(acting_rank, rank);
}

std::uint32_t rank_of_thread() {
    if (acting_rank != no_rank) {
        return acting_rank;
    }
    const process_ranks::ProcessRank* member = warren_member_current();
    return member != nullptr ? member->number : no_rank;
}

void report_start(std::uint32_t rank) {
    write_report({.rank = rank,
                  .kind = HostReport::Kind::started,
                  .value = static_cast<int>(syscall(SYS_gettid))});
}

void pass_reports_on() {
    Ranks& all = ranks();
    while (true) {
        const std::uint32_t posted = all.posted.load(std::memory_order_acquire);
        Letter* first = nullptr; // the oldest
        for (Letter* letter = all.letters.exchange(nullptr, std::memory_order_acquire);
             letter != nullptr;) {
            Letter* const older = letter->next;
            letter->next = first;
            first = letter;
            letter = older;
        }
        if (first == nullptr) {
            kernel_wait(all.posted, posted, nullptr);
        }
        while (first != nullptr) {
            Letter& letter = *first;
            first = letter.next; // before its owner goes on
            write_report(letter.report);
            letter.written.store(1, std::memory_order_release);
            kernel_wake(letter.written, 1);
        }
    }
}

void report_end(std::uint32_t rank, int exit_code) {
    post(rank, HostReport::Kind::ended, exit_code);
    // Who reads a pipe or a socket of the rank sees its end, as of a process. Threads that the
    // program has left behind, or that are about to end, keep the table.
    if (unshare(CLONE_FILES) == 0) {
        syscall(SYS_close_range, 0U, ~0U, 0U);
    }
    if (ranks().running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        _exit(0);
    }
}

void report_end_of_fibre(std::uint32_t rank, int exit_code) {
    post(rank, HostReport::Kind::ended, exit_code);
    if (ranks().running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        _exit(0);
    }
}

void report_crash(std::uint32_t rank, int signal, bool overflow) {
    post(rank, overflow ? HostReport::Kind::overflowed : HostReport::Kind::crashed, signal);
}

void report_stuck() {
    write_report({.rank = 0, .kind = HostReport::Kind::stuck, .value = 0});
}

} // namespace warren::launch
