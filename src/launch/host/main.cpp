// warren-rank-host: the process whose threads, or fibres, are ranks (mpiexec --ranks
// threads|fibres).
//
// mpiexec starts it with a plan (launch/mpiexec/host_plan.hpp). Each rank gets a thread with a
// stack as large as a process's first one, with descriptors and a working directory of its own, and
// in it a private image of its program. Fibres (src/runtime/fibres) share the workers' descriptors
// and working directory: their programs' standard ones are translated (standard_streams.hpp). The
// process ends with the last of its ranks. Threads that a program leaves running when it ends go on
// until then: nobody can end them without leaving behind what they hold, as the memory allocator's
// locks.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>
#include <vector>

#include "base/futex.hpp"
#include "base/page.hpp"
#include "image/suitability.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/children.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/descriptor_calls.hpp"
#include "launch/host/descriptor_signals.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/fibre_waits.hpp"
#include "launch/host/heap_calls.hpp"
#include "launch/host/jumps.hpp"
#include "launch/host/made_children.hpp"
#include "launch/host/rank_timers.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/sent_signals.hpp"
#include "launch/host/signals.hpp"
#include "launch/host/standard_streams.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "launch/rank_variables.hpp"
#include "runtime/fibres/api.hpp"
#include "runtime/process_ranks/page_moves.hpp"
#include "warren/image.h"
#include "warren/ranks.h"

// The host archive's (image/host/host.cpp).
extern "C" __thread char warren_image_reserve[];

using namespace warren;
using namespace warren::launch;

