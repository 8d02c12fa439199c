// Counters of accesses per thread and unit of memory (a unit is a cache line, a page, 2 MiB …).
//
// Each thread has a table of two 32-bit words per unit, one for reads and one for writes, that
// inline code counts down. A word is 0 until the first access; after that it is minus (accesses ·
// 2^20 + bytes), modulo 2^32. (Each access and byte in it stands for `weight` of them, but for one
// access, which stands for itself: so what a word keeps when it is emptied has no weight.) So one
// subtraction counts, and its borrow says that something rare has happened: the thread touches the
// unit for the first time, or the word has gone round (after about 4,096 accesses), in which case
// what it held is added to the unit's account.
//
// Tables are reserved, not allocated: they take memory where units are touched, 8 B per unit and
// thread, and 64 B more where an account is needed. They are indexed by the low bits of a unit's
// number, unit_bits of them; two addresses that differ only above would share their counters, which
// is noticed (`clashes`) and does not happen while a program uses less than span_bytes().
//
// Thread rule: only its thread changes a table, with three exceptions: forget(), for memory that no
// thread may access any more, accounts' `folded`, under the lock of the recorder, and states, under
// the lock of the process. Others read
// at any time; what they miss of accesses that happen meanwhile, they see the next time.
//
// Everything in counters.cpp runs in the middle of the program's own code: it is compiled to use
// general registers only, and calls nothing.
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

// What does not fit in the words, and what has been reported already.
struct Account {
    Sums spilt;
    Sums folded;
};
static_assert(sizeof(Account) == 64);

constexpr unsigned count_shift = 20; // of the accesses in a word; below it are the bytes
constexpr std::uint32_t constant_of(std::uint32_t accesses, std::uint32_t bytes) {
    return (accesses << count_shift) + bytes;
}
// What one subtraction of inline code may add, and of loops, whose turns have up to most_in_word
// accesses: the bytes of 4,096 and that many stay below 2^20.
constexpr unsigned accesses_at_once = 30;
constexpr unsigned bytes_at_once = 64 * accesses_at_once;
constexpr unsigned most_in_word = 4000; // below 4,096
static_assert((4096 + most_in_word) * 64 < 1U << count_shift);

// Of a unit of a cache line: the bytes that were accessed since that was last written down, a bit
// each (format.hpp says of which accesses).
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

// A list that one thread makes longer and others may read meanwhile.
template <typename Item>
struct Chunk {
    static constexpr std::size_t bytes = 1 << 20;
    enum : std::size_t { room = (bytes - 16) / sizeof(Item) };
    Chunk* next;
    std::uint64_t count; // released after the item is there
    Item items[room];
};

// What is in it by now.
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
    // Called by threads in the middle of their code when the time-stamp counter has come to
    // due_clock, until that is larger again; null: nobody wants it.
    void (*look_at_time)();
    std::uint64_t due_clock;
};

// Of 64 neighbouring pages, which have been seen to be there.
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
    // With communication: units that it got from each other thread; and the same, as far as it has
    // been written.
    std::uint64_t* transfers;
    std::uint64_t* transfers_folded;
    ThreadCounters* next_thread;
    const std::uint64_t* const* stack; // where the program's stack pointer is known from; or null
    // Mode sample, else null. Outside bursts inline code counts, where it can't help it, into
    // idle_words. What is counted is multiplied by the weight when it goes into accounts or is
    // read.
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

// What is to be accessed has a page already. (Where it can't be told, too.) Where it has, its
// neighbours are asked for as well: in bursts of a program that has touched its memory long ago,
// one system call per page would be most of what they cost.
bool is_resident(ThreadCounters& thread, std::uint64_t address);

// Pages may have gone, others may come: nothing is known of them any more. After the system call,
// before its thread goes on: what others see while the kernel is at it may be of before, and only
// what is mapped afterwards can be in the same place.
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

    // What is subtracted first, so that first touches have the instruction that did it.
    Direction first() const { return access[0].write ? writing : reading; }
};

// The first instruction of the site that accesses in this direction.
std::uint64_t instruction_of(const Site& site, Direction direction);

// What inline code met, in the low bits of the address of the site, or of the Loop.
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

// Communication is what caches without limits would do, of lines of the size of a unit: a thread
// that accesses a unit which another has written since it did so itself, or which it has never
// accessed, gets it from the one that wrote it last. That is a transfer. Inline code compares the
// State, and goes by the stub if that doesn't do.
bool make_communication(Process& process); // false: there is no room
void join(ThreadCounters& thread);         // from here on the thread may access
void leave(ThreadCounters& thread);        // before its tables are freed

// Tables for a thread; false: there is no room, and `thread` is unchanged.
bool make_tables(ThreadCounters& thread, Process& process);
void free_tables(ThreadCounters& thread);

// Called by generated code.
extern "C" void warren_counts_event(ThreadCounters* thread, std::uint64_t address,
                                    std::uint64_t site_and_event);

// An access anywhere, of any size: the units that it lies in count it each.
void count_access(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                  Direction direction, std::uint64_t instruction);

// All of a site, where they lie in several units perhaps.
void count_accesses(ThreadCounters& thread, std::uint64_t address, const Site& site);

// What is to be done after `constant` has been subtracted from the word of the unit, and it has
// borrowed.
void borrowed(ThreadCounters& thread, std::uint64_t address, std::uint32_t constant,
              Direction direction, std::uint64_t instruction);

// Counts `accesses` of `each` bytes that begin at `address` and follow each other upwards. They
// weigh 1 always: in mode sample rows are counted outside bursts too.
void count_row(ThreadCounters& thread, std::uint64_t address, std::uint64_t accesses,
               std::uint32_t each, Direction direction, std::uint64_t instruction);

// The kernel wrote for the thread: no access, but perhaps the first touch.
void note_kernel_write(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                       std::uint64_t instruction);

// Puts the thread into its first burst, or the time before it. `budget`: what inline code
// subtracts from.
void start_bursts(ThreadCounters& thread, Bursts& bursts, std::int64_t* budget);

// All accesses of a thread to a unit up to now; in mode sample the estimate of them.
Sums sums_of(const ThreadCounters& thread, std::uint64_t index);

// It has something counted that isn't forgotten.
bool is_counted(const ThreadCounters& thread, std::uint64_t index);
std::uint64_t units_counted(const ThreadCounters& thread); // how many are

// The memory of the unit is gone: whoever touches it next is the first.
void forget(ThreadCounters& thread, std::uint64_t index);

} // namespace warren::locality::counts
