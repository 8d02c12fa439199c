// The recorder's description of the process in process.json, which it rewrites while the process
// runs and at its end.

#include <string>
#include <unistd.h>

#include "analyser/counts/platform.hpp"
#include "analyser/counts/recorder.hpp"

namespace warren::locality::counts {
namespace {

constexpr const char* estimated =
    "accesses were counted in bursts, and numbers of accesses and bytes are estimates; what bursts "
    "have not met is not there, nor what the dynamic linker accesses";

constexpr const char* untracked =
    "allocations and phases are not recorded: the program has not loaded the library that follows "
    "them (it is linked statically, or has cleared LD_PRELOAD), so the heap is other memory, and "
    "all lives of memory that was used again are added up";

} // namespace

// Who was recorded, and how.
void Recorder::describe_process(ProcessDescription& description) const {
    description.mode = settings_.mode;
    description.granularity = settings_.granularity;
    description.page_size = platform::page_bytes();
    description.pid = pid_;
    description.parent = parent_;
    description.rank = rank_.rank;
    description.size = rank_.size;
    description.rank_source = rank_.source;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    description.host = host;
    const std::string words = read_file("/proc/self/cmdline");
    for (std::size_t at = 0; at < words.size();) {
        description.command.emplace_back(words.c_str() + at);
        at += description.command.back().size() + 1;
    }
    description.executable = executable_;
    description.limit_bytes = settings_.limit_bytes;
    description.threshold = settings_.threshold;
    description.faults = settings_.faults != 0;
}

void Recorder::describe_missing(ProcessDescription& description) const {
    description.missing = missing_;
    if (samples()) {
        description.missing.emplace_back(estimated);
    }
    if (!tracked_) {
        description.missing.emplace_back(untracked);
    }
    for (const std::string& limit : platform::limits(samples())) {
        description.missing.push_back(limit);
    }
}

// Lists the threads and units that have no counters, and why.
void Recorder::describe_uncounted(ProcessDescription& description) const {
    if (uncounted_threads_ != 0) {
        description.lost.push_back(
            {"threads", uncounted_threads_, "there was no address space for their counters"});
    }
    if (process_.clashes != 0) {
        description.lost.push_back(
            {"units", process_.clashes,
             "addresses that differ by a multiple of " +
                 std::to_string(process_.layout.span_bytes() >> 30) +
                 " GiB share counters; a coarser granularity tells them apart"});
    }
    if (process_.failures != 0) {
        description.lost.push_back({"units", process_.failures, "the kernel gave no memory"});
    }
    if (const std::uint64_t missed = missed_accesses_.load(std::memory_order_relaxed)) {
        description.lost.push_back(
            {"accesses", missed,
             "they came while the recorder was at work, in signal handlers, or from threads that "
             "had ended"});
    }
    if (process_.lost_transfers != 0) {
        description.lost.push_back(
            {"transfers", process_.lost_transfers,
             "they came from threads with numbers from " + std::to_string(most_producers) + " on"});
    }
}

// Lists the counts that could not be written. `last`: nothing is described after this call.
void Recorder::describe_unwritten(ProcessDescription& description, bool last) {
    const auto lose = [&](const std::string& what, std::uint64_t count, const std::string& why) {
        if (count != 0) {
            description.lost.push_back({what, count, why});
            // Each failed exec describes the losses again. A number that has been said is not
            // repeated.
            if (std::uint64_t& told = told_losses_[what + why]; told != count && last) {
                told = count;
                platform::say(std::to_string(count) + " " + what + " are lost: " + why);
            }
        }
    };
    const auto losses = [&](const auto& file, const char* what) {
        lose(what, file.lost(), file.problem());
    };
    lose("counts", lost_counts_ + left_out_,
         "there was no room for them on the disk, or up to the limit: those of a thread and unit "
         "with the fewest accesses");
    lose("counts", lost_ended_,
         "there was no room for them on the disk, or up to the limit, beside what was in use: of "
         "memory that was freed (in units that it shared with other memory they are that one's)");
    lose("first touches", lost_firsts_,
         "there was no room for them on the disk, or up to the limit, beside the counts");
    losses(thread_file_, "threads");
    losses(module_file_, "modules");
    losses(interval_file_, "intervals");
    losses(count_file_, "counts");
    losses(first_file_, "first touches");
    losses(touch_stack_file_, "callers of first touches");
    losses(communication_file_, "transfers");
    losses(bytes_file_, "bytes of lines");
    for (std::size_t number = 0; number < tracked_log_count; ++number) {
        lose(tracked_logs[number].what, logs_.of[number].lost(), no_space_for_log);
    }
}

void Recorder::describe_files(ProcessDescription& description) const {
    description.files = {thread_file_.sum(),
                         module_file_.sum(),
                         strings_file_.sum(strings_file),
                         interval_file_.sum(),
                         count_file_.sum(),
                         first_file_.sum(),
                         touch_stack_file_.sum(StackRecord::touches_file)};
    if (process_.layout.communication()) {
        description.files.push_back(communication_file_.sum());
    }
    if (process_.layout.lines()) {
        description.files.push_back(bytes_file_.sum());
    }
    for (std::size_t number = 0; number < tracked_log_count; ++number) {
        if (const LogSum& log = logs_.of[number]; log.is_made()) {
            FileSum sum{tracked_logs[number].file, 0, 0};
            sum.bytes = log.bytes(tracked_logs[number].record_bytes, sum.crc32);
            description.files.push_back(sum);
        }
    }
}

bool Recorder::describe(bool ended) {
    const bool last = ended || end_ == executed; // else the files go on
    ProcessDescription description;
    describe_process(description);
    description.start_ns = start_ns_;
    description.start_unix_ns = start_unix_ns_;
    description.end_ns = ended || !end_.empty() ? now_ns() : 0;
    description.end = end_;
    description.bursts = bursts_ended_;
    for (const Thread* thread : threads_) {
        description.bursts += thread->bursts.bursts();
    }
    describe_missing(description);
    describe_uncounted(description);
    describe_unwritten(description, last);
    if (last) {
        describe_files(description);
    }
    return write_text(description_file_, to_json(description));
}

} // namespace warren::locality::counts