namespace {

// A process's stack grows up to its limit; a thread's has its size from the start, of which memory
// is only what was used. Without a limit, this much of the address space.
constexpr std::size_t largest_stack_bytes = std::size_t{1} << 30;
constexpr std::size_t smallest_stack_bytes = std::size_t{64} << 10;
// Thread-local variables lie in the same memory.
constexpr std::size_t beside_stack_bytes = std::size_t{128} << 10;
constexpr std::size_t guard_bytes = std::size_t{64} << 10;

struct Start {
    const HostPlan* plan;
    std::uint32_t rank;
    sigset_t signals;
    Stack stack;
};

bool has_fibres(const HostPlan& plan) {
    return !plan.workers.empty();
}

[[noreturn]] void complain(const std::string& text) {
    std::fprintf(stderr, "mpiexec: %s\n", text.c_str());
    _exit(1);
}

// Descriptor `number` becomes what `from` is, which is none of 0, 1, 2 but `number` itself.
bool place(int from, int number) {
    return from == number ? fcntl(number, F_SETFD, 0) == 0 : dup2(from, number) == number;
}

// Closes all descriptors of the calling thread but these.
void close_all_but(std::vector<int> kept) {
    std::sort(kept.begin(), kept.end());
    unsigned next = 0;
    for (const int one : kept) {
        if (static_cast<unsigned>(one) > next) {
            syscall(SYS_close_range, next, static_cast<unsigned>(one) - 1, 0U);
        }
        next = std::max(next, static_cast<unsigned>(one) + 1);
    }
    syscall(SYS_close_range, next, ~0U, 0U);
}

// Other MPI libraries open each other's descriptors in /proc/PID/fd, where those of the process
// are.
bool has_own_descriptors(const HostPlan& plan) {
    return !plan.library.empty() && !has_fibres(plan);
}

bool take_own_descriptors(const HostPlan& plan, const HostPlan::Rank& rank) {
    if (unshare(CLONE_FILES) != 0) {
        return false;
    }
    const int input = rank.input >= 0 ? rank.input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!place(input, STDIN_FILENO) || !place(rank.output, STDOUT_FILENO) ||
        !place(rank.errors, STDERR_FILENO)) {
        return false;
    }
    std::vector<int> kept = plan.kept;
    kept.insert(kept.end(), {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
    close_all_but(std::move(kept));
    return true;
}

// Gives a thread what a process has of its own: affinity, working directory, descriptors. False:
// errno has the reason.
bool take_own(const HostPlan& plan, const HostPlan::Rank& rank) {
    if (rank.processors != nullptr &&
        sched_setaffinity(0, CpuSet::bytes(),
                          static_cast<const cpu_set_t*>(rank.processors->data())) != 0) {
        return false;
    }
    if (unshare(CLONE_FS) != 0) {
        return false;
    }
    const std::string& directory = plan.programs[rank.program].directory;
    return (directory.empty() || chdir(directory.c_str()) == 0) &&
           (!has_own_descriptors(plan) || take_own_descriptors(plan, rank));
}

// The rank's program has ended, in the calling thread.
void ended(void* context, const warren_image_end* end) {
    const auto rank = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(context));
    if (end->signal != 0) {
        die_by(end->signal);
    }
    if (fibres() != nullptr) {
        warren_fibre_last_load();
        end_signals_of_fibre(rank);
        close_streams(rank);
        report_end_of_fibre(rank, end->status);
        return;
    }
    // No handler of another rank's program may run here from now on.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    end_signals_of_thread(rank);
    report_end(rank, end->status);
}

[[noreturn]] void stay() {
    if (fibres() != nullptr) {
        warren_fibre_end();
    }
    while (true) {
        pause();
    }
}

// Strings as main gets them, in one piece of memory: the program's for good.
std::unique_ptr<char* []> list_of(const std::vector<std::string>& texts) {
    std::size_t bytes = 0;
    for (const std::string& text : texts) {
        bytes += text.size() + 1;
    }
    const std::size_t for_text = (bytes + sizeof(char*) - 1) / sizeof(char*);
    auto list = std::make_unique<char*[]>(texts.size() + 1 + for_text);
    char* place = reinterpret_cast<char*>(list.get() + texts.size() + 1);
    for (std::size_t index = 0; index < texts.size(); ++index) {
        list[index] = place;
        std::memcpy(place, texts[index].c_str(), texts[index].size() + 1);
        place += texts[index].size() + 1;
    }
    return list;
}

// An error of ours, before the program runs.
[[noreturn]] void not_started(const Start& start, const char* what) {
    const HostPlan::Rank& rank = start.plan->ranks[start.rank];
    const char* program = start.plan->programs[rank.program].arguments[0].c_str();
    // A rank with descriptors of its own has closed the descriptor that became its 2.
    for (const int errors : {rank.errors, STDERR_FILENO}) {
        if (dprintf(errors, "mpiexec: %s: %s\n", program, what) >= 0) {
            break;
        }
    }
    if (has_fibres(*start.plan)) {
        report_end_of_fibre(start.rank, 1);
    } else {
        report_end(start.rank, 1);
    }
    stay();
}

// The reserve for images' thread-local variables has been zeroed with the thread: gives the pages
// back, which are zero all the same until something is in them.
void release_reserve() {
    const auto begin = reinterpret_cast<std::uintptr_t>(warren_image_reserve);
    const std::uintptr_t first = whole_pages(begin);
    const std::uintptr_t end = (begin + image::reserve_bytes) / page_bytes * page_bytes;
    madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

// Variables for another MPI library; they precede those of an outer launcher.
void tell_other_library(const HostPlan& plan, const Start& start,
                        std::vector<std::string>& environment) {
    environment.insert(environment.begin() + 1,
                       {"PMI_FD=" + std::to_string(plan.ranks[start.rank].manager),
                        "PMI_RANK=" + std::to_string(plan.number_of(start.rank)),
                        "PMI_SIZE=" + std::to_string(plan.ranks.size())});
    // UCX would put hooks into the C library's code, which all copies share, and several at once
    // crash.
    environment.insert(environment.begin() + 1, "UCX_MEM_MMAP_HOOK_MODE=none");
}

std::vector<std::string> environment_of(const Start& start) {
    const HostPlan::Rank& rank = start.plan->ranks[start.rank];
    std::vector<std::string> environment = start.plan->programs[rank.program].environment;
    const RankNumbers numbers = {.in_world = start.plan->number_of(start.rank),
                                 .on_node = start.rank};
    for (std::size_t index = 0; index < rank_variable_count; ++index) {
        const RankVariable& variable = rank_variables[index];
        environment[index] =
            std::string(variable.name) + "=" + std::to_string(numbers.of(variable));
    }
    if (rank.manager >= 0) {
        tell_other_library(*start.plan, start, environment);
    }
    return environment;
}

// Makes the rank's own image; a rank that gets none ends.
warren_image* make_image(const Start& start) {
    const HostPlan& plan = *start.plan;
    const HostPlan::Rank& rank = plan.ranks[start.rank];
    warren_image_options options{};
    options.bytes = sizeof options;
    std::vector<const char*> shared;
    if (!plan.library.empty()) {
        shared.assign(std::begin(libraries_of_all), std::end(libraries_of_all));
    }
    shared.push_back(nullptr);
    options.shared = shared.data();
    std::vector<const char*> preloaded;
    for (const std::string& library : plan.programs[rank.program].preloaded) {
        preloaded.push_back(library.c_str());
    }
    preloaded.push_back(nullptr);
    options.preloaded = preloaded.data();
    options.flags = has_fibres(plan) ? 0 : WARREN_IMAGE_OWN_DIRECTORY;
    if (has_own_descriptors(plan)) {
        options.input = STDIN_FILENO;
        options.output = STDOUT_FILENO;
        options.error = STDERR_FILENO;
        options.flags |= WARREN_IMAGE_OWN_DESCRIPTORS;
    } else {
        options.input = has_fibres(plan) ? first_input(start.rank) : rank.input;
        options.output = rank.output;
        options.error = rank.errors;
    }
    std::vector<warren_image_binding> bindings;
    std::vector groups = {
        signal_bindings(),     sending_bindings(), timer_bindings(),
        made_child_bindings(), child_bindings(),   vfork_bindings(has_fibres(plan)),
        mask_bindings(),       wait_bindings(),    jump_bindings()};
    if (has_fibres(plan)) {
        groups.insert(groups.end(), {stream_bindings(), descriptor_bindings(),
                                     fibre_thread_bindings(), set_jump_bindings()});
        if (!plan.nodes.empty() && !plan.programs[rank.program].own_allocator) {
            groups.push_back(heap_bindings());
        }
        // A program has its own libwarren.so, which knows no scheduler.
        bindings.push_back({"warren_rank_migrate", reinterpret_cast<void*>(&warren_rank_migrate)});
    } else {
        groups.push_back(thread_poll_bindings());
        groups.push_back(descriptor_signal_bindings());
    }
    for (const auto& group : groups) {
        bindings.insert(bindings.end(), group.begin(), group.end());
    }
    bindings.push_back({nullptr, nullptr});
    options.bindings = bindings.data();
    options.ended = ended;
    options.context = reinterpret_cast<void*>(std::uintptr_t{start.rank});
    warren_image* image = nullptr;
    if (warren_image_create(&options, &image) != WARREN_IMAGE_SUCCESS) {
        not_started(start, warren_image_error());
    }
    return image;
}

void* run_rank(void* argument) {
    const std::unique_ptr<Start> start(static_cast<Start*>(argument));
    const HostPlan& plan = *start->plan;
    const HostPlan::Rank& rank = plan.ranks[start->rank];
    if (!has_fibres(plan)) {
        report_start(start->rank);
        // Debuggers and top show this name.
        const std::string name = "rank " + std::to_string(plan.number_of(start->rank));
        pthread_setname_np(pthread_self(), name.c_str());
        make_signal_stack();
        if (!take_own(plan, rank)) {
            not_started(*start, std::strerror(errno));
        }
    }
    release_reserve();
    const HostPlan::Program& program = plan.programs[rank.program];
    const std::unique_ptr<char*[]> arguments = list_of(program.arguments);
    const std::unique_ptr<char*[]> environment = list_of(environment_of(*start));
    warren_image* image = make_image(*start);
    if (warren_image_enter(image) != WARREN_IMAGE_SUCCESS) {
        not_started(*start, warren_image_error());
    }
    if (!plan.nodes.empty()) {
        warren_page_moves_image(start->rank);
    }
    const int bound = warren_rank_bind(static_cast<int>(start->rank));
    if (bound != WARREN_RANK_SUCCESS) {
        not_started(*start, warren_rank_error(bound));
    }
    start->stack.owner = pthread_self();
    note_stack(start->rank, start->stack);
    note_thread(start->rank, start->signals);
    if (!has_fibres(plan)) {
        pthread_sigmask(SIG_SETMASK, &start->signals, nullptr);
    }
    warren_image_end end{};
    if (warren_image_load_program(image, program.path.c_str()) != WARREN_IMAGE_SUCCESS ||
        warren_image_run(image, static_cast<int>(program.arguments.size()), arguments.get(),
                         environment.get(), &end) != WARREN_IMAGE_SUCCESS) {
        not_started(*start, warren_image_error());
    }
    // The image stays: other ranks may look at its memory, as they may at a process's shared one.
    stay();
}

std::size_t stack_bytes(const HostPlan& plan) {
    rlimit limit{};
    std::size_t bytes = largest_stack_bytes;
    if (plan.stack_bytes != 0) {
        bytes = plan.stack_bytes;
    } else if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < bytes) {
        bytes = limit.rlim_cur;
    }
    return whole_pages(std::max(bytes, smallest_stack_bytes));
}

// The stacks of all ranks, each above a guard: one mapping, because their number is limited
// (vm.max_map_count). They take no huge pages, which would be memory that nobody uses. Null: errno.
std::byte* map_stacks(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return static_cast<std::byte*>(memory);
}

// How far below the end of its memory a fibre's stack begins: where they all began at the same
// place of a page, they would compete for the same sets of the caches.
constexpr std::size_t shift_of_stack(std::uint32_t rank) {
    constexpr std::size_t line_bytes = 64;
    constexpr std::uint32_t lines_of_page = page_bytes / line_bytes;
    return rank % lines_of_page * line_bytes;
}

// Whoever touches these bytes of a mapping gets a signal.
bool guard(std::byte* memory) {
    constexpr int install = 102; // MADV_GUARD_INSTALL, Linux 6.13: leaves the mapping in one piece
    return madvise(memory, guard_bytes, install) == 0 ||
           mprotect(memory, guard_bytes, PROT_NONE) == 0;
}

// `memory`: a guard's, and a stack's up to `bytes`.
bool start_rank(std::byte* memory, std::size_t bytes, Start* start) {
    if (!guard(memory)) {
        return false;
    }
    auto* stack = memory + guard_bytes;
    start->stack = {memory, stack, {}};
    if (has_fibres(*start->plan)) {
        if (!start->plan->nodes.empty()) {
            warren_page_moves_stack(start->rank, stack, bytes - guard_bytes);
        }
        errno = warren_fibre_make(
            stack, bytes - guard_bytes - shift_of_stack(start->rank),
            [](void* given) { run_rank(given); }, start);
        return errno == 0;
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, bytes - guard_bytes);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, run_rank, start);
    pthread_attr_destroy(&attributes);
    errno = error;
    return error == 0;
}

