// Counters of accesses per thread and unit of memory (a unit is a cache line, a page, 2 MiB …).
//
// Each thread has a table of two 32-bit words per unit, one for reads and one for writes, that
// inline code counts down. A word is 0 until the first access; after that it is minus (accesses ·
// 2^20 + bytes), modulo 2^32. One subtraction counts. Its borrow means that something rare has
// happened: the thread touches the unit for the first time, or the word has wrapped (after about
// 4,096 accesses). Then its content is added to the unit's account. Each access and byte in a word
// stands for `weight` of them, except one access, which stands for itself: the access that a word
// keeps when it is emptied has no weight.
//
// Tables are reserved, not allocated. They take memory where units are touched: 8 B per unit and
// thread, and 64 B more where an account is needed. The low unit_bits bits of a unit's number are
// its index. Two addresses that differ only above would share their counters; `clashes` counts
// this, and it does not happen while a program uses less than span_bytes().
//
// Thread rule: only its thread changes a table, with three exceptions: forget(), for memory that no
// thread may access any more; accounts' `folded`, under the lock of the recorder; and states, under
// the lock of the process. Other threads read at any time and see concurrent accesses later.
//
// Everything in counters.cpp runs in the middle of the program's own code. It is compiled to use
// general registers only and calls nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analyser/counts/bursts.hpp"
#include "analyser/counts/turns.hpp"

namespace warren::locality::counts {

struct Sums {
    std::uint64_t reads;
    std::uint64_t writes;
    std::uint64_t bytes_read;
    std::uint64_t bytes_written;
};

enum Direction : unsigned { reading = 0, writing = 1 };

// Sums that words have been emptied into (spilt), and sums that have been written to the recording
// (folded).
struct Account {
    Sums spilt;
    Sums folded;
};
static_assert(sizeof(Account) == 64);

constexpr unsigned count_shift = 20; // of the accesses in a word; below it are the bytes
constexpr std::uint32_t constant_of(std::uint32_t accesses, std::uint32_t bytes) {
    return (accesses << count_shift) + bytes;
}
// Limits of one subtraction by inline code. Loops add up to most_in_word accesses: the bytes of
// that many and 4,096 more stay below 2^20.
constexpr unsigned accesses_at_once = 30;
constexpr unsigned bytes_at_once = 64 * accesses_at_once;
constexpr unsigned most_in_word = 4000; // below 4,096
static_assert((4096 + most_in_word) * 64 < 1U << count_shift);

// Bytes of a cache line that were accessed since they were last written to the recording, a bit
// each (format.hpp says by which accesses).
struct BytesUsed {
    std::uint64_t read;
    std::uint64_t written;
    std::uint64_t instruction;
};

// With communication, a unit has a third word in each thread's table (and room for a fourth).
constexpr unsigned state_word = 2;
enum State : std::uint32_t {
    invalid = 0,  // another thread has written the unit since, or the thread never accessed it
    readable = 1, // the thread knows what the unit holds
    own = 2,      // and nobody else does: it wrote last
};

struct Layout {
    unsigned unit_shift; // log2 of the bytes of a unit
    unsigned unit_bits;  // of a unit's number, that index the tables
    unsigned word_bits;  // log2 of the words of a unit in a table

    static Layout of(std::uint64_t granularity, bool communication = false);
    bool communication() const { return word_bits > 1; }
    bool lines() const { return unit_shift == 6; } // units are cache lines, whose bytes are noted
    std::uint64_t units() const { return std::uint64_t{1} << unit_bits; }
    std::uint64_t index(std::uint64_t address) const {
        return (address >> unit_shift) & (units() - 1);
    }
    std::uint64_t span_bytes() const { return units() << unit_shift; }
    std::uint64_t words_bytes() const { return units() << (word_bits + 2); }
    std::uint64_t table_bytes() const {
        return words_bytes() + units() * sizeof(Account) + units() / 8;
    }
};

// A list that one thread appends to while others read.
template <typename Item>
struct Chunk {
    static constexpr std::size_t bytes = 1 << 20;
    enum : std::size_t { room = (bytes - 16) / sizeof(Item) };
    Chunk* next;
    std::uint64_t count; // released after the item is there
    Item items[room];
};

// Calls use(item) for the items of a list up to now.
template <typename Item, typename Use>
void for_items(Chunk<Item>* const& first, const Use& use) {
    for (const auto* chunk = __atomic_load_n(&first, __ATOMIC_ACQUIRE); chunk != nullptr;
         chunk = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE)) {
        const std::uint64_t count = __atomic_load_n(&chunk->count, __ATOMIC_ACQUIRE);
        for (std::uint64_t at = 0; at < count; ++at) {
            use(chunk->items[at]);
        }
    }
}

