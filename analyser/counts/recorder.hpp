// The recorder of one process in counts mode: which thread accessed which unit of memory how often,
// in which interval, and to which allocation the unit belonged at the time.
//
// Counters run on (counters.hpp). The recorder writes differences at these occasions:
//   an allocation ends      its units, with its number, before the memory has another use; what its
//                           thread still does there, as free() and realloc() do, belongs to it too
//   an allocation begins    its units: what was done there before is nobody's, but for what calloc
//                           and realloc have written
//   memory is unmapped      its units; whoever touches that place next is the first
//   a thread ends           all units that it has touched
//   an interval ends        all units of all threads: a phase of the program, a span of time
//   every save_ns           the same, within the interval, and earlier after the process's start
//                           (1 s, 2 s, 4 s …): what a crash or kill -9 leaves, with what threads
//                           that had ended have done
// The last two happen in the program's system calls and where inline code calls counters.cpp, every
// few thousand accesses. A process that sleeps, or computes without memory, is saved later. Thread
// rule: all functions may be called by any thread, but start() and forked(); one lock, which is the
// caller's between before_fork() and after_fork().
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyser/counts/counters.hpp"
#include "analyser/counts/output.hpp"
#include "analyser/counts/settings.hpp"
#include "analyser/counts/spawns.hpp"
#include "analyser/recorder/disk_quota.hpp"
#include "analyser/recorder/log_sum.hpp"
#include "analyser/recorder/rank_environment.hpp"
#include "analyser/recorder/recording.hpp"
#include "analyser/tracker/link.hpp"

namespace warren::locality::counts {

// A piece of memory in the tracker's allocations.rec.
struct Allocation {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t number; // of its record, from 1
};

struct Thread {
    ThreadCounters counters{};
    std::uint32_t tid = 0;
    std::uint32_t parent = no_thread;
    Spawner spawner; // the DynamoRIO client's
    std::uint64_t* instructions = nullptr;
    // Noted when the thread has left, as nobody else can ask the kernel then.
    bool has_left = false;
    std::uint64_t last_instructions = 0;
    std::uint64_t last_cpu_ns = 0;
    std::string last_name;
    char* stack = nullptr; // for warren_counts_event
    static constexpr std::size_t stack_bytes = std::size_t{16} << 10;
    void* stack_end() const { return stack + stack_bytes; }
    // Arguments of the system call that the thread is in.
    std::uint64_t call_address = 0;
    std::uint64_t call_bytes = 0;     // of mremap: old ones
    std::uint64_t call_new_bytes = 0; // of mremap
    // End of the part of `counters.first_firsts` that is written.
    Chunk<FirstTouch>* written_chunk = nullptr;
    std::uint64_t written = 0;
    std::uint64_t firsts_done = 0; // in all chunks: written, lost, or here
    // First touches by unit, held back while the disk quota is short: those of memory in use.
    std::multimap<std::uint64_t, FirstTouch> waiting_firsts;
    std::uint64_t unwritten_firsts() const;
    Allocation last_ended{}; // by this thread
    Bursts bursts;           // mode sample
    std::uint64_t instructions_so_far() const;
};

constexpr const char* executed = "exec"; // how a process ends that executes another program

class Recorder {
  public:
    // False: nothing is recorded, and `problem` says why.
    bool start(const Settings& settings, std::string& problem);
    // Called around a fork that is seen coming, so that the child finds a consistent state.
    void before_fork();
    void after_fork(); // in the parent
    // Called in a forked child, which begins a recording of its own with one thread.
    bool forked(std::string& problem);

    Process& process() { return process_; }
    const Settings& settings() const { return settings_; }
    const std::string& folder() const { return folder_; }

    // Number for a thread that is about to be made: threads are numbered in the order of creation.
    std::uint32_t next_number();
    Thread* thread_began(std::uint32_t tid, std::uint32_t number = no_thread,
                         std::uint32_t parent = no_thread);
    // Mode sample: begins the thread's bursts. Inline code subtracts from `budget`.
    void start_bursts(Thread* thread, std::int64_t* budget);
    void thread_ended(Thread* thread);
    // The end of a thread in two steps, for the child of a vfork, which has other files than its
    // parent. The child leaves, with its thread's storage, and its parent ends the thread.
    void thread_left(Thread* thread);
    // Notes what the thread has done until now, as another program may take its place. Called by
    // that thread.
    void note_thread(Thread* thread);
    void end_left();

    void module_loaded(const ModuleRecord& record, const std::string& path);