sigset_t signals_of_workers;

// With -v, once per rank.
void explain_blocked(std::uint32_t rank) {
    static std::vector<bool> said;
    said.resize(std::max<std::size_t>(said.size(), rank + 1));
    if (!said[rank]) {
        said[rank] = true;
        dprintf(STDERR_FILENO,
                "mpiexec: rank %u keeps its worker in a system call that sleeps; another worker "
                "takes over meanwhile\n",
                rank);
    }
}

void explain_record_failed(int error) {
    dprintf(STDERR_FILENO, "mpiexec: the file of --balance-record can't be written: %s\n",
            std::strerror(error));
}

void explain_pages_refused(int node, int error) {
    char where[32] = "any more";
    if (node >= 0) {
        std::snprintf(where, sizeof where, "to NUMA node %d", node);
    }
    dprintf(STDERR_FILENO,
            "mpiexec: --migrate-pages: the system moves no pages %s: %s; they stay where they "
            "are\n",
            where, std::strerror(error));
}

// Where mpiexec and others see them. Nobody does when the memory can't be mapped.
balance::LoadTable map_loads(const HostPlan& plan) {
    void* memory =
        mmap(nullptr, balance::LoadTable::bytes(plan.ranks.size()), PROT_READ | PROT_WRITE,
             MAP_SHARED, plan.segment, static_cast<off_t>(plan.loads_offset));
    return memory != MAP_FAILED ? balance::LoadTable::at(static_cast<std::byte*>(memory))
                                : balance::LoadTable{};
}

