// malloc and its family for unmodified programs: blocks by attribute, as a plan says (plan.hpp).
//
// Preloaded by `warren run`, it takes the place of the C library's functions. What no rule wants
// elsewhere, and what comes before the plan is known, is left to those (__libc_malloc …); a block
// is given back to whom it is of, which its address tells. operator new is here to know who calls
// it, and operator delete so that other libraries' don't get its blocks; where there is no memory
// the C++ library's operator new is asked, which says so as C++ wants it. A program that has a
// malloc of its own keeps it, and one that has some operators of its own keeps all of them.
//
// Where a preferred memory and all behind it are full, the system's malloc serves: a program that
// asked for nothing runs on. Strict criteria make the allocation fail.
//
// Thread rule: any thread at any time, from the first allocation on, before constructors; also in
// children of fork. While we make something ourselves (`busy`) the thread's calls are the system's.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/standard_error.hpp"
#include "memory/heap/allocator.hpp"
#include "memory/heap/heaps.hpp"
#include "memory/heap/share.hpp"
#include "memory/heap/thread_cache.hpp"
#include "memory/preload/malloc.hpp"
#include "memory/preload/own_functions.hpp"
#include "memory/preload/plan.hpp"
#include "memory/preload/sites.hpp"

// NOLINTBEGIN(readability-identifier-naming): other libraries' names
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}
// NOLINTEND(readability-identifier-naming)

// std::mutex calls this when the system refuses a lock. The C++ library, which has it, is not
// linked.
namespace std {
void __throw_system_error(int) {
    std::abort();
}
} // namespace std

constinit std::atomic<bool> warren::memory::leaves_operators{false};

namespace {

using namespace warren::memory;

enum class State { unknown, starting, on, off };

constinit std::atomic<State> state{State::unknown};
constinit Plan plan;
constinit std::atomic<Heap*>* heaps = nullptr; // by kind
constinit warren::StandardError standard_error;
[[gnu::tls_model("initial-exec")]] thread_local constinit bool busy = false;

struct Count {
    std::atomic<std::uint64_t> blocks;
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint64_t> refused; // left to the system, or failed
};
constinit Count counts[rule_limit + 1]; // by rule; behind them, those that none fits

} // namespace

void warren::memory::say(const char* what) {
    char text[200];
    const int length = std::snprintf(text, sizeof text, "warren run: %s\n", what);
    const int descriptor = standard_error.descriptor();
    // write is where a thread may be cancelled, which callers of malloc don't expect.
    if (syscall(SYS_write, descriptor, text, static_cast<std::size_t>(length)) < 0) {
        // Nobody reads it.
    }
}

