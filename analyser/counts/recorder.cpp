#include "analyser/counts/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "analyser/counts/guard.hpp"
#include "analyser/counts/platform.hpp"

namespace warren::locality::counts {
namespace {

constexpr std::uint64_t first_save_ns = 1'000'000'000; // after the start
constexpr std::uint64_t description_bytes = 32 << 10;  // of the limit, with blanks for the end

const char* variable(const char* name) {
    return std::getenv(name);
}

} // namespace

std::uint64_t time_of(clockid_t clock) {
    timespec time{};
    if (clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t now_ns() {
    return time_of(CLOCK_MONOTONIC);
}

std::string read_file(const char* path) {
    std::string text;
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    char buffer[4096];
    // A system call, because the C library's read may be followed.
    for (long got = 0; file >= 0 && (got = syscall(SYS_read, file, buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(got));
    }
    if (file >= 0) {
        close(file);
    }
    return text;
}

bool Recorder::start(const Settings& settings, std::string& problem) {
    settings_ = settings;
    lock_ = platform::make_lock();
    process_.layout = Layout::of(settings.granularity, settings.communication != 0);
    return open(problem);
}

// A rank's folder belongs to the first process with that rank, as its children inherit the
// environment.
bool Recorder::make_folder() {
    char name[64];
    bool made = false;
    for (int attempt = 0; !made && attempt < 1000; ++attempt) {
        if (attempt == 0 && rank_.rank >= 0) {
            std::snprintf(name, sizeof name, "rank-%05d", rank_.rank);
        } else if (attempt <= 1) {
            rank_ = {};
            std::snprintf(name, sizeof name, "process-%ld", pid_);
        } else {
            std::snprintf(name, sizeof name, "process-%ld-%d", pid_, attempt);
        }
        folder_ = settings_.folder + "/" + name;
        made = mkdir(folder_.c_str(), 0777) == 0;
        if (!made && errno != EEXIST) {
            break;
        }
    }
    return made;
}

// Forgets what an image before this one has had.
void Recorder::begin_recording() {
    start_ns_ = now_ns();
    clock_start_ = __rdtsc();
    start_unix_ns_ = static_cast<std::int64_t>(time_of(CLOCK_REALTIME));
    held_ = false;
    common_quota_ = limit() / 2 - description_bytes;
    quota_ = {limit() / 4, &common_quota_};
    logs_ = {};
    told_losses_.clear();
    lost_counts_ = left_out_ = lost_ended_ = lost_firsts_ = 0;
    is_short_ = false;
    quota_then_ = next_signal_ns_ = 0;
    tracked_ = false;
    allocations_.clear();
    touch_stacks_.clear();
    code_.clear();
    phases_.clear();
    interval_ = 1;
    phase_ = 0;
    interval_begin_ns_ = start_ns_;
    next_interval_ns_ = start_ns_ + settings_.interval_ns;
    next_save_ns_ = start_ns_ + std::min(settings_.save_ns, first_save_ns);
    set_due();
    strings_bytes_ = 0;
    next_thread_ = 0;
    end_.clear();
}

bool Recorder::open_files() {
    return thread_file_.open(folder_, quota_) && module_file_.open(folder_, quota_) &&
           strings_file_.open(folder_ + "/" + strings_file, 1, 0, quota_) &&
           interval_file_.open(folder_, quota_) && count_file_.open(folder_, quota_) &&
           first_file_.open(folder_, quota_) &&
           touch_stack_file_.open(folder_, quota_, StackRecord::touches_file) &&
           (!process_.layout.communication() || communication_file_.open(folder_, quota_)) &&
           (!process_.layout.lines() || bytes_file_.open(folder_, quota_));
}

bool Recorder::open(std::string& problem) {
    running_ = false;
    process_.touched = static_cast<std::uint8_t*>(reserve(process_.layout.units()));
    process_.owners = static_cast<std::uint32_t*>(reserve(4096));
    ThreadCounters sink{};
    if (process_.touched == nullptr || process_.owners == nullptr || !make_tables(sink, process_) ||
        (process_.layout.communication() && !make_communication(process_))) {
        problem = "the kernel refuses to reserve address space for counters (is it limited by "
                  "`ulimit -v`, or vm.overcommit_memory 2?)";
        return false;
    }
    sink.uncounted = true;
    sink_ = sink;
    rank_ = rank_in(variable);
    pid_ = getpid();
    parent_ = getppid();
    // Asked once: under DynamoRIO it takes a lock, for which a save in the middle of the program's
    // code must not wait.
    executable_ = platform::executable();
    if (!make_folder()) {
        problem = folder_ + " can't be made: " + std::strerror(errno);
        return false;
    }
    begin_recording();
    running_ = open_files();
    if (!running_) {
        problem = "files in " + folder_ + " can't be made";
        return false;
    }
    flush();
    // The file stays open: DynamoRIO's open() empties files, and kill -9 may come then.
    description_file_ = platform::open_new((folder_ + "/" + process_file).c_str());
    if (!describe(false)) {
        running_ = false;
        problem = folder_ + "/" + process_file +
                  " can't be written (is the disk full, or are files limited?)";
    }
    return running_;
}

void Recorder::before_fork() {
    platform::lock(lock_);
}

void Recorder::after_fork() {
    platform::unlock(lock_);
}

bool Recorder::forked(std::string& problem) {
    // The lock may have been another thread's, which is not here.
    lock_ = platform::make_lock();
    thread_file_.abandon();
    module_file_.abandon();
    strings_file_.abandon();
    interval_file_.abandon();
    count_file_.abandon();
    first_file_.abandon();
    touch_stack_file_.abandon();
    communication_file_.abandon();
    bytes_file_.abandon();
    process_.first_thread = nullptr; // the parent's
    process_.lock = 0;
    if (description_file_ >= 0) {
        platform::close(description_file_);
        description_file_ = -1;
    }
    for (Thread* thread : threads_) {
        delete_thread(thread);
    }
    threads_.clear();
    left_.clear();
    release(process_.touched, process_.layout.units());
    release(process_.owners, 4096);
    if (process_.layout.communication()) {
        release(process_.writers, process_.layout.units() * sizeof(std::uint32_t));
    }
    free_tables(sink_);
    process_.clashes = 0;
    process_.failures = 0;
    process_.lost_transfers = 0;
    missed_accesses_ = 0;
    missing_.clear();
    uncounted_threads_ = 0;
    bursts_ended_ = 0;
    process_.pool = {};
    return open(problem);
}

std::uint64_t Recorder::limit() const {
    return settings_.limit_bytes == 0 ? UINT64_MAX : settings_.limit_bytes;
}

std::uint64_t Thread::instructions_so_far() const {
    if (counters.bursts != nullptr) {
        return bursts.instructions();
    }
    return instructions != nullptr ? *instructions : 0;
}

void Recorder::start_bursts(Thread* thread, std::int64_t* budget) {
    thread->counters.idle_words = sink_.words;
    counts::start_bursts(thread->counters, thread->bursts, budget);
}

std::uint32_t Recorder::next_number() {
    const Guard guard(lock_);
    return next_thread_++;
}

Thread* Recorder::thread_began(std::uint32_t tid, std::uint32_t number, std::uint32_t parent) {
    auto* const thread = new Thread;
    thread->tid = tid;
    const Guard guard(lock_);
    thread->counters.number = number != no_thread ? number : next_thread_++;
    thread->parent = parent != no_thread || thread->counters.number == 0 ? parent : 0;
    if (!make_tables(thread->counters, process_)) {
        const std::uint32_t kept = thread->counters.number;
        thread->counters = sink_;
        thread->counters.number = kept;
        ++uncounted_threads_;
    } else if (process_.layout.communication()) {
        join(thread->counters);
    }
    thread->stack = static_cast<char*>(platform::allocate(Thread::stack_bytes));
    threads_.push_back(thread);
    if (running_) {
        write_thread(*thread, ThreadRecord::began);
    }
    return thread;
}

void Recorder::delete_thread(Thread* thread) {
    if (!thread->counters.uncounted) {
        if (process_.layout.communication()) {
            leave(thread->counters);
        }
        free_tables(thread->counters);
    }
    platform::release(thread->stack, Thread::stack_bytes);
    delete thread;
}

void Recorder::thread_ended(Thread* thread) {
    const Guard guard(lock_);
    end_thread(thread);
}

void Recorder::thread_left(Thread* thread) {
    note_thread(thread);
    const Guard guard(lock_);
    thread->last_instructions = thread->instructions_so_far();
    thread->instructions = &thread->last_instructions;
    thread->bursts.stop();
    left_.push_back(thread);
}

void Recorder::end_left() {
    const Guard guard(lock_);
    if (!is_own_process()) {
        return;
    }
    for (Thread* const thread : left_) {
        end_thread(thread);
    }
    left_.clear();
}

void Recorder::end_thread(Thread* thread) {
    if (running_) {
        const std::uint64_t left_out = left_out_;
        write_threads({thread}, ThreadRecord::ended);
        lost_counts_ += left_out_;
        left_out_ = left_out;
        flush(); // nobody will do more to it, whatever kills the process later
    }
    bursts_ended_ += thread->bursts.bursts();
    thread->bursts.stop();
    for (std::size_t index = 0; index < threads_.size(); ++index) {
        if (threads_[index] == thread) {
            threads_.erase(threads_.begin() + static_cast<std::ptrdiff_t>(index));
            break;
        }
    }
    delete_thread(thread);
}

void Recorder::module_loaded(const ModuleRecord& given, const std::string& path) {
    const Guard guard(lock_);
    if (!running_) {
        return;
    }
    ModuleRecord record = given;
    record.time_ns = now_ns();
    record.path_bytes = static_cast<std::uint32_t>(path.size());
    record.path_offset = strings_bytes_;
    strings_file_.append(path.data(), path.size());
    strings_bytes_ += path.size();
    if (record.event == ModuleRecord::loaded) {
        code_[record.begin] = record.end;
        const std::string name = path.substr(path.rfind('/') + 1);
        if (name.rfind("libc.so", 0) == 0 || name.rfind("libc-2.", 0) == 0) {
            std::uint64_t& begin = process_.c_library_begin;
            begin = begin == 0 || record.begin < begin ? record.begin : begin;
            process_.c_library_end = std::max(process_.c_library_end, record.end);
        }
    } else {
        code_.erase(code_.lower_bound(record.begin), code_.lower_bound(record.end));
    }
    module_file_.append(record);
    strings_file_.flush(); // before the modules, whose paths are in it
    module_file_.flush();
}

void Recorder::welcome_tracker(Welcome& welcome) {
    const Guard guard(lock_);
    if (!running_ || folder_.size() >= sizeof welcome.folder) {
        return;
    }
    welcome.version = link_version;
    welcome.stack_depth = static_cast<std::uint32_t>(settings_.stack_depth);
    welcome.threshold = settings_.threshold;
    welcome.limit_bytes = limit() / 4;
    welcome.common_bytes = &common_quota_;
    welcome.sums = &logs_;
    std::memcpy(welcome.folder, folder_.c_str(), folder_.size() + 1);
    tracked_ = true;
    describe(false);
}

void Recorder::end_interval() {
    IntervalRecord record{};
    record.number = interval_;
    record.phase = phase_;
    record.begin_ns = interval_begin_ns_;
    record.end_ns = now_ns();
    interval_begin_ns_ = record.end_ns;
    interval_file_.append(record);
}

void Recorder::next_interval(std::uint32_t phase) {
    if (!running_ || held_ || !fits_twice()) {
        return;
    }
    write_everything();
    end_interval();
    ++interval_;
    phase_ = phase;
}

void Recorder::phase_noted(PhaseRecord::Event event, std::uint32_t number) {
    const Guard guard(lock_);
    if (event == PhaseRecord::pcontrol && !phases_.empty()) {
        phases_.back() = number; // a level takes the place of the one before
    } else if (event != PhaseRecord::ended) {
        phases_.push_back(number);
    } else if (!phases_.empty()) {
        phases_.pop_back();
    }
    next_interval(phases_.empty() ? 0 : phases_.back());
}

void Recorder::look_at_time() {
    const std::uint64_t now = now_ns();
    if (now < due_ns_.load(std::memory_order_relaxed)) {
        return;
    }
    const Guard guard(lock_);
    do_what_is_due(now);
}

void Recorder::look_at_time_aside() {
    if (!platform::try_lock(lock_)) {
        return;
    }
    do_what_is_due(now_ns());
    platform::unlock(lock_);
}

bool Recorder::is_own_process() const {
    return getpid() == pid_;
}

void Recorder::do_what_is_due(std::uint64_t now) {
    if (!running_ || held_ || !is_own_process()) { // whose threads it would not find in /proc
        return;
    }
    if (settings_.interval_ns != 0 && now >= next_interval_ns_) {
        next_interval(phase_);
        next_interval_ns_ = now + settings_.interval_ns;
    }
    if (settings_.save_ns != 0 && now >= next_save_ns_) {
        if (fits_twice()) {
            write_everything();
            flush();
        }
        describe(false);
        // A young process is saved more often: what is lost of it is no more than what is kept.
        // Where much is touched it may take long: at most a tenth of the time goes into it.
        const std::uint64_t end = now_ns();
        const std::uint64_t pause = std::min(settings_.save_ns, end - start_ns_);
        next_save_ns_ = end + std::max(pause, 10 * (end - now));
    }
    set_due();
}

void Recorder::set_due() {
    std::uint64_t due = UINT64_MAX;
    if (settings_.interval_ns != 0) {
        due = next_interval_ns_;
    }
    if (settings_.save_ns != 0 && next_save_ns_ < due) {
        due = next_save_ns_;
    }
    due_ns_.store(due, std::memory_order_relaxed);
    // The due time as a value of the time-stamp counter, which threads compare in the middle of
    // their code. It is never too late, and imprecise beyond a second. At first the counter's rate
    // isn't known: too small a rate makes it early, and then it is set again.
    constexpr std::uint64_t longest_ns = 1'000'000'000;
    constexpr std::uint64_t least_known_ns = 10'000'000;
    const std::uint64_t now = now_ns();
    const std::uint64_t clock = __rdtsc();
    const std::uint64_t elapsed = now - start_ns_;
    const double ticks_per_ns =
        elapsed < least_known_ns
            ? 1
            : static_cast<double>(clock - clock_start_) / static_cast<double>(elapsed);
    const std::uint64_t left = due > now ? std::min(due - now, longest_ns) : 0;
    __atomic_store_n(
        &process_.due_clock,
        due == UINT64_MAX
            ? due
            : clock + static_cast<std::uint64_t>(static_cast<double>(left) * ticks_per_ns) + 1,
        __ATOMIC_RELAXED);
}

void Recorder::save(bool is_last) {
    const Guard guard(lock_);
    if (!running_ || held_) {
        return;
    }
    if (is_last || fits_twice()) {
        write_everything();
        flush();
    }
    describe(false);
}

void Recorder::save_at_signal() {
    const std::uint64_t now = now_ns();
    {
        const Guard guard(lock_);
        if (now < next_signal_ns_) {
            return;
        }
        next_signal_ns_ = UINT64_MAX;
    }
    save(false);
    const std::uint64_t end = now_ns();
    const Guard guard(lock_);
    next_signal_ns_ =
        end + std::max(std::min(settings_.save_ns, end - start_ns_), 10 * (end - now));
}

void Recorder::miss(const std::string& what) {
    const Guard guard(lock_);
    miss_locked(what);
}

void Recorder::miss_locked(const std::string& what) {
    for (const std::string& known : missing_) {
        if (known == what) {
            return;
        }
    }
    missing_.push_back(what);
}

void Recorder::set_end(const std::string& how) {
    const Guard guard(lock_);
    end_ = how;
    if (!running_) {
        return;
    }
    // Other threads go on until the kernel ends them. The sums do not include what they still do.
    const bool was_held = held_;
    flush();
    hold(how == executed);
    describe(false);
    if (const std::uint32_t phase = phases_.empty() ? 0 : phases_.back();
        was_held && !held_ && phase != phase_) {
        next_interval(phase);
    }
}

void Recorder::finish() {
    // All other threads are gone, perhaps one with the lock, or one is still saving much.
    constexpr int longest_ms = 5000;
    bool is_ours = false;
    for (int turn = 0; !(is_ours = platform::try_lock(lock_)) && turn < longest_ms; ++turn) {
        platform::sleep_ms(1);
    }
    if (running_) {
        finish_locked();
    }
    if (is_ours) {
        platform::unlock(lock_); // for a child of vfork, which goes on
    }
}

void Recorder::finish_locked() {
    hold(false);
    write_everything();
    end_interval();
    flush();
    thread_file_.close();
    module_file_.close();
    strings_file_.close();
    touch_stack_file_.close();
    first_file_.close();
    communication_file_.close();
    bytes_file_.close();
    count_file_.close();
    interval_file_.close();
    if (!describe(true)) {
        platform::say(folder_ + "/" + process_file + " can't be written: it lacks the end");
    }
    running_ = false;
}

} // namespace warren::locality::counts