void prepare_fibres(const HostPlan& plan, const sigset_t& signals) {
    signals_of_workers = signals;
    const balance::LoadTable loads = map_loads(plan);
    if (!plan.nodes.empty()) {
        prepare_heaps(static_cast<std::uint32_t>(plan.ranks.size()));
        const process_ranks::HostPageMoves moves{
            .nodes = plan.nodes.data(),
            .workers = static_cast<std::uint32_t>(plan.nodes.size()),
            .ranks = static_cast<std::uint32_t>(plan.ranks.size()),
            .refused = explain_pages_refused,
            .loads = loads,
        };
        if (const int error = warren_page_moves_start(&moves)) {
            complain(std::string("the thread that moves pages: ") + std::strerror(error));
        }
    }
    const fibre::HostOptions options{
        .processors = plan.workers.data(),
        .workers = static_cast<std::uint32_t>(plan.workers.size()),
        .fibres = static_cast<std::uint32_t>(plan.ranks.size()),
        .begin_worker =
            [] {
                make_signal_stack();
                pthread_sigmask(SIG_SETMASK, &signals_of_workers, nullptr);
            },
        .interrupted = act_in_interrupted_fibre,
        .stays = is_in_handler,
        .stuck = report_stuck,
        .expects_signals = expects_timers,
        .blocked = plan.verbose ? explain_blocked : nullptr,
        .loads = loads,
        .steals = plan.steals,
        .balancer = plan.balancer.empty() ? nullptr : plan.balancer.c_str(),
        .balance_period_ns = plan.balance_period_ns,
        .balance_collectives = plan.balance_collectives,
        .distances = plan.distances.empty() ? nullptr : plan.distances.data(),
        .balance_record = plan.balance_record.empty() ? nullptr : plan.balance_record.c_str(),
        .balance_record_failed = explain_record_failed,
        .placed = plan.nodes.empty() ? nullptr : warren_page_moves_follow,
    };
    warren_fibre_prepare(&options);
    fibre_functions.store(warren_fibre_functions(), std::memory_order_release);
    prepare_streams(plan);
}

