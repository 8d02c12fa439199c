// Memory for counters (counters.hpp): an arena of reserved address space with the threads' tables.

#include <sys/mman.h>
#include <sys/syscall.h>

#include "analyser/counts/counters.hpp"
#include "analyser/counts/system_call.hpp"

namespace warren::locality::counts {
namespace {

// Tables lie between the addresses of programs and those of libraries, so that the program's own
// addresses stay dense. AddressSanitizer's shadow memory ends below. ThreadSanitizer's lies there,
// and the memory that it watches must be above.
#ifdef WARREN_UNDER_THREAD_SANITIZER
constexpr std::uint64_t arena_begin = 0x7e90'0000'0000;
constexpr std::uint64_t arena_end = 0x7fa0'0000'0000;
#else
constexpr std::uint64_t arena_begin = 0x1800'0000'0000;
constexpr std::uint64_t arena_end = 0x5400'0000'0000;
#endif
constexpr std::uint64_t gap = std::uint64_t{1} << 21;

std::uint64_t next_hint = arena_begin;

constexpr std::uint64_t transfers_bytes = 2 * sizeof(std::uint64_t) * most_producers;

template <typename Item>
void free_chunks(Chunk<Item>* chunk) {
    while (chunk != nullptr) {
        Chunk<Item>* const next = chunk->next;
        release(chunk, Chunk<Item>::bytes);
        chunk = next;
    }
}

} // namespace

void* reserve(std::uint64_t bytes) {
    bytes = (bytes + gap - 1) & ~(gap - 1);
    // Takes the next free place. After the last one the search begins anew, where threads have
    // ended.
    for (unsigned attempt = 0; attempt < 1 << 16; ++attempt) {
        std::uint64_t hint = __atomic_fetch_add(&next_hint, bytes + gap, __ATOMIC_RELAXED);
        if (hint + bytes > arena_end) {
            __atomic_store_n(&next_hint, arena_begin, __ATOMIC_RELAXED);
            if (attempt != 0 && bytes > arena_end - arena_begin) {
                return nullptr;
            }
            continue;
        }
        const long result =
            system_call(SYS_mmap, hint, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                        ~std::uint64_t{0}, 0);
        if (result > 0 || result < -4095) {
            return reinterpret_cast<void*>(result);
        }
        if (result != -17 /* EEXIST */) {
            return nullptr;
        }
    }
    return nullptr;
}

void release(void* memory, std::uint64_t bytes) {
    bytes = (bytes + gap - 1) & ~(gap - 1);
    system_call(SYS_munmap, reinterpret_cast<std::uint64_t>(memory), bytes, 0, 0, 0, 0);
}

bool make_communication(Process& process) {
    process.writers =
        static_cast<std::uint32_t*>(reserve(process.layout.units() * sizeof(std::uint32_t)));
    process.first_thread = nullptr;
    process.lock = 0;
    return process.writers != nullptr;
}

bool make_tables(ThreadCounters& thread, Process& process) {
    void* memory = reserve(process.layout.table_bytes());
    if (memory == nullptr) {
        return false;
    }
    const std::uint64_t units = process.layout.units();
    thread.process = &process;
    thread.words = static_cast<std::uint32_t*>(memory);
    thread.accounts =
        reinterpret_cast<Account*>(static_cast<char*>(memory) + process.layout.words_bytes());
    thread.listed = reinterpret_cast<std::uint8_t*>(thread.accounts + units);
    if (process.layout.lines()) {
        thread.bytes = static_cast<BytesUsed*>(reserve(units * sizeof(BytesUsed)));
        if (thread.bytes == nullptr) {
            release(memory, process.layout.table_bytes());
            return false;
        }
    }
    if (process.layout.communication()) {
        thread.transfers = static_cast<std::uint64_t*>(reserve(transfers_bytes));
        if (thread.transfers == nullptr) {
            release(memory, process.layout.table_bytes());
            if (thread.bytes != nullptr) {
                release(thread.bytes, units * sizeof(BytesUsed));
                thread.bytes = nullptr;
            }
            return false;
        }
        thread.transfers_folded = thread.transfers + most_producers;
    }
    return true;
}

void free_tables(ThreadCounters& thread) {
    release(thread.words, thread.process->layout.table_bytes());
    thread.words = nullptr;
    if (thread.bytes != nullptr) {
        release(thread.bytes, thread.process->layout.units() * sizeof(BytesUsed));
        thread.bytes = nullptr;
    }
    if (thread.transfers != nullptr) {
        release(thread.transfers, transfers_bytes);
        thread.transfers = thread.transfers_folded = nullptr;
    }
    free_chunks(thread.first_units);
    free_chunks(thread.first_firsts);
    thread.first_units = thread.last_units = nullptr;
    thread.units_begun = thread.units_forgotten = 0;
    thread.first_firsts = thread.last_firsts = nullptr;
}

} // namespace warren::locality::counts
