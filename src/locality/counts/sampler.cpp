#include "locality/counts/sampler.hpp"

#include <algorithm>
#include <memory>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dr_api.h"
#include "locality/counts/instrument.hpp"

namespace warren::locality::counts {
namespace {

// What making a block's code takes, and the share of the time that may go into it.
constexpr std::uint64_t block_ns = 30'000;
constexpr std::uint64_t block_share = 25;     // a 25th
constexpr std::uint64_t look_ns = 20'000'000; // at the kernel's rings, so that they don't overflow

// All that programs can have. (The whole of the address space is more than DynamoRIO stands.)
void make_all_code_anew() {
    constexpr std::uintptr_t begin = 4096;
    constexpr std::uintptr_t end = std::uintptr_t{1} << 47;
    // Without stopping the threads (dr_unlink_flush_region) some would now and then return to
    // nowhere, through tables that change under them.
    dr_flush_region(reinterpret_cast<app_pc>(begin), end - begin);
}

} // namespace

Sampler::Sampler(Recorder& recorder)
    : recorder_(recorder), pid_(static_cast<std::uint32_t>(getpid())), random_(now_ns() | 1) {
    events_ = std::make_unique<PerfEvents>();
    PerfOptions options;
    options.calls = 1;
    options.from_exec = false;
    if (Error error = events_->open(getpid(), options)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        recorder.miss("first touches are those of bursts only, and so are often later ones: " +
                      record->text);
        events_.reset();
    } else if (!events_->sees_kernel()) {
        recorder.miss("touches within system calls are not seen: the system lets ordinary users "
                      "see none (kernel.perf_event_paranoid)");
    }
    recorder.faults_tell_firsts(events_ != nullptr);
}

bool Sampler::start(std::string& problem) {
    ending_ = false;
    held_until_ns_ = 0;
    running_ = true;
    if (!dr_create_client_thread(run, this)) {
        running_ = false;
        problem = "DynamoRIO refuses a thread for the bursts";
        return false;
    }
    return true;
}

void Sampler::stop() {
    if (!taking_.exchange(true)) { // else it was in the middle of it
        taking_ = false;
        take_faults(true);
    }
}

void Sampler::run(void* sampler) {
    auto& self = *static_cast<Sampler*>(sampler);
    // This thread is a process of its own for the kernel, which the end of the program's, by a
    // signal perhaps, doesn't end.
    self.program_ = static_cast<int>(syscall(SYS_pidfd_open, self.pid_, 0));
    self.bursts();
    if (self.program_ >= 0) {
        close(self.program_);
    }
    self.running_ = false;
}

void Sampler::end() {
    constexpr int longest_ms = 1000;
    ending_ = true;
    for (int turn = 0; running_ && turn < longest_ms; ++turn) {
        dr_sleep(1);
    }
}

void Sampler::bursts() {
    const Settings& settings = recorder_.settings();
    const std::uint64_t gap = settings.period_ns - settings.burst_ns;
    std::uint64_t pause = random_below(gap);
    while (wait(pause)) {
        const std::uint64_t blocks_before = blocks_made();
        change(true);
        const bool goes_on = wait(settings.burst_ns);
        change(false);
        if (!goes_on) {
            return;
        }
        // As many again are made for the time without counting.
        const std::uint64_t cost = 2 * (blocks_made() - blocks_before) * block_ns;
        const std::uint64_t wanted = std::max(gap, cost * block_share);
        pause = wanted / 2 + random_below(wanted);
    }
}

void Sampler::change(bool count) {
    // Together with hold(): either it sees that this is at work, or this sees that it waits.
    changing_.store(true);
    while (now_ns() < held_until_ns_.load() && !ending_) {
        end_with_program();
        changing_.store(false);
        dr_sleep(1);
        changing_.store(true);
    }
    count_in_new_code(count);
    if (count) {
        recorder_.burst(true);
    }
    make_all_code_anew();
    if (!count) {
        recorder_.burst(false);
    }
    changing_.store(false);
}

void Sampler::hold(std::uint64_t ns) {
    constexpr int longest_ms = 1000;
    held_until_ns_.store(ns == forever ? forever : now_ns() + ns);
    for (int turn = 0; changing_.load() && turn < longest_ms; ++turn) {
        dr_sleep(1);
    }
}

// So long, and until the program has had as much processor time, but not forever.
bool Sampler::wait(std::uint64_t ns) {
    constexpr std::uint64_t patience = 20;
    const std::uint64_t begin = now_ns();
    const std::uint64_t processor_begin = processor_ns(pid_);
    for (std::uint64_t past = 0; past < patience * ns && !ending_; past = now_ns() - begin) {
        end_with_program();
        const std::uint64_t used = std::min(past, processor_ns(pid_) - processor_begin);
        if (used >= ns) {
            break;
        }
        dr_sleep(
            static_cast<int>(std::max<std::uint64_t>(1, std::min(ns - used, look_ns) / 1'000'000)));
        take_faults(false);
    }
    return !ending_;
}

void Sampler::end_with_program() const {
    pollfd ended{program_, POLLIN, 0};
    if (program_ >= 0 && poll(&ended, 1, 0) == 1) {
        syscall(SYS_exit_group, 0);
    }
}

void Sampler::take_faults(bool all) {
    if (events_ == nullptr || taking_.exchange(true)) {
        return;
    }
    for (const PerfEvent& event : events_->collect(all)) {
        if (event.kind == PerfEvent::fault && event.pid == pid_) {
            take(event);
        }
    }
    recorder_.faults_lost(events_->lost());
    taking_ = false;
}

void Sampler::take(const PerfEvent& event) {
    if (dr_memory_is_dr_internal(reinterpret_cast<byte*>(event.address)) ||
        is_reserved(event.address)) {
        return;
    }
    // Code that DynamoRIO has made of the program's does what that does.
    bool write = event.in_kernel;
    if (!write && event.instruction != 0) {
        const auto known = accesses_.find(event.instruction);
        locality::Access access = locality::Access::unknown;
        if (known != accesses_.end()) {
            access = known->second;
        } else {
            std::uint8_t code[16];
            std::size_t got = 0;
            dr_safe_read(reinterpret_cast<const void*>(event.instruction), sizeof code, code, &got);
            access = access_of(code, got);
            if (accesses_.size() > 100'000) { // code comes and goes
                accesses_.clear();
            }
            accesses_.emplace(event.instruction, access);
        }
        write = access == locality::Access::unknown ||
                writes(access, event.address, event.rsi, event.rdi, event.rsp);
    }
    recorder_.fault(event.tid, event.address, event.bytes, event.time_ns, write);
}

std::uint64_t Sampler::random_below(std::uint64_t limit) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return limit == 0 ? 0 : random_ % limit;
}

} // namespace warren::locality::counts
