#include "analyser/tracker/tracker.hpp"

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <dlfcn.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "analyser/recorder/rank_environment.hpp"
#include "analyser/tracker/link.hpp"
#include "analyser/tracker/real.hpp"
#include "base/futex.hpp"

extern "C" {
extern void* first_stack_end asm(
    "__libc_stack_end"); // of the dynamic linker: where the main thread's stack began
void* malloc(std::size_t);

// Empty functions for a tool that controls the program (counts mode) and runs its own code before
// them. It fills the welcome instead of a recorder, and gets each record's number in its file.
// `previous` is the block itself if the call that made it has written it.
[[gnu::noinline]] void warren_locality_ask(warren::locality::Welcome* welcome) {
    asm volatile("" : : "r"(welcome) : "memory");
}
[[gnu::noinline]] void warren_locality_noted(std::uint32_t event, std::uint32_t record,
                                             std::uint64_t address, std::uint64_t bytes,
                                             std::uint64_t previous) {
    asm volatile(""
                 :
                 : "r"(event), "r"(record), "r"(address), "r"(bytes), "r"(previous)
                 : "memory");
}
[[gnu::noinline]] void warren_locality_phase_noted(std::uint32_t event, std::uint32_t record) {
    asm volatile("" : : "r"(event), "r"(record) : "memory");
}
}

namespace warren::locality::tracker {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr int answer_seconds = 30; // the recorder may be stopped, or the machine crowded
constexpr std::uint64_t fill_entries = 64;

enum Stage : std::uint32_t { unasked = 0, asking = 1, recording = 2, off = 3 };

struct Fill {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t epoch;
};

// State of the tracker: all zero in a new process and in a forked one.
struct State {
    std::uint32_t stage; // its release pairs with the acquire of who then uses the rest
    std::uint32_t lock;
    std::uint32_t pid;
    std::uint32_t stack_depth;
    std::uint64_t threshold;
    std::uint64_t epoch; // counts what frees memory
    LogFolder log_folder;
    Log allocations;
    Log stacks;
    Log phases;
    Log names;
    CallStacks call_stacks;
    Fill fills[fill_entries];
};

struct ThreadState {
    std::uint32_t pid; // of the process that `tid` is of: a fork changes both
    std::uint32_t tid;
    std::uint32_t inside;
    std::uint64_t stack_begin;
    std::uint64_t stack_bytes;
};
thread_local ThreadState self;

State* state_memory = nullptr;
constinit State off_state = {.stage = off,
                             .lock = 0,
                             .pid = 0,
                             .stack_depth = 0,
                             .threshold = UINT64_MAX,
                             .epoch = 0,
                             .log_folder = {},
                             .allocations = {},
                             .stacks = {},
                             .phases = {},
                             .names = {},
                             .call_stacks = {},
                             .fills = {}};

// The listener of a library that records by itself, if there is one.
const Listener* listener = nullptr;

void find_listener() {
    if (__atomic_load_n(&listener, __ATOMIC_ACQUIRE) == nullptr) {
        const auto* found = static_cast<const Listener*>(dlsym(RTLD_DEFAULT, listener_variable));
        if (found != nullptr && found->version == link_version) {
            __atomic_store_n(&listener, found, __ATOMIC_RELEASE);
        }
    }
}

State& state() {
    State* memory = __atomic_load_n(&state_memory, __ATOMIC_ACQUIRE);
    if (memory != nullptr) [[likely]] {
        return *memory;
    }
    const std::uint64_t bytes = (sizeof(State) + page_bytes - 1) & ~(page_bytes - 1);
    const long at = syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    State* made = &off_state;
    if (at != -1 && syscall(SYS_madvise, at, bytes, MADV_WIPEONFORK) == 0) {
        made = reinterpret_cast<State*>(at);
    }
    if (__atomic_compare_exchange_n(&state_memory, &memory, made, false, __ATOMIC_RELEASE,
                                    __ATOMIC_ACQUIRE)) {
        return *made;
    }
    return *memory; // another thread was quicker; ours stays, a few kilobytes
}

class Lock {
  public:
    explicit Lock(State& of) : state_(of) {
        while (__atomic_exchange_n(&state_.lock, 1, __ATOMIC_ACQUIRE) != 0) {
            for (int turn = 0; turn < 100 && __atomic_load_n(&state_.lock, __ATOMIC_RELAXED) != 0;
                 ++turn) {
                spin_pause();
            }
            if (__atomic_load_n(&state_.lock, __ATOMIC_RELAXED) != 0) {
                sched_yield();
            }
        }
    }
    ~Lock() { __atomic_store_n(&state_.lock, 0, __ATOMIC_RELEASE); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    State& state_;
};

const char* variable(const char* name) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const char* text = *entry;
        const char* wanted = name;
        while (*wanted != 0 && *text == *wanted) {
            ++text;
            ++wanted;
        }
        if (*wanted == 0 && *text == '=') {
            return text + 1;
        }
    }
    return nullptr;
}