template <typename Item>
std::uint64_t number_of_items(Chunk<Item>* const& first) {
    std::uint64_t number = 0;
    for (const auto* chunk = __atomic_load_n(&first, __ATOMIC_ACQUIRE); chunk != nullptr;
         chunk = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE)) {
        number += __atomic_load_n(&chunk->count, __ATOMIC_ACQUIRE);
    }
    return number;
}

struct FirstTouch {
    std::uint64_t address;
    std::uint64_t instruction;
    std::uint64_t clock; // time-stamp counter
    std::uint64_t top;   // of the stack, if the instruction is the C library's: perhaps its caller
    std::uint32_t write;
    std::uint32_t
        late; // mode sample: the page was there before, so somebody else may have touched it
};

struct ThreadCounters;

// Shared by all threads of the process.
struct Process {
    Layout layout;
    std::uint8_t* touched;  // per unit: 1 touched, 2 written
    std::uint32_t* owners;  // per piece of the tables: the bits of addresses above the index
    std::uint64_t clashes;  // units with counters that belong to another address
    std::uint64_t failures; // lists that could not grow
    // With communication: per unit, one more than the number of the thread that wrote it last.
    std::uint32_t* writers;
    ThreadCounters* first_thread; // that take part, under `lock`
    std::uint32_t lock;
    std::uint64_t lost_transfers;  // of most_producers
    Pool pool;                     // mode sample
    std::uint64_t c_library_begin; // its code
    std::uint64_t c_library_end;
    std::uint64_t times_changed; // that memory may have got other pages: pages_changed
    // Threads call it in the middle of their code when the time-stamp counter has reached
    // due_clock, until due_clock is larger again. Null: not wanted.
    void (*look_at_time)();
    std::uint64_t due_clock;
};

// A window of 64 neighbouring pages: those that have been seen to be resident.
struct ResidentPages {
    std::uint64_t window;        // the first one's number, over 64
    std::uint64_t pages;         // a bit for each
    std::uint64_t times_changed; // when that was seen
};

constexpr std::uint64_t resident_windows = 16; // that a thread remembers

// Transfers from threads with higher numbers are only counted together, as lost.
constexpr std::uint32_t most_producers = 4096;

struct ThreadCounters {
    std::uint32_t* words; // [unit][direction], and perhaps a State
    Account* accounts;
    std::uint8_t* listed; // a bit per unit: it is in `units`
    BytesUsed* bytes;     // null: units are larger than lines
    Process* process;
    Chunk<std::uint64_t>* first_units; // addresses of all units that the thread has touched
    Chunk<std::uint64_t>* last_units;
    std::uint64_t units_begun;     // that it has touched, again after they were forgotten
    std::uint64_t units_forgotten; // of those, under the lock of the recorder
    Chunk<FirstTouch>* first_firsts;
    Chunk<FirstTouch>* last_firsts;
    std::uint32_t number;
    bool uncounted; // shares a table that nobody reads
    // With communication: units that the thread got from each other thread, and the part of them
    // that has been written to the recording.
    std::uint64_t* transfers;
    std::uint64_t* transfers_folded;
    ThreadCounters* next_thread;
    const std::uint64_t* const* stack; // where the program's stack pointer is known from; or null
    // Mode sample, else null. Outside bursts inline code that can't skip counting counts into
    // idle_words. Counts are multiplied by the weight when they go into accounts or are read.
    Bursts* bursts;
    std::uint32_t** inline_words; // what inline code uses
    std::uint32_t* idle_words;
    std::uint32_t weight_less_one;
    std::uint32_t events; // what inline code met, to look at the clock seldom
    ResidentPages resident[resident_windows];
    Turns turns; // not in mode sample, nor where inline code doesn't count
};