    // Answers the tracker in the program: where to write allocations and phases.
    void welcome_tracker(Welcome& welcome);
    // `previous`: the former address for realloc and mremap, the block's own for calloc, else 0.
    void allocation_began(Thread* by, const Allocation& allocation, std::uint64_t previous);
    // Size 0 ends what began at the address. Else everything in the range ends, parts too.
    void allocation_ended(Thread* by, std::uint64_t address, std::uint64_t size);
    // The memory is unmapped, or given back to the kernel.
    void memory_gone(std::uint64_t begin, std::uint64_t end);
    // Pages have moved to another address, where nobody touches them first.
    void memory_moved(std::uint64_t from, std::uint64_t from_bytes, std::uint64_t to,
                      std::uint64_t to_bytes);

    void break_moves(std::uint64_t to);

    // Whole units in [begin, end) that some thread has touched, in ascending order. For platforms
    // that do not follow system calls and ask the kernel what has become of these units.
    std::vector<std::uint64_t> touched_in(std::uint64_t begin, std::uint64_t end);
    // Accesses that nobody could count.
    void missed(std::uint64_t accesses) {
        missed_accesses_.fetch_add(accesses, std::memory_order_relaxed);
    }

    // A phase ends the interval. Phases nest: after an inner one the outer one goes on.
    void phase_noted(PhaseRecord::Event event, std::uint32_t number);
    // Ends intervals of time and saves, when that is due.
    void look_at_time();
    // As look_at_time(), in the middle of the program's code: does nothing if another thread has
    // the lock.
    void look_at_time_aside();
    void save(bool is_last); // if not the last: only while fits_twice()
    // Saves at a signal that the program handles, at most once in a while, as the signal may recur.
    void save_at_signal();

    // False: this is the child of a vfork, in its parent's memory, and its end isn't this
    // process's.
    bool is_own_process() const;

    // Adds a sentence to what the report says is missing.
    void miss(const std::string& what);
    // Sets how the process is about to end; empty: it goes on. From `executed` on files stay as
    // they are until it goes on: they have been summed up, and the process may be gone at any time.
    void set_end(const std::string& how);
    void finish();

  private:
    bool make_folder();
    void begin_recording();
    bool open_files();
    bool open(std::string& problem);
    bool samples() const { return settings_.mode == "sample"; }
    void describe_process(ProcessDescription& description) const;
    void describe_missing(ProcessDescription& description) const;
    void describe_uncounted(ProcessDescription& description) const;
    void describe_unwritten(ProcessDescription& description, bool last);
    void describe_files(ProcessDescription& description) const;
    bool describe(bool ended);                             // false: it could not be written
    std::uint32_t allocation_of(std::uint64_t unit) const; // the lowest in it
    std::uint32_t allocation_for(const Thread& thread, std::uint64_t unit) const;
    void end_allocation(Thread* by, const Allocation& allocation, std::uint64_t begin,
                        std::uint64_t end);
    // Calls use(unit) for each unit in [begin, end), parts too, that a thread has touched, perhaps
    // more than once. The time is that of the range's units or of all touched ones, whichever is
    // less: programs reserve terabytes that they don't touch.
    template <typename Use>
    void for_touched(std::uint64_t begin, std::uint64_t end, const Use& use) const;
    void write_range(std::uint64_t begin, std::uint64_t end);
    void lose_counts(Thread& thread, std::uint64_t unit);
    // Writes all threads' first touches before their allocation ends. While the disk quota is short
    // they wait.
    void settle_firsts();
    // Settles counts and first touches of whole units in [begin, end), which lose their use while
    // the disk quota is short: writes those that fit beside all that is in use, and loses the rest.
    void settle_short(std::uint64_t begin, std::uint64_t end);
    // As settle_short() where an allocation begins: first touches stay, and so do the counts of
    // `but`, if any.
    void settle_counts_short(std::uint64_t begin, std::uint64_t end, const Thread* but);
    template <typename Counts>
    void settle_short(std::uint64_t begin, std::uint64_t end, const Counts& is_settled,
                      bool with_firsts);
    void check_quota();
    bool take_counts(Thread& thread, std::uint64_t unit, CountRecord& record); // false: none
    void write_counts(Thread& thread, std::uint64_t unit, std::uint32_t allocation);
    void write_all_counts(Thread& thread);
    std::uint64_t unwritten(const Thread& thread, std::uint64_t unit) const; // accesses
    // Calls use(touch) for each first touch that was not taken before.
    template <typename Use>
    static void take_firsts(Thread& thread, const Use& use);
    void look_at_rate(); // before first touches are written
    void write_first(const Thread& thread, const FirstTouch& touch);
    void write_firsts(Thread& thread);
    // Writes the first touches of units with the mark, and `others` more. The rest is lost.
    void write_firsts(Thread& thread, std::uint8_t mark, std::uint64_t& others);
    // Calls use(touch) for each first touch that is neither written nor lost.
    template <typename Use>
    static void for_new_firsts(const Thread& thread, const Use& use);
    std::uint64_t limit() const;
    std::uint64_t disk_left() const;
    std::uint64_t quota_left() const;
    std::uint64_t bytes_needed(const std::vector<Thread*>& threads) const; // to write all of them
    std::uint64_t bytes_per_count() const;
    bool fits_twice();                                     // else it says so
    std::uint64_t quota_beside(std::uint64_t bytes) const; // that are needed, twice the others
    void write_threads(const std::vector<Thread*>& threads, ThreadRecord::Event event);
    void mark_firsts();
    // Writes the counts of these threads that are among the largest of all.
    void write_most_used(const std::vector<Thread*>& threads);
    void miss_locked(const std::string& what);
    std::uint32_t stack_of(const FirstTouch& touch); // no_stack: the instruction is all
    void write_communication(Thread& thread);
    void write_thread(Thread& thread, ThreadRecord::Event event);
    void write_everything();
    void end_interval();
    void do_what_is_due(std::uint64_t now);
    void set_due();
    void next_interval(std::uint32_t phase);
    void flush();
    void hold(bool held);
    void finish_locked();
    void end_thread(Thread* thread);
    void delete_thread(Thread* thread);