// Asks the recorder. False: there is none, or it doesn't want this process.
bool ask(const char* socket_name, Welcome& welcome) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::size_t length = 0;
    for (; socket_name[length] != 0; ++length) {
        if (length + 2 > sizeof address.sun_path) {
            return false;
        }
        address.sun_path[length + 1] = socket_name[length]; // the first is 0: a name without a file
    }
    const int line =
        static_cast<int>(syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (line < 0) {
        return false;
    }
    const timeval patience{answer_seconds, 0};
    syscall(SYS_setsockopt, line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Hello hello{};
    hello.version = link_version;
    const RankEnvironment rank = rank_in(variable);
    hello.rank = rank.rank;
    hello.size = rank.size;
    for (std::size_t at = 0; at + 1 < sizeof hello.rank_source && rank.source[at] != 0; ++at) {
        hello.rank_source[at] = rank.source[at];
    }
    hello.own_malloc = dlsym(RTLD_DEFAULT, "malloc") != reinterpret_cast<void*>(&malloc) ? 1 : 0;
    bool welcome_read = false;
    if (syscall(SYS_connect, line, &address, offsetof(sockaddr_un, sun_path) + 1 + length) == 0 &&
        syscall(SYS_sendto, line, &hello, sizeof hello, MSG_NOSIGNAL, nullptr, 0) ==
            static_cast<long>(sizeof hello)) {
        long got = 0;
        do {
            got = syscall(SYS_recvfrom, line, &welcome, sizeof welcome, 0, nullptr, nullptr);
        } while (got < 0 && errno == EINTR);
        welcome_read = got == static_cast<long>(sizeof welcome);
    }
    syscall(SYS_close, line);
    return welcome_read && welcome.version == link_version && welcome.folder[0] != 0;
}

// Finds the main thread's stack: from the end of the kernel's data on it, down as far as it may
// grow.
void find_main_stack(std::uint64_t& begin, std::uint64_t& bytes) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30; // where there is no limit
    const char* last = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (last == nullptr) {
        last = static_cast<const char*>(first_stack_end);
    }
    while (*last != 0) {
        ++last;
    }
    const std::uint64_t end =
        (reinterpret_cast<std::uint64_t>(last) + 2 * sizeof(void*) + page_bytes - 1) &
        ~(page_bytes - 1);
    rlimit limit{};
    syscall(SYS_prlimit64, 0, RLIMIT_STACK, nullptr, &limit);
    bytes = limit.rlim_cur < most ? limit.rlim_cur & ~(page_bytes - 1) : most;
    begin = end - bytes;
}

std::uint32_t tid_in(const State& of) {
    if (self.pid != of.pid) {
        self.pid = of.pid;
        self.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    }
    return self.tid;
}

// Appends a record. Called under the lock.
void append(State& of, const AllocationRecord& record, bool filled = false) {
    if (of.allocations.append(of.log_folder, record)) {
        const std::uint64_t previous = filled ? record.address : record.previous;
        warren_locality_noted(record.event, of.allocations.records(), record.address, record.size,
                              previous);
        if (listener != nullptr) {
            listener->noted(record.event, of.allocations.records(), record.address, record.size,
                            previous);
        }
    }
}

void append_stack_of_thread(State& of, AllocationRecord::Event event) {
    const std::uint32_t tid = tid_in(of);
    const Lock lock(of);
    append(of, {event, AllocationRecord::stack, self.stack_begin, self.stack_bytes, now_ns(), tid,
                no_stack, 0});
}