namespace {

void reset_in_child() {
    unlock_sites();
    standard_error.leave_to_parent();
    for (Count& count : counts) { // its parent says those
        count.blocks.store(0, std::memory_order_relaxed);
        count.bytes.store(0, std::memory_order_relaxed);
        count.refused.store(0, std::memory_order_relaxed);
    }
}

// Once. Nothing of the C library's that allocates may be waited for here.
[[gnu::cold, gnu::noinline]] bool start() {
    if (environ == nullptr || busy) { // the loader's own, before the C library is ready
        return false;
    }
    State before = State::unknown;
    if (!state.compare_exchange_strong(before, State::starting, std::memory_order_acquire)) {
        return before == State::on;
    }
    busy = true;
    const int saved = errno;
    char* text = std::getenv(plan_variable);
    State after = State::off;
    const bool own_malloc = has_own_malloc();
    leaves_operators.store(own_malloc || has_own_operators(), std::memory_order_relaxed);
    if (own_malloc) {
        if (text != nullptr) {
            say("the program has a malloc of its own, which serves");
        }
    } else if (text != nullptr) {
        const std::size_t bytes = std::strlen(text) + 1;
        auto* kept = static_cast<char*>(take_metadata(bytes));
        if (kept != nullptr) {
            std::memcpy(kept, text, bytes);
        }
        if (kept != nullptr && plan.read(kept)) {
            heaps = static_cast<std::atomic<Heap*>*>(
                take_metadata((plan.kind_count + 1) * sizeof(std::atomic<Heap*>)));
            start_sites(plan);
            shares_count();
            // Before anybody else's, as far as can be: what others do at a fork may allocate.
            const bool guarded =
                guard_forks() && pthread_atfork(lock_sites, unlock_sites, reset_in_child) == 0;
            after = heaps != nullptr && guarded ? State::on : State::off;
        }
        if (after == State::off) {
            say("the plan of memories is damaged, or there is no memory for it: the system's "
                "malloc serves");
        }
    }
    errno = saved;
    busy = false;
    state.store(after, std::memory_order_release);
    return after == State::on;
}

bool is_on() {
    const State now = state.load(std::memory_order_acquire);
    if (now == State::on) [[likely]] {
        return !busy;
    }
    return now == State::unknown && start();
}

[[gnu::cold, gnu::noinline]] Heap* make_heap(unsigned kind) {
    busy = true;
    Heap* heap = heap_of_kind(plan.kinds[kind]);
    busy = false;
    if (heap != nullptr) {
        heaps[kind].store(heap, std::memory_order_release);
    }
    return heap;
}

unsigned rule_for(std::size_t bytes, const void* site) {
    std::uint64_t fitting = ~std::uint64_t{0};
    if (plan.by_site) {
        const int saved = errno;
        fitting = rules_of_site(site);
        errno = saved;
    }
    for (unsigned rule = 0; rule < plan.rule_count; ++rule) {
        if ((fitting >> rule & 1) != 0 && bytes >= plan.rules[rule].least &&
            bytes <= plan.rules[rule].most) {
            return rule;
        }
    }
    return rule_limit;
}

// Where a block of this size, asked for at this place, belongs. No heap: with the system.
struct Home {
    Heap* heap = nullptr;
    bool strict = false;
    unsigned rule = rule_limit;
    bool counts = false; // in the report
    bool lost = false;   // a heap is wanted, and there can't be one
};

Home home_of(std::size_t bytes, const void* site) {
    if (!is_on()) {
        return {};
    }
    const unsigned rule = rule_for(bytes, site);
    if (rule == rule_limit || plan.rules[rule].criteria == systems) {
        return {nullptr, false, rule, plan.report, false};
    }
    const PlanCriteria& criteria = plan.criteria[plan.rules[rule].criteria];
    unsigned kind = criteria.kind;
    if (criteria.by_processor) {
        const int processor = sched_getcpu();
        kind =
            criteria.kind_on[processor >= 0 ? std::min<unsigned>(static_cast<unsigned>(processor),
                                                                 processor_limit - 1)
                                            : 0];
    }
    Heap* heap = heaps[kind].load(std::memory_order_acquire); // whole
    if (heap == nullptr) [[unlikely]] {
        heap = make_heap(kind);
    }
    return {heap, plan.kinds[kind].policy == Policy::strict, rule, plan.report, heap == nullptr};
}

// The block, which the report counts if it is one.
void* served(const Home& home, std::size_t bytes, void* block) {
    if (home.counts && block != nullptr) {
        counts[home.rule].blocks.fetch_add(1, std::memory_order_relaxed);
        counts[home.rule].bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    return block;
}

// Ends an allocation that the home could not serve: true where the system's shall.
[[gnu::cold, gnu::noinline]] bool falls_back(const Home& home) {
    counts[home.rule].refused.fetch_add(1, std::memory_order_relaxed);
    errno = ENOMEM;
    return !home.strict;
}

void* allocate_in(const Home& home, std::size_t bytes) {
    if (home.heap != nullptr) [[likely]] {
        void* block = allocate(*home.heap, bytes);
        if (block != nullptr) [[likely]] {
            return served(home, bytes, block);
        }
    } else if (!home.lost) {
        return served(home, bytes, __libc_malloc(bytes));
    }
    return falls_back(home) ? __libc_malloc(bytes) : nullptr;
}

} // namespace

void* warren::memory::allocate_at(std::size_t bytes, const void* site) {
    return allocate_in(home_of(bytes, site), bytes);
}

void* warren::memory::allocate_aligned_at(std::size_t alignment, std::size_t bytes,
                                          const void* site) {
    const Home home = home_of(bytes, site);
    if (home.heap != nullptr) [[likely]] {
        void* block = allocate_aligned(*home.heap, alignment, bytes);
        if (block != nullptr) [[likely]] {
            return served(home, bytes, block);
        }
    } else if (!home.lost) {
        return served(home, bytes, __libc_memalign(alignment, bytes));
    }
    return falls_back(home) ? __libc_memalign(alignment, bytes) : nullptr;
}

namespace {

using UsableSize = std::size_t (*)(void*);
constinit std::atomic<UsableSize> systems_usable_size{nullptr};

// Not from within the loader, which may be changing its lists.
void find_usable_of_system() {
    if (systems_usable_size.load(std::memory_order_acquire) != nullptr) {
        return;
    }
    const bool before = busy;
    const int saved = errno;
    busy = true;
    if (void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)) {
        systems_usable_size.store(
            reinterpret_cast<UsableSize>(dlsym(library, "malloc_usable_size")),
            std::memory_order_release);
    }
    errno = saved;
    busy = before;
}

// Bytes of a block of the system's; 0: not known yet.
std::size_t usable_of_system(void* block) {
    const UsableSize function = systems_usable_size.load(std::memory_order_acquire);
    return function != nullptr ? function(block) : 0;
}

// The block's contents in another one, or null, when there is none; the old one stays then.
void* move_to(void* moved, void* block, std::size_t old_bytes, std::size_t bytes) {
    if (moved != nullptr) {
        std::memcpy(moved, block, std::min(old_bytes, bytes));
        if (!deallocate_ours(block)) {
            __libc_free(block);
        }
    }
    return moved;
}

void* reallocate_at(void* block, std::size_t bytes, const void* site) {
    if (block == nullptr) {
        return allocate_at(bytes, site);
    }
    if (bytes == 0) {
        give_back(block);
        return nullptr;
    }
    const std::size_t own_bytes = usable_bytes(block);
    const Home home = home_of(bytes, site);
    if (own_bytes != 0) {
        if (home.heap == heap_of(block)) {
            void* grown = reallocate(block, bytes);
            if (grown != nullptr) {
                return served(home, bytes, grown);
            }
            return falls_back(home) ? move_to(__libc_malloc(bytes), block, own_bytes, bytes)
                                    : nullptr;
        }
        return move_to(allocate_in(home, bytes), block, own_bytes, bytes);
    }
    const std::size_t systems_bytes = home.heap != nullptr ? usable_of_system(block) : 0;
    if (systems_bytes != 0) {
        return move_to(allocate_in(home, bytes), block, systems_bytes, bytes);
    }
    void* grown = __libc_realloc(block, bytes);
    return home.heap == nullptr && !home.lost ? served(home, bytes, grown) : grown;
}

bool overflows(std::size_t count, std::size_t bytes, std::size_t& whole) {
    if (__builtin_mul_overflow(count, bytes, &whole)) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

// Takes what is ours out of the environment again, so that programs which this one starts don't get
// it. In place: nothing of the program has run yet, or it has the strings already.
void leave_environment() {
    constexpr const char preload[] = "LD_PRELOAD=";
    char** kept = environ;
    for (char** each = environ; *each != nullptr; ++each) {
        if (std::strncmp(*each, plan_variable, std::strlen(plan_variable)) == 0 &&
            (*each)[std::strlen(plan_variable)] == '=') {
            continue;
        }
        if (std::strncmp(*each, preload, sizeof preload - 1) == 0) {
            // We are the first, as `warren run` has put it.
            char* list = *each + sizeof preload - 1;
            const char* rest = std::strchr(list, ':');
            if (rest == nullptr) {
                continue;
            }
            std::memmove(list, rest + 1, std::strlen(rest + 1) + 1);
        }
        *kept++ = *each;
    }
    *kept = nullptr;
}

[[gnu::constructor]] void complete_start() {
    find_usable_of_system();
    if (is_on()) {
        standard_error.keep(plan.report);
    }
    if (is_on() && !plan.children) {
        leave_environment();
    }
}

[[gnu::destructor]] void report() {
    if (state.load(std::memory_order_acquire) != State::on || !plan.report) {
        return;
    }
    for (unsigned rule = 0; rule <= rule_limit; ++rule) {
        const std::uint64_t blocks = counts[rule].blocks.load(std::memory_order_relaxed);
        if (rule >= plan.rule_count && blocks == 0) {
            continue;
        }
        char name[40] = "no rule";
        if (rule < plan.rule_count && plan.rules[rule].line != 0) {
            std::snprintf(name, sizeof name, "line %" PRIu32, plan.rules[rule].line);
        } else if (rule < plan.rule_count) {
            std::snprintf(name, sizeof name, "--memory");
        }
        char text[160];
        std::snprintf(text, sizeof text,
                      "%d: %s: %" PRIu64 " blocks, %" PRIu64 " bytes, %" PRIu64 " not served",
                      getpid(), name, blocks, counts[rule].bytes.load(std::memory_order_relaxed),
                      counts[rule].refused.load(std::memory_order_relaxed));
        say(text);
    }
}

} // namespace

bool warren::memory::operators_are_left() {
    is_on(); // starts
    return leaves_operators.load(std::memory_order_relaxed);
}

WARREN_TAKEN void* malloc(std::size_t bytes) {
    return allocate_at(bytes, __builtin_return_address(0));
}

WARREN_TAKEN void* calloc(std::size_t count, std::size_t each) {
    std::size_t bytes = 0;
    if (overflows(count, each, bytes)) {
        return nullptr;
    }
    const Home home = home_of(bytes, __builtin_return_address(0));
    if (home.heap != nullptr) [[likely]] {
        void* block = allocate(*home.heap, bytes);
        if (block != nullptr) [[likely]] {
            served(home, bytes, block);
            return bytes <= class_size_limit ? std::memset(block, 0, bytes) : block; // else new
        }
    } else if (!home.lost) {
        return served(home, bytes, __libc_calloc(count, each));
    }
    return falls_back(home) ? __libc_calloc(count, each) : nullptr;
}

WARREN_TAKEN void* realloc(void* block, std::size_t bytes) {
    return reallocate_at(block, bytes, __builtin_return_address(0));
}

WARREN_TAKEN void* reallocarray(void* block, std::size_t count, std::size_t each) {
    std::size_t bytes = 0;
    return overflows(count, each, bytes) ? nullptr
                                         : reallocate_at(block, bytes, __builtin_return_address(0));
}

void warren::memory::give_back(void* block) {
    const int saved = errno;
    if (!deallocate_ours(block)) {
        __libc_free(block);
    }
    errno = saved;
}

WARREN_TAKEN void free(void* block) {
    if (block == nullptr) {
        return;
    }
    give_back(block);
}

WARREN_TAKEN void* memalign(std::size_t alignment, std::size_t bytes) {
    // As the C library has it: the next power of two.
    alignment = std::bit_ceil(std::min(std::max(alignment, std::size_t{1}), SIZE_MAX / 2 + 1));
    return allocate_aligned_at(alignment, bytes, __builtin_return_address(0));
}

WARREN_TAKEN void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    if (!std::has_single_bit(alignment)) {
        errno = EINVAL;
        return nullptr;
    }
    return allocate_aligned_at(alignment, bytes, __builtin_return_address(0));
}

