// The process that is recorded: its beginning, its forks, its ends.

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/counts/platform.hpp"
#include "analyser/counts/settings.hpp"
#include "analyser/hooks/heap.hpp"
#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

std::uint32_t stage = unknown;
Place place{};

namespace {

alignas(counts::Recorder) char recorder_memory[sizeof(counts::Recorder)];
pid_t own_pid = 0;
std::uint32_t has_started = 0; // the tracker knows, too: what is allocated from now on is followed
std::uint32_t* not_forked = nullptr; // 1, but 0 in a forked child, however it was forked

bool make_mark() {
    constexpr std::size_t bytes = 4096;
    void* const memory = counts::reserve(bytes);
    if (memory == nullptr || syscall(SYS_madvise, memory, bytes, MADV_WIPEONFORK) != 0) {
        return false;
    }
    not_forked = static_cast<std::uint32_t*>(memory);
    *not_forked = 1;
    return true;
}

// Reads the variable's words, which write_settings() wrote.
bool read_variable(const char* text, counts::Settings& settings, std::string& problem) {
    constexpr int most_words = 32;
    std::string words[most_words];
    const char* pointers[most_words];
    int count = 1;
    for (const char* at = text; *at != '\0' && count < most_words;) {
        const std::size_t length = std::strcspn(at, " ");
        words[count++].assign(at, length);
        at += length;
        at += std::strspn(at, " ");
    }
    for (int index = 0; index < count; ++index) {
        pointers[index] = words[index].c_str();
    }
    return counts::read_settings(count, pointers, settings, problem);
}

[[noreturn]] void give_up(const std::string& problem) {
    constexpr int status_failed = 125;
    counts::platform::say(problem);
    syscall(SYS_exit_group, status_failed);
    __builtin_unreachable();
}

void forked_unseen() {
    counts::platform::leave_standard_error();
    mine.thread = nullptr;
    mine.words = nullptr;
    own_pid = getpid();
    *not_forked = 1;
    forget_modules();
    forget_signals();
    std::string problem;
    if (!recorder().forked(problem)) {
        counts::platform::say("a forked process is not recorded: " + problem);
        __atomic_store_n(&stage, off, __ATOMIC_RELEASE);
        return;
    }
    start_saving();
}

void before_fork() {
    if (is_recording()) {
        mine.inside = 1;
        recorder().before_fork();
        lock_heap();
    }
}

void after_fork() {
    if (is_recording()) {
        unlock_heap();
        recorder().after_fork();
        Inside::leave();
    }
}

void after_fork_in_child() {
    if (is_recording()) {
        unlock_heap();
        forked_unseen();
        Inside::leave();
    }
}

void at_exit(int status, void*) {
    char how[24];
    std::snprintf(how, sizeof how, "exit %d", status & 0xff);
    end_process(how);
}

void begin(const char* text) {
    counts::Settings settings;
    std::string problem;
    if (!read_variable(text, settings, problem)) {
        give_up(problem);
    }
    auto* const made = new (recorder_memory) counts::Recorder;
    if (!make_mark() || !start_threads()) {
        give_up("the kernel refuses what the recorder needs to begin");
    }
    counts::platform::keep_standard_error();
    take_signals(); // what is written may be too large
    if (!made->start(settings, problem)) {
        give_up(problem);
    }
    const counts::Layout& layout = made->process().layout;
    const unsigned shift = layout.word_bits + 2; // of the bytes of a unit in a table
    place = {(layout.units() - 1) << shift, layout.unit_shift - shift};
    own_pid = getpid();
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    on_exit(at_exit, nullptr);
    take_quick_exits();
}

} // namespace

counts::Recorder& recorder() {
    return *std::launder(reinterpret_cast<counts::Recorder*>(recorder_memory));
}

void start_process(Waits waits) {
    if (environ == nullptr) {
        return; // before the C library's own beginning, where gcc's startup code calls
    }
    std::uint32_t expected = unknown;
    if (!__atomic_compare_exchange_n(&stage, &expected, starting, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE)) {
        // Another thread is starting, or this one, whose start has called an instrumented function.
        // The wait has a limit, as the other thread may wait for what this one holds.
        constexpr unsigned longest_ms = 2000;
        for (unsigned turn = 0; mine.inside == 0 && turn < longest_ms &&
                                __atomic_load_n(&has_started, __ATOMIC_ACQUIRE) == 0 &&
                                !(waits == Waits::for_beginning && has_begun());
             ++turn) {
            counts::platform::sleep_ms(1);
        }
        return;
    }
    const char* const text = std::getenv(settings_variable);
    if (text == nullptr) {
        __atomic_store_n(&stage, off, __ATOMIC_RELEASE);
        __atomic_store_n(&has_started, 1, __ATOMIC_RELEASE);
        return;
    }
    mine.inside = 1;
    begin(text);
    Inside::leave();
    __atomic_store_n(&stage, meeting, __ATOMIC_RELEASE);
    meet_tracker();
    // Stored last: allocations of threads that see the stage are followed.
    __atomic_store_n(&stage, recording, __ATOMIC_RELEASE);
    start_saving();
    __atomic_store_n(&has_started, 1, __ATOMIC_RELEASE);
    const Inside inside;
    if (inside) {
        note_modules();
    }
}

bool is_own_process() {
    if (__atomic_load_n(not_forked, __ATOMIC_RELAXED) == 0) {
        unlock_heap(); // whoever had it is not here
        forked_unseen();
    }
    return has_begun();
}

bool is_borrowed_memory() {
    return getpid() != own_pid;
}

void note_missed(std::uint64_t accesses) {
    recorder().missed(accesses);
}

void end_process(const char* how) {
    if (!is_recording()) {
        return;
    }
    const Inside inside;
    if (!inside || !is_own_process() || getpid() != own_pid) {
        return; // the child of vfork, in its parent's memory
    }
    note_modules();
    recorder().set_end(how);
    recorder().finish();
    __atomic_store_n(&stage, off, __ATOMIC_RELEASE);
}

void execute_begins() {
    if (is_recording()) {
        const Inside inside;
        if (inside && is_own_process() && getpid() == own_pid) {
            note_modules();
            recorder().save(true);
            recorder().set_end(counts::executed);
        }
    }
}

void execute_failed() {
    if (is_recording()) {
        const Inside inside;
        if (inside && getpid() == own_pid) {
            recorder().set_end("");
        }
    }
}

void* behind(const char* name) {
    void* const found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        counts::platform::say(std::string(name) + " is missing behind the library of hooks");
        std::abort();
    }
    return found;
}

} // namespace warren::locality::hooks