// Connects the process. The first thread asks. Others wait meanwhile, so that no record is lost.
void begin_recording(State& of) {
    std::uint32_t expected = unasked;
    if (!__atomic_compare_exchange_n(&of.stage, &expected, asking, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE)) {
        while (__atomic_load_n(&of.stage, __ATOMIC_ACQUIRE) == asking) {
            sched_yield();
        }
        return;
    }
    static Welcome welcome; // of whoever has the stage `asking`
    welcome = {};
    const int kept_errno = errno;
    const char* socket_name = variable(link_variable);
    warren_locality_ask(&welcome);
    find_listener();
    if (listener != nullptr) {
        listener->ask(&welcome);
    }
    const bool wanted =
        welcome.folder[0] != 0 || (socket_name != nullptr && ask(socket_name, welcome));
    errno = kept_errno;
    if (!wanted) {
        of.threshold = UINT64_MAX;
        __atomic_store_n(&of.stage, off, __ATOMIC_RELEASE);
        return;
    }
    of.pid = static_cast<std::uint32_t>(syscall(SYS_getpid));
    of.stack_depth = welcome.stack_depth;
    of.log_folder.quota = {welcome.limit_bytes, welcome.common_bytes};
    if (welcome.sums != nullptr) {
        of.allocations.tell(&welcome.sums->of[log_allocations]);
        of.stacks.tell(&welcome.sums->of[log_stacks]);
        of.phases.tell(&welcome.sums->of[log_phases]);
        of.names.tell(&welcome.sums->of[log_names]);
    }
    for (std::size_t at = 0; at + 1 < sizeof welcome.folder; ++at) {
        of.log_folder.path[at] = welcome.folder[at];
    }
    of.threshold = welcome.threshold;
    if (self.stack_bytes == 0 && tid_in(of) == of.pid) {
        find_main_stack(self.stack_begin, self.stack_bytes);
    }
    if (self.stack_bytes != 0) {
        append_stack_of_thread(of, AllocationRecord::began);
    }
    __atomic_store_n(&of.stage, recording, __ATOMIC_RELEASE);
}

State* recording_state() {
    State& of = state();
    std::uint32_t stage = __atomic_load_n(&of.stage, __ATOMIC_ACQUIRE);
    if (stage == unasked || stage == asking) {
        begin_recording(of);
        stage = __atomic_load_n(&of.stage, __ATOMIC_ACQUIRE);
    }
    return stage == recording ? &of : nullptr;
}

void append_with_stack(State& of, AllocationRecord record, const Caller& caller,
                       bool filled = false) {
    record.tid = tid_in(of);
    {
        const Lock lock(of);
        record.stack_id = of.call_stacks.find(caller, record.tid);
        if (record.stack_id != no_stack) {
            append(of, record, filled);
            return;
        }
    }
    Unwound found;
    unwind(caller, of.stack_depth, found);
    const Lock lock(of);
    record.stack_id = of.call_stacks.remember(caller, record.tid, found, of.stacks, of.log_folder);
    append(of, record, filled);
}

std::uint64_t number_of(const void* address) {
    return reinterpret_cast<std::uint64_t>(address);
}

template <std::size_t Size>
void copy_name(char (&to)[Size], const char* from) {
    for (std::size_t at = 0; at + 1 < Size && from != nullptr && from[at] != 0; ++at) {
        to[at] = from[at];
    }
}

} // namespace

std::uint64_t threshold() {
    State& of = state();
    if (__atomic_load_n(&of.stage, __ATOMIC_ACQUIRE) >= recording) [[likely]] {
        return of.threshold;
    }
    const Inside inside;
    if (!inside) {
        return UINT64_MAX; // on the way there
    }
    recording_state();
    return of.threshold;
}

Inside::Inside() : mine_(self.inside == 0) {
    self.inside = 1;
}

Inside::~Inside() {
    if (mine_) {
        self.inside = 0;
    }
}

std::uint64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(time.tv_nsec);
}

void record_begin(AllocationRecord::Kind kind, const void* address, std::uint64_t bytes,
                  std::uint64_t time_ns, const Caller& caller, const void* previous, bool filled) {
    if (State* of = recording_state()) {
        append_with_stack(*of,
                          {AllocationRecord::began, kind, number_of(address), bytes, time_ns, 0,
                           no_stack, number_of(previous)},
                          caller, filled);
    }
}