inline bool is_counting(const ThreadCounters& thread) {
    return thread.bursts == nullptr || thread.bursts->counting();
}

// Whether the address has a page; true if that can't be told. If it has, the neighbouring pages are
// asked for, too: in bursts of a program that touched its memory long ago, one system call per page
// would be most of the cost.
bool is_resident(ThreadCounters& thread, std::uint64_t address);

// Forgets which pages are resident, as some may have gone and others come. Call after the system
// call and before its thread goes on: other threads may see the state before the call while the
// kernel works, and only later mappings can take the same place.
inline void pages_changed(Process& process) {
    __atomic_fetch_add(&process.times_changed, 1, __ATOMIC_RELEASE);
}

// One memory operand of an instruction.
struct Access {
    std::uint64_t instruction;
    std::int32_t offset; // from the lowest address of its site
    std::uint32_t bytes;
    bool write;
};

// Accesses of a basic block that are counted together, because their addresses differ by constants.
struct alignas(8) Site {
    std::uint32_t constants[2]; // per direction, for the case that all are in one unit
    std::uint32_t accesses;
    Access access[accesses_at_once];

    // The direction that is subtracted first, so that a first touch gets the instruction that did
    // it.
    Direction first() const { return access[0].write ? writing : reading; }
};

// The first instruction of the site that accesses in this direction.
std::uint64_t instruction_of(const Site& site, Direction direction);

// Event of inline code, in the low bits of the address of the site or of the Loop.
enum Event : std::uint64_t {
    crossing = 0,      // more than one unit: nothing is counted yet
    first_borrow = 1,  // the direction of the first access is subtracted, the other not yet
    second_borrow = 2, // both are
    burst_turn = 3,    // no access: a burst begins or ends
    turns_begin = 4,   // of a loop
    turns_end = 5,
    events = 8
};

void* reserve(std::uint64_t bytes); // null: the kernel refuses
void release(void* memory, std::uint64_t bytes);

// Communication models caches without limits, with lines of the size of a unit. A thread that
// accesses a unit for the first time, or after another thread wrote it, gets it from the last
// writer: a transfer. Inline code compares the State, and calls the stub if it does not permit the
// access.
bool make_communication(Process& process); // false: no address space is left
void join(ThreadCounters& thread);         // from here on the thread may access
void leave(ThreadCounters& thread);        // before its tables are freed

// Makes a thread's tables. False: no address space is left, and `thread` is unchanged.
bool make_tables(ThreadCounters& thread, Process& process);
void free_tables(ThreadCounters& thread);

// Called by generated code.
extern "C" void warren_counts_event(ThreadCounters* thread, std::uint64_t address,
                                    std::uint64_t site_and_event);

// Counts an access of any address and size. Each unit that it touches counts it.
void count_access(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                  Direction direction, std::uint64_t instruction);

// Counts all accesses of a site, which may lie in several units.
void count_accesses(ThreadCounters& thread, std::uint64_t address, const Site& site);

// Handles the borrow after `constant` was subtracted from the unit's word.
void borrowed(ThreadCounters& thread, std::uint64_t address, std::uint32_t constant,
              Direction direction, std::uint64_t instruction);

// Counts `accesses` of `each` bytes that begin at `address` and follow each other upwards. They
// weigh 1 always: in mode sample rows are counted outside bursts too.
void count_row(ThreadCounters& thread, std::uint64_t address, std::uint64_t accesses,
               std::uint32_t each, Direction direction, std::uint64_t instruction);

// The kernel wrote for the thread. That is no access, but perhaps the first touch.
void note_kernel_write(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                       std::uint64_t instruction);

// Puts the thread into its first burst, or the time before it. Inline code subtracts from `budget`.
void start_bursts(ThreadCounters& thread, Bursts& bursts, std::int64_t* budget);

// All accesses of a thread to a unit up to now; in mode sample their estimate.
Sums sums_of(const ThreadCounters& thread, std::uint64_t index);

// Whether the thread has counts of the unit that aren't forgotten.
bool is_counted(const ThreadCounters& thread, std::uint64_t index);
std::uint64_t units_counted(const ThreadCounters& thread); // how many are

// The memory of the unit is gone: whoever touches it next is the first.
void forget(ThreadCounters& thread, std::uint64_t index);

} // namespace warren::locality::counts
