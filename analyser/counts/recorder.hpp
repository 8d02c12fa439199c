// What one process records in counts mode: which thread accessed which unit of memory
// how often, in which interval, and to which allocation the unit belonged at the time.
//
// Counters run on (counters.hpp); what is written are differences, at these occasions:
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
// The last two happen in the program's system calls, and where its threads' inline code calls
// counters.cpp, which is every few thousand accesses: a process that sleeps, or computes without
// memory, is saved later.
// Thread rule: all functions may be called by any thread, but start() and forked(); one lock, which
// is the caller's between before_fork() and after_fork().
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
    // When it has left: nobody else can ask the kernel then.
    bool has_left = false;
    std::uint64_t last_instructions = 0;
    std::uint64_t last_cpu_ns = 0;
    std::string last_name;
    char* stack = nullptr; // for warren_counts_event
    static constexpr std::size_t stack_bytes = std::size_t{16} << 10;
    void* stack_end() const { return stack + stack_bytes; }
    // Of the system call that it is in.
    std::uint64_t call_address = 0;
    std::uint64_t call_bytes = 0;     // of mremap: old ones
    std::uint64_t call_new_bytes = 0; // of mremap
    // Up to where `counters.first_firsts` is written.
    Chunk<FirstTouch>* written_chunk = nullptr;
    std::uint64_t written = 0;
    std::uint64_t firsts_done = 0; // in all chunks: written, lost, or here
    // By unit: those of memory that is in use, while room is short.
    std::multimap<std::uint64_t, FirstTouch> waiting_firsts;
    std::uint64_t unwritten_firsts() const;
    Allocation last_ended{}; // by this thread
    Bursts bursts;           // mode sample
    std::uint64_t instructions_so_far() const;
};

constexpr const char* executed = "exec"; // how a process ends that executes another program

class Recorder {
  public:
    // False, with the reason in `problem`: nothing is recorded.
    bool start(const Settings& settings, std::string& problem);
    // Around a fork that is seen coming: what the child finds is whole.
    void before_fork();
    void after_fork(); // in the parent
    // In a forked child: a process of its own, with one thread, that has accessed nothing.
    bool forked(std::string& problem);

    Process& process() { return process_; }
    const Settings& settings() const { return settings_; }
    const std::string& folder() const { return folder_; }

    // For a thread that is about to be made: threads have numbers in the order of creation.
    std::uint32_t next_number();
    Thread* thread_began(std::uint32_t tid, std::uint32_t number = no_thread,
                         std::uint32_t parent = no_thread);
    // Mode sample: the thread's bursts begin. `budget`: what inline code subtracts from.
    void start_bursts(Thread* thread, std::int64_t* budget);
    void thread_ended(Thread* thread);
    // The same in two steps, for the child of a vfork, which has other files than its parent: the
    // child leaves, with its thread's storage, and its parent ends what has left.
    void thread_left(Thread* thread);
    // What it has done until now, in that thread: another program may take its place.
    void note_thread(Thread* thread);
    void end_left();

    void module_loaded(const ModuleRecord& record, const std::string& path);

    // The tracker in the program asks where to write allocations and phases.
    void welcome_tracker(Welcome& welcome);
    // `previous`: where realloc or mremap has taken it from, its own address for calloc, else 0.
    void allocation_began(Thread* by, const Allocation& allocation, std::uint64_t previous);
    // Without a size: of what began at the address; else of all between, parts too.
    void allocation_ended(Thread* by, std::uint64_t address, std::uint64_t size);
    // The memory is unmapped, or given back to the kernel.
    void memory_gone(std::uint64_t begin, std::uint64_t end);
    // Pages have another address: nobody touches them first there.
    void memory_moved(std::uint64_t from, std::uint64_t from_bytes, std::uint64_t to,
                      std::uint64_t to_bytes);

    void break_moves(std::uint64_t to);