void record_end(AllocationRecord::Kind kind, const void* address, std::uint64_t bytes) {
    if (State* of = recording_state()) {
        const std::uint32_t tid = tid_in(*of);
        const Lock lock(*of);
        ++of->epoch;
        append(*of, {AllocationRecord::ended, kind, number_of(address), bytes, now_ns(), tid,
                     no_stack, 0});
    }
}

void record_discard(const void* address, std::uint64_t bytes) {
    if (State* of = recording_state()) {
        const std::uint32_t tid = tid_in(*of);
        const Lock lock(*of);
        ++of->epoch;
        append(*of, {AllocationRecord::discarded, AllocationRecord::unknown, number_of(address),
                     bytes, now_ns(), tid, no_stack, 0});
    }
}

void tell_gone(const void* address, std::uint64_t bytes) {
    if (State* of = recording_state()) {
        const Lock lock(*of);
        if (listener != nullptr) {
            listener->noted(AllocationRecord::discarded, 0, number_of(address), bytes, 0);
        }
    }
}

// Short pieces of a stream may fill a page one after the other. The piece with the page's first
// byte places it.
void record_fill(const void* address, std::uint64_t bytes, const Caller& caller) {
    constexpr std::uint64_t large_bytes = 1024;
    const std::uint64_t begin = number_of(address);
    const std::uint64_t end = begin + bytes;
    if (bytes == 0 || (bytes < large_bytes && (begin - 1) / page_bytes == (end - 1) / page_bytes)) {
        return;
    }
    State* of = recording_state();
    if (of == nullptr) {
        return;
    }
    {
        const Lock lock(*of);
        Fill& fill = of->fills[(begin / page_bytes * 0x9E3779B1U >> 8) % fill_entries];
        if (fill.begin <= begin && end <= fill.end && fill.epoch == of->epoch) {
            return;
        }
        fill = {begin, end, of->epoch};
    }
    append_with_stack(*of,
                      {AllocationRecord::filled, AllocationRecord::unknown, begin, bytes, now_ns(),
                       0, no_stack, 0},
                      caller);
}

void record_phase(PhaseRecord::Event event, std::int32_t level, const char* name) {
    if (State* of = recording_state()) {
        PhaseRecord record{};
        record.event = event;
        record.tid = tid_in(*of);
        record.time_ns = now_ns();
        record.level = level;
        copy_name(record.name, name);
        const Lock lock(*of);
        if (of->phases.append(of->log_folder, record)) {
            warren_locality_phase_noted(event, of->phases.records());
            if (listener != nullptr) {
                listener->phase_noted(event, of->phases.records());
            }
        }
    }
}

void record_name(const void* address, std::uint64_t bytes, const char* name) {
    if (State* of = recording_state()) {
        NameRecord record{};
        record.event = 1;
        record.tid = tid_in(*of);
        record.address = number_of(address);
        record.size = bytes;
        record.time_ns = now_ns();
        copy_name(record.name, name);
        const Lock lock(*of);
        of->names.append(of->log_folder, record);
    }
}

void record_own_stack(std::uint64_t begin, std::uint64_t bytes) {
    State* of = recording_state();
    self.stack_begin = begin;
    self.stack_bytes = bytes;
    if (of != nullptr) {
        append_stack_of_thread(*of, AllocationRecord::began);
    }
}

// Asks again if no recorder has wanted this process until now.
extern "C" void warren_locality_listen(const Listener* who) {
    if (who->version != link_version) {
        return;
    }
    __atomic_store_n(&listener, who, __ATOMIC_RELEASE);
    State& of = state();
    std::uint32_t expected = off;
    if (&of != &off_state) {
        __atomic_compare_exchange_n(&of.stage, &expected, unasked, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED);
    }
    threshold();
}

void record_own_stack_end() {
    State* of = recording_state();
    if (of != nullptr && self.stack_bytes != 0) {
        append_stack_of_thread(*of, AllocationRecord::ended);
    }
    self.stack_bytes = 0;
}

} // namespace warren::locality::tracker