WARREN_TAKEN int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
    if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) {
        return EINVAL;
    }
    const int saved = errno;
    void* made = allocate_aligned_at(alignment, bytes, __builtin_return_address(0));
    errno = saved;
    if (made == nullptr) {
        return ENOMEM;
    }
    *block = made;
    return 0;
}

WARREN_TAKEN void* valloc(std::size_t bytes) {
    return allocate_aligned_at(warren::page_bytes, bytes, __builtin_return_address(0));
}

WARREN_TAKEN void* pvalloc(std::size_t bytes) {
    if (bytes > SIZE_MAX - warren::page_bytes) {
        errno = ENOMEM;
        return nullptr;
    }
    return allocate_aligned_at(warren::page_bytes, warren::whole_pages(bytes),
                               __builtin_return_address(0));
}

WARREN_TAKEN std::size_t malloc_usable_size(void* block) {
    const std::size_t bytes = usable_bytes(block);
    if (bytes != 0 || block == nullptr) {
        return bytes;
    }
    find_usable_of_system();
    return usable_of_system(block);
}

WARREN_TAKEN int malloc_trim(std::size_t) {
    trim();
    return 1;
}

// For libwarren.so in the same process, see share.cpp.
WARREN_TAKEN std::atomic<std::int64_t>* warren_malloc_shares_taken() {
    return shares_taken_here();
}
