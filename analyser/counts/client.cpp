// The DynamoRIO client of counts mode: the library that `warren locality record` has loaded into
// the program, and its callbacks.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <elf.h>
#include <new>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/counts/aside.hpp"
#include "analyser/counts/instrument.hpp"
#include "analyser/counts/recorder.hpp"
#include "analyser/counts/settings.hpp"
#include "analyser/counts/spawns.hpp"
#include "dr_api.h"
#include "drmgr.h"
#include "drwrap.h"

namespace warren::locality::counts {
namespace {

Recorder* recorder;
Aside aside;
Spawns spawns;
int thread_field;

Thread* this_thread(void* context) {
    return static_cast<Thread*>(drmgr_get_tls_field(context, thread_field));
}

void begin_thread(void* context) {
    const auto tid = static_cast<std::uint32_t>(dr_get_thread_id(context));
    const Spawner spawner = spawns.thread_began(tid, recorder->is_own_process());
    Thread* const thread = recorder->thread_began(tid);
    thread->spawner = spawner;
    drmgr_set_tls_field(context, thread_field, thread);
    std::uint64_t* const place = set_thread(thread->counters, thread->stack_end());
    if (recorder->settings().mode == "sample") {
        recorder->start_bursts(thread, reinterpret_cast<std::int64_t*>(place));
    } else {
        thread->instructions = place;
    }
}

void end_thread(void* context) {
    Thread* const thread = this_thread(context);
    drmgr_set_tls_field(context, thread_field, nullptr);
    if (thread == nullptr) {
        return;
    }
    if (recorder->is_own_process()) {
        settle_turns(thread->counters);
        recorder->thread_ended(thread);
    } else if (thread->tid == static_cast<std::uint32_t>(syscall(SYS_gettid))) {
        settle_turns(thread->counters);
        recorder->thread_left(thread); // a child of vfork
    }
    // Without this a forked child would end its parent's other threads before forked(). They go on
    // in the parent, whose files this process doesn't write.
}

[[noreturn]] void give_up(const std::string& problem) {
    dr_fprintf(STDERR, "warren locality: %s\n", problem.c_str());
    dr_exit_process(125);
    __builtin_unreachable();
}

void look_at_time() {
    aside.run([](void*) { recorder->look_at_time_aside(); }, nullptr);
}

// --- What the program loads

std::uint64_t note_of_build(const module_data_t* module, ModuleRecord& record) {
    // The notes of the file are in its first mapped part, if anywhere.
    struct Header {
        unsigned char ident[16];
        std::uint16_t type, machine;
        std::uint32_t version;
        std::uint64_t entry, programs, sections;
        std::uint32_t flags;
        std::uint16_t header_bytes, program_bytes, program_count;
    };
    struct Program {
        std::uint32_t type, flags;
        std::uint64_t offset, address, physical, file_bytes, memory_bytes, alignment;
    };
    constexpr std::uint32_t note_program = 4;
    constexpr std::uint32_t build_id_note = 3;
    const auto* const base = reinterpret_cast<const char*>(module->start);
    Header header{};
    std::size_t got = 0;
    if (!dr_safe_read(base, sizeof header, &header, &got)) {
        return 0;
    }
    const std::uint64_t bias =
        header.type == 2 ? 0 : reinterpret_cast<std::uint64_t>(module->start);
    for (unsigned index = 0; index < header.program_count; ++index) {
        Program program{};
        if (!dr_safe_read(base + header.programs + index * sizeof program, sizeof program, &program,
                          &got) ||
            program.type != note_program) {
            continue;
        }
        for (std::uint64_t at = 0; at + 12 <= program.memory_bytes;) {
            std::uint32_t note[3]; // bytes of the name, of the description; type
            const char* const place = reinterpret_cast<const char*>(bias + program.address + at);
            if (!dr_safe_read(place, sizeof note, note, &got)) {
                break;
            }
            const std::uint64_t name = (note[0] + 3ULL) & ~3ULL;
            if (note[2] == build_id_note && note[1] <= sizeof record.build_id &&
                dr_safe_read(place + 12 + name, note[1], record.build_id, &got)) {
                record.build_id_bytes = note[1];
                return note[1];
            }
            at += 12 + name + ((note[1] + 3ULL) & ~3ULL);
        }
    }
    return 0;
}

// Turns that a loop has begun belong to the time before this moment.
void settle(Thread* thread) {
    if (thread != nullptr) {
        settle_turns(thread->counters);
    }
}

void noted(void* call, void**) {
    const auto argument = [&](int index) {
        return reinterpret_cast<std::uint64_t>(drwrap_get_arg(call, index));
    };
    Thread* const thread = this_thread(drwrap_get_drcontext(call));
    settle(thread);
    const auto event = static_cast<std::uint32_t>(argument(0));
    if (event == AllocationRecord::began) {
        const auto number = static_cast<std::uint32_t>(argument(1));
        recorder->allocation_began(thread, {argument(2), argument(2) + argument(3), number},
                                   argument(4));
    } else if (event == AllocationRecord::ended) {
        recorder->allocation_ended(thread, argument(2), argument(3));
    }
}

void asked(void* call, void**) {
    recorder->welcome_tracker(*static_cast<Welcome*>(drwrap_get_arg(call, 0)));
}

void phase_noted(void* call, void**) {
    const auto argument = [&](int index) {
        return static_cast<std::uint32_t>(
            reinterpret_cast<std::uint64_t>(drwrap_get_arg(call, index)));
    };
    settle(this_thread(drwrap_get_drcontext(call)));
    recorder->phase_noted(static_cast<PhaseRecord::Event>(argument(0)), argument(1));
}

void record_module(const module_data_t* module) {
    const std::string path = module->full_path != nullptr ? module->full_path : "";
    ModuleRecord record{};
    record.event = ModuleRecord::loaded;
    note_of_build(module, record);
    for (unsigned index = 0; index < module->num_segments; ++index) {
        const module_segment_data_t& segment = module->segments[index];
        record.begin = reinterpret_cast<std::uint64_t>(segment.start);
        record.end = reinterpret_cast<std::uint64_t>(segment.end);
        // Whole pages are mapped, and the segment may begin within one.
        record.file_offset = segment.offset - segment.offset % dr_page_size();
        recorder->module_loaded(record, path);
    }
}

// Functions of the tracker (analyser/tracker/tracker.cpp) that it calls for this client.
struct Wrapped {
    const char* name;
    void (*before)(void* call, void** user_data);
};
constexpr Wrapped wrapped[] = {
    {"warren_locality_ask", asked},
    {"warren_locality_noted", noted},
    {"warren_locality_phase_noted", phase_noted},
};

void load_module(void*, const module_data_t* module, bool) {
    record_module(module);
    bool tracker = false;
    for (const Wrapped& one : wrapped) {
        if (auto* const function =
                reinterpret_cast<app_pc>(dr_get_proc_address(module->handle, one.name))) {
            tracker = drwrap_wrap(function, one.before, nullptr) || tracker;
        }
    }
    // Mode sample leaves out the dynamic linker: code would be made of many blocks that run once or
    // twice.
    const char* const name = dr_module_preferred_name(module);
    const bool linker = name != nullptr && std::strncmp(name, "ld-linux", 8) == 0;
    const bool outside_bursts = linker && recorder->settings().mode == "sample";
    if (tracker || outside_bursts) {
        leave_alone(reinterpret_cast<std::uint64_t>(module->start),
                    reinterpret_cast<std::uint64_t>(module->end), outside_bursts);
    }
}

void unload_module(void*, const module_data_t* module) {
    ModuleRecord record{};
    record.event = ModuleRecord::unloaded;
    record.begin = reinterpret_cast<std::uint64_t>(module->start);
    record.end = reinterpret_cast<std::uint64_t>(module->end);
    recorder->module_loaded(record, module->full_path != nullptr ? module->full_path : "");
}

// --- System calls

// The largest open file descriptor.
std::uint64_t largest_descriptor() {
    std::uint64_t largest = 0;
    if (DIR* const folder = opendir("/proc/self/fd")) {
        while (const dirent* const entry = readdir(folder)) {
            largest = std::max<std::uint64_t>(largest, std::strtoul(entry->d_name, nullptr, 10));
        }
        closedir(folder);
    }
    return largest;
}

constexpr std::uint64_t dontneed_locked = 24; // MADV_DONTNEED_LOCKED, since Linux 5.18

// Whether the call may give memory other pages, or an address other memory.
bool changes_pages(int number) {
    switch (number) {
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_madvise:
    case SYS_brk:
    case SYS_shmat:
    case SYS_shmdt:
        return true;
    default:
        return false;
    }
}

// Every system call is wanted, as each compares the time with what is due.
bool wanted(void*, int) {
    return true;
}

std::uint64_t handled; // signals, a bit each: the program has a handler for it

// Notes whether sigaction, whose argument is at `action`, sets a handler.
void note_handler(std::uint64_t signal, std::uint64_t action) {
    struct {
        std::uint64_t handler;
        std::uint64_t flags;
    } wanted{};
    std::size_t got = 0;
    if (signal == 0 || signal > 63 || action == 0 ||
        !dr_safe_read(reinterpret_cast<const void*>(action), sizeof wanted, &wanted, &got)) {
        return;
    }
    const std::uint64_t bit = std::uint64_t{1} << signal;
    // A handler with SA_RESETHAND is gone after its first signal.
    if (wanted.handler > 1 && (wanted.flags & SA_RESETHAND) == 0) {
        __atomic_fetch_or(&handled, bit, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_and(&handled, ~bit, __ATOMIC_RELAXED);
    }
}

// Whether clone makes a thread or a process, by its flags.
New made_with(std::uint64_t flags) {
    if ((flags & CLONE_VM) == 0) {
        return New::process;
    }
    return (flags & CLONE_VFORK) != 0 ? New::child_of_vfork : New::thread;
}

// Whether clone3 makes a thread or a process, by its argument at `request`.
New requested(std::uint64_t request) {
    std::uint64_t flags = 0;
    std::size_t got = 0;
    const bool known = request != 0 && dr_safe_read(reinterpret_cast<const void*>(request),
                                                    sizeof flags, &flags, &got);
    return known ? made_with(flags) : New::thread; // else it fails
}

// Ends the process while a child of vfork runs in its memory and that child's parent sleeps.
// DynamoRIO, which ends threads one by one, would wait for both.
[[noreturn]] void end_beside_child(std::uint64_t status) {
    recorder->finish();
    syscall(SYS_exit_group, static_cast<int>(status));
    __builtin_unreachable();
}

// Takes the hold for calls that make threads or processes, or end the caller's program. Does
// nothing for other calls.
void hold_spawns(void* context, Spawner& spawner, int number) {
    const auto first = static_cast<std::uint64_t>(dr_syscall_get_param(context, 0));
    switch (number) {
    case SYS_clone:
        spawns.hold_for_new(context, spawner, made_with(first));
        break;
    case SYS_clone3:
        spawns.hold_for_new(context, spawner, requested(first));
        break;
    case SYS_fork:
        spawns.hold_for_new(context, spawner, New::process);
        break;
    case SYS_vfork:
        spawns.hold_for_new(context, spawner, New::child_of_vfork);
        break;
    case SYS_execve:
        // For other children that share memory nobody would be left to give the hold back.
        if (recorder->is_own_process() || spawner.is_child) {
            spawns.hold(context, spawner);
        }
        break;
    default:
        break;
    }
}

bool before_call(void* context, int number) {
    const auto argument = [&](int index) {
        return static_cast<std::uint64_t>(dr_syscall_get_param(context, index));
    };
    settle(this_thread(context));
    recorder->look_at_time();
    Thread* const thread = this_thread(context);
    if (thread != nullptr) {
        spawns.give_back(thread->spawner); // of a call that a signal came before
        hold_spawns(context, thread->spawner, number);
    }
    switch (number) {
    case SYS_munmap:
        recorder->memory_gone(argument(0), argument(0) + argument(1));
        break;
    case SYS_mmap:
        if ((argument(3) & MAP_FIXED) != 0) {
            recorder->memory_gone(argument(0), argument(0) + argument(1));
        }
        break;
    case SYS_mremap: // what it does is known afterwards
        if (thread != nullptr) {
            thread->call_address = argument(0);
            thread->call_bytes = argument(1);
            thread->call_new_bytes = argument(2);
        }
        break;
    case SYS_madvise:
        if (argument(2) == MADV_DONTNEED || argument(2) == MADV_REMOVE ||
            argument(2) == dontneed_locked) {
            recorder->memory_gone(argument(0), argument(0) + argument(1));
        }
        break;
    case SYS_brk:
        if (argument(0) != 0) {
            recorder->break_moves(argument(0));
        }
        break;
    case SYS_execve:
    case SYS_execveat:
        if (recorder->is_own_process()) {
            recorder->save(true);
            recorder->set_end(executed);
        } else if (thread != nullptr) {
            recorder->note_thread(thread);
        }
        break;
    case SYS_close_range:
        if (argument(1) > argument(0)) {
            // DynamoRIO examines each descriptor up to the last, which may be 2^32 - 1.
            const std::uint64_t last = std::max(argument(0), largest_descriptor());
            dr_syscall_set_param(context, 1, std::min(argument(1), last));
        }
        break;
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
        if (argument(number == SYS_tgkill ? 2 : 1) == SIGKILL) {
            // SIGKILL to itself ends the program without a signal to the client. The target may be
            // another process, though, and tkill names a thread of any process.
            const auto whom = static_cast<std::int32_t>(argument(0));
            if (number == SYS_tkill || whom <= 0 || whom == getpid()) {
                recorder->save(number != SYS_tkill && (whom == 0 || whom == getpid()));
            }
        }
        break;
    case SYS_rt_sigaction:
        if (recorder->is_own_process()) {
            note_handler(argument(0), argument(1));
        }
        break;
    case SYS_exit_group:
        if (recorder->is_own_process()) {
            // Held, as here DynamoRIO takes marked threads for gone, too.
            const bool alone = thread == nullptr || spawns.hold_for_end(context, thread->spawner);
            recorder->set_end("exit " + std::to_string(argument(0) & 0xff));
            if (!alone) {
                end_beside_child(argument(0));
            }
        }
        break;
    case SYS_read:
    case SYS_pread64:
    case SYS_recvfrom: // where they go is needed afterwards
        if (thread != nullptr) {
            thread->call_address = argument(1);
        }
        break;
    default:
        break;
    }
    return true;
}

// mremap is done: counts are forgotten only where the memory has left its place.
void remapped(const Thread& thread, std::uint64_t place) {
    const std::uint64_t old = thread.call_address;
    if (place != old) {
        recorder->memory_moved(old, thread.call_bytes, place, thread.call_new_bytes);
    } else if (thread.call_new_bytes < thread.call_bytes) {
        recorder->memory_gone(old + thread.call_new_bytes, old + thread.call_bytes);
    }
}

void after_call(void* context, int number) {
    const auto result = static_cast<std::int64_t>(dr_syscall_get_result(context));
    Thread* const thread = this_thread(context);
    if (changes_pages(number)) {
        pages_changed(recorder->process());
    }
    switch (number) {
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
        if (thread != nullptr) {
            spawns.made(thread->spawner);
            recorder->end_left();
        }
        break;
    case SYS_execve:
    case SYS_execveat:
        if (recorder->is_own_process()) {
            recorder->set_end(""); // it failed: the process goes on
        }
        if (thread != nullptr) {
            spawns.give_back(thread->spawner);
        }
        break;
    case SYS_mremap:
        if (thread != nullptr && (result > 0 || result < -4095)) {
            remapped(*thread, static_cast<std::uint64_t>(result));
        }
        break;
    case SYS_read:
    case SYS_pread64:
    case SYS_recvfrom:
        if (thread != nullptr && result > 0) {
            dr_mcontext_t machine;
            machine.size = sizeof machine;
            machine.flags = DR_MC_CONTROL;
            dr_get_mcontext(context, &machine);
            program_stack_is(thread->counters, machine.xsp);
            note_kernel_write(thread->counters, thread->call_address,
                              static_cast<std::uint64_t>(result),
                              reinterpret_cast<std::uint64_t>(machine.pc));
        }
        break;
    default:
        break;
    }
}

// --- The process

void forked(void* context) {
    std::string problem;
    // The recorder frees the thread's object with all others.
    drmgr_set_tls_field(context, thread_field, nullptr);
    aside.forget();
    spawns.forked();
    if (!recorder->forked(problem)) {
        dr_fprintf(STDERR, "warren locality: a forked process is not recorded: %s\n",
                   problem.c_str());
    }
    dr_module_iterator_t* const modules = dr_module_iterator_start();
    while (dr_module_iterator_hasnext(modules)) {
        module_data_t* const module = dr_module_iterator_next(modules);
        record_module(module);
        dr_free_module_data(module);
    }
    dr_module_iterator_stop(modules);
    begin_thread(context);
}

dr_signal_action_t on_signal(void* context, dr_siginfo_t* information) {
    settle(this_thread(context)); // in whose middle it may be
    if (information->sig == SIGSEGV || information->sig == SIGBUS || information->sig == SIGABRT ||
        information->sig == SIGILL || information->sig == SIGFPE) {
        if ((__atomic_load_n(&handled, __ATOMIC_RELAXED) >> information->sig & 1) != 0) {
            recorder->save_at_signal(); // its handler may be the end
        } else {
            recorder->save(true);
        }
    }
    return DR_SIGNAL_DELIVER;
}

void end_process() {
    recorder->finish();
    stop_instrumentation();
    drwrap_exit();
    drmgr_exit();
}

// DynamoRIO does not follow the instructions that write the base of %fs, by which programs switch
// their threads' stacks. Before the program starts, its auxiliary vector is told that the processor
// has none, so the program asks the kernel instead.
void hide_base_instructions() {
    constexpr std::uint64_t fsgsbase = 1U << 1; // of AT_HWCAP2
    // The name is in parentheses and may contain any character; words are counted after it. The
    // 28th of all is where the stack began, with the arguments, the environment and the auxiliary
    // vector.
    const std::string about = read_file("/proc/self/stat");
    std::size_t at = about.rfind(')');
    for (int field = 2; field < 28 && at != std::string::npos; ++field) {
        at = about.find(' ', at + 1);
    }
    if (at == std::string::npos) {
        return;
    }
    auto* word = reinterpret_cast<std::uint64_t*>(std::strtoull(about.c_str() + at, nullptr, 10));
    if (word == nullptr) {
        return;
    }
    word += *word + 2; // behind the arguments
    while (*word != 0) {
        ++word;
    }
    for (++word; word[0] != AT_NULL; word += 2) {
        if (word[0] == AT_HWCAP2) {
            word[1] &= ~fsgsbase;
        }
    }
}

void start(int count, const char** words) {
    hide_base_instructions();
    Settings settings;
    std::string problem;
    if (!read_settings(count, words, settings, problem)) {
        give_up(problem);
    }
    recorder = new Recorder;
    if (!drmgr_init() || !drwrap_init() || !recorder->start(settings, problem)) {
        give_up(problem);
    }
    if (aside.make()) {
        recorder->process().look_at_time = look_at_time;
    } else {
        recorder->miss("what is counted is saved in the program's system calls only: the processor "
                       "has no way to keep its registers meanwhile (xsave)");
    }
    if (!start_instrumentation(recorder->process().layout, settings.mode == "sample")) {
        give_up("DynamoRIO's parts can't be started");
    }
    thread_field = drmgr_register_tls_field();
    drwrap_set_global_flags(
        static_cast<drwrap_global_flags_t>(DRWRAP_NO_FRILLS | DRWRAP_FAST_CLEANCALLS));
    dr_register_filter_syscall_event(wanted);
    if (thread_field < 0 || !drmgr_register_thread_init_event(begin_thread) ||
        !drmgr_register_thread_exit_event(end_thread) ||
        !drmgr_register_module_load_event(load_module) ||
        !drmgr_register_module_unload_event(unload_module) ||
        !drmgr_register_pre_syscall_event(before_call) ||
        !drmgr_register_post_syscall_event(after_call) || !drmgr_register_signal_event(on_signal)) {
        give_up("DynamoRIO refuses an event");
    }
    dr_register_fork_init_event(forked);
    dr_register_exit_event(end_process);
}

} // namespace
} // namespace warren::locality::counts

DR_EXPORT void dr_client_main(client_id_t, int count, const char* words[]) {
    dr_set_client_name("warren locality", "the project Warren");
    warren::locality::counts::start(count, words);
}