// The unwinder that is linked to the host fills a table at its first use. A thread that is
// cancelled in a function of the host's comes to it by the shared one, too late for that.
void prepare_unwinder() {
    _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_NO_REASON; }, nullptr);
}

} // namespace

int main(int argc, char** argv) {
    prepare_unwinder();
    HostPlan& plan = *new HostPlan; // the threads' for ever
    const int descriptor = argc > 1 ? std::atoi(argv[1]) : -1;
    if (Error error = HostPlan::read(descriptor, plan)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        complain(record->text);
    }
    close(descriptor);
    if (!plan.library.empty() && dlopen(plan.library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
        complain(dlerror());
    }
    if (warren_image_host() != WARREN_IMAGE_SUCCESS) {
        complain("this process can't have private images");
    }
    for (const HostPlan::Rank& rank : plan.ranks) {
        for (const int one : {rank.output, rank.errors, rank.manager}) {
            fcntl(one, F_SETFD, FD_CLOEXEC);
        }
    }
    for (const int one : plan.kept) {
        fcntl(one, F_SETFD, FD_CLOEXEC);
    }
    fcntl(plan.reports, F_SETFD, FD_CLOEXEC);
    prepare_ranks(static_cast<std::uint32_t>(plan.ranks.size()), plan.reports);
    prepare_signals(static_cast<std::uint32_t>(plan.ranks.size()), has_fibres(plan));
    prepare_children(static_cast<std::uint32_t>(plan.ranks.size()), has_fibres(plan));
    prepare_making_children(has_fibres(plan));
    watch_for_crashes(static_cast<std::uint32_t>(plan.ranks.size()));
    // Signals are for the ranks' threads: a handler of a program runs in a thread of a program.
    sigset_t all;
    sigset_t former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    // Before the fibres' scheduler counts the threads that wake nobody.
    if (const int error = start_router()) {
        complain(std::string("a thread for the ranks' timers: ") + std::strerror(error));
    }
    if (has_fibres(plan)) {
        prepare_fibres(plan, former);
        const std::string& directory = plan.programs[0].directory; // of all: mpiexec has seen to it
        if (!directory.empty() && chdir(directory.c_str()) != 0) {
            complain(directory + ": " + std::strerror(errno));
        }
    }
    const std::size_t bytes = stack_bytes(plan) + beside_stack_bytes + guard_bytes;
    std::byte* stacks = map_stacks(plan.ranks.size() * bytes);
    for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
        if (stacks == nullptr ||
            !start_rank(stacks + rank * bytes, bytes, new Start{&plan, rank, former, {}})) {
            complain("a thread for rank " + std::to_string(plan.number_of(rank)) + " with " +
                     std::to_string(bytes >> 10) + " kB of stack: " + std::strerror(errno) +
                     " (the limits of processes, ulimit -u, of memory, ulimit -v, and of mappings, "
                     "sysctl vm.max_map_count)");
        }
    }
    if (has_fibres(plan)) {
        if (const int error = warren_fibre_start()) {
            complain(std::string("the workers of ranks: ") + std::strerror(error));
        }
    }
    pass_reports_on();
}