    Settings settings_;
    Process process_{};
    std::string folder_;
    RankEnvironment rank_; // whose folder it is
    void* lock_ = nullptr;
    bool running_ = false;
    bool held_ = false; // nothing is written
    std::int64_t pid_ = 0;
    std::int64_t parent_ = 0;
    std::string executable_;
    std::uint64_t clock_start_ = 0; // time-stamp counter at start_ns
    std::uint64_t start_ns_ = 0;
    double ns_per_tick_ = 0; // of the time-stamp counter, of all the time since the start
    std::int64_t start_unix_ns_ = 0;
    std::string end_;
    std::vector<std::string> missing_;
    std::atomic<std::uint64_t> missed_accesses_{0};
    std::uint64_t uncounted_threads_ = 0;
    std::uint64_t bursts_ended_ = 0; // of threads that have ended
    std::uint32_t next_thread_ = 0;
    std::vector<Thread*> threads_;
    std::vector<Thread*> left_;                       // of those
    ThreadCounters sink_{};                           // of threads that got no tables
    std::map<std::uint64_t, Allocation> allocations_; // by where they begin
    bool tracked_ = false;                            // the tracker is there
    std::vector<std::uint32_t> phases_;               // that have begun, the outermost first
    std::uint32_t interval_ = 1;
    std::uint32_t phase_ = 0;
    std::uint64_t interval_begin_ns_ = 0;
    std::uint64_t next_interval_ns_ = 0;
    std::uint64_t next_save_ns_ = 0;
    std::uint64_t next_signal_ns_ = 0;     // at which is saved
    std::atomic<std::uint64_t> due_ns_{0}; // of the two
    std::uint64_t break_ = 0;              // of the program, the last that it asked for
    DiskQuota quota_{};
    std::uint64_t common_quota_ = 0; // with the tracker
    LogSums logs_{};                 // of the tracker
    std::uint64_t lost_counts_ = 0;  // of threads that have ended: did not fit
    std::uint64_t left_out_ = 0;     // the same, when all were written the last time
    std::uint64_t lost_ended_ = 0;   // counts of memory that was freed
    bool is_short_ = false;          // the quota holds little more than is in use
    std::uint64_t quota_now_ = 0;    // about
    std::uint64_t disk_left_ = 0;    // when it was looked at
    std::uint64_t quota_then_ = 0;   // quota_.left() then
    std::uint64_t lost_firsts_ = 0;
    std::map<std::string, std::uint64_t> told_losses_; // by what and why: on the standard error
    Output<ThreadRecord> thread_file_;
    Output<ModuleRecord> module_file_;
    OutputBytes strings_file_;
    std::uint64_t strings_bytes_ = 0;
    Output<IntervalRecord> interval_file_;
    Output<CountRecord> count_file_;
    Output<FirstRecord> first_file_;
    Output<StackRecord> touch_stack_file_;
    // Number of the stack, by instruction and caller.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> touch_stacks_;
    std::map<std::uint64_t, std::uint64_t> code_;    // what modules have mapped, begin to end
    Output<CommunicationRecord> communication_file_; // if that is asked for
    Output<BytesRecord> bytes_file_;                 // if units are lines
    int description_file_ = -1;                      // the platform's
};

std::uint64_t time_of(clockid_t clock); // in ns; 0: there is none
std::uint64_t now_ns();
std::string read_file(const char* path);

} // namespace warren::locality::counts