    // Units of [begin, end), whole ones, that somebody has touched, in their order: for those who
    // ask the kernel what has become of them, because they don't follow system calls.
    std::vector<std::uint64_t> touched_in(std::uint64_t begin, std::uint64_t end);
    // Accesses that nobody could count.
    void missed(std::uint64_t accesses) {
        missed_accesses_.fetch_add(accesses, std::memory_order_relaxed);
    }

    // Phases end intervals. Those within others are told apart; after them the outer one goes on.
    void phase_noted(PhaseRecord::Event event, std::uint32_t number);
    // Ends intervals of time, and saves, when it is time for that.
    void look_at_time();
    // The same in the middle of the program's code: if the lock is another's, it does nothing.
    void look_at_time_aside();
    void save(bool is_last); // else only while there is room
    // The same at a signal that the program handles, which may come again and again.
    void save_at_signal();

    // Else this is the child of a vfork, in its parent's memory: its end isn't this process's.
    bool is_own_process() const;

    // A sentence that the report shows.
    void miss(const std::string& what);
    // How the process is about to end; empty: it goes on. From `executed` on files stay as they
    // are until it goes on: the process may be gone at any time, and they have been summed up.
    void set_end(const std::string& how);
    void finish();

  private:
    bool open(std::string& problem);
    bool samples() const { return settings_.mode == "sample"; }
    bool describe(bool ended);                             // false: it could not be written
    std::uint32_t allocation_of(std::uint64_t unit) const; // the lowest in it
    std::uint32_t allocation_for(const Thread& thread, std::uint64_t unit) const;
    void end_allocation(Thread* by, const Allocation& allocation, std::uint64_t begin,
                        std::uint64_t end);
    // Calls use(unit) for each unit of [begin, end), parts too, that somebody has touched, perhaps
    // more than once. Takes as long as the range has units or as threads have touched, if that is
    // less: programs reserve terabytes that they don't touch.
    template <typename Use>
    void for_touched(std::uint64_t begin, std::uint64_t end, const Use& use) const;
    void write_range(std::uint64_t begin, std::uint64_t end);
    void lose_counts(Thread& thread, std::uint64_t unit);
    // Of all threads, before their allocation ends: writes them; where room is short they wait.
    void settle_firsts();
    // Counts and first touches of units in [begin, end), whole ones, which lose their use while
    // room is short: writes what has room beside all that is in use, and loses the rest.
    void settle_short(std::uint64_t begin, std::uint64_t end);
    // The same where an allocation begins: first touches stay, and counts of `but`, if any.
    void settle_counts_short(std::uint64_t begin, std::uint64_t end, const Thread* but);
    template <typename Counts>
    void settle_short(std::uint64_t begin, std::uint64_t end, const Counts& is_settled,
                      bool with_firsts);
    void check_quota();
    bool take_counts(Thread& thread, std::uint64_t unit, CountRecord& record); // false: none
    void write_counts(Thread& thread, std::uint64_t unit, std::uint32_t allocation);
    void write_all_counts(Thread& thread);
    std::uint64_t unwritten(const Thread& thread, std::uint64_t unit) const; // accesses
    // Calls use(touch) for those that nobody has looked at yet, which are done then.
    template <typename Use>
    static void take_firsts(Thread& thread, const Use& use);
    void look_at_rate(); // before first touches are written
    void write_first(const Thread& thread, const FirstTouch& touch);
    void write_firsts(Thread& thread);
    // All of units that have the mark, and as many others as are left; the rest is lost.
    void write_firsts(Thread& thread, std::uint8_t mark, std::uint64_t& others);
    // Calls use(touch) for those that are neither written nor lost.
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
    // Of these threads, those that are among the most used of all.
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
    ThreadCounters sink_{};                           // of threads for which there was no room
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
    std::uint64_t lost_counts_ = 0;  // of threads that have ended, for which there was no room
    std::uint64_t left_out_ = 0;     // the same, when all were written the last time
    std::uint64_t lost_ended_ = 0;   // counts of memory that was freed
    bool is_short_ = false;          // of room for more than is in use
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
    // By instruction and caller: the number of the stack.
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
