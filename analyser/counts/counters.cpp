#include "analyser/counts/counters.hpp"

#include <initializer_list>
#include <sys/syscall.h>

#include "analyser/counts/system_call.hpp"

namespace warren::locality::counts {
namespace {

constexpr unsigned owner_pieces_bits = 8;

std::uint32_t& word_of(const ThreadCounters& thread, std::uint64_t index, unsigned word) {
    return thread.words[(index << thread.process->layout.word_bits) + word];
}

// Lock for the few instructions that a transfer takes. If the process's end has stopped a thread
// that holds it, the others stop waiting after a while.
class Turn {
  public:
    explicit Turn(Process& process) : process_(process) {
        constexpr unsigned patience = 1U << 20;
        for (unsigned turn = 1; __atomic_exchange_n(&process_.lock, 1, __ATOMIC_ACQUIRE) != 0;
             ++turn) {
            if (turn == patience) {
                break;
            }
            if (turn % 64 == 0) {
                system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
            }
            __builtin_ia32_pause();
        }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { __atomic_store_n(&process_.lock, 0, __ATOMIC_RELEASE); }

  private:
    Process& process_;
};

// The thread is about to access the unit.
void acquire(ThreadCounters& thread, std::uint64_t index, Direction direction) {
    Process& process = *thread.process;
    if (!process.layout.communication() || thread.uncounted) {
        return;
    }
    std::uint32_t& state = word_of(thread, index, state_word);
    if (__atomic_load_n(&state, __ATOMIC_RELAXED) >= (direction == writing ? own : readable)) {
        return;
    }
    const Turn turn(process);
    std::uint32_t& writer = process.writers[index];
    const std::uint32_t self = thread.number + 1;
    if (state == invalid && writer != 0 && writer != self) {
        ++(writer <= most_producers ? thread.transfers[writer - 1] : process.lost_transfers);
    }
    for (ThreadCounters* other = process.first_thread; other != nullptr;
         other = other->next_thread) {
        if (other == &thread) {
            continue;
        }
        std::uint32_t& of_other = word_of(*other, index, state_word);
        if (direction == writing) {
            __atomic_store_n(&of_other, invalid, __ATOMIC_RELAXED);
        } else if (of_other == own) {
            __atomic_store_n(&of_other, readable, __ATOMIC_RELAXED);
        }
    }
    __atomic_store_n(&state, direction == writing ? own : readable, __ATOMIC_RELAXED);
    if (direction == writing) {
        writer = self;
    }
}

template <typename Item>
void append(Chunk<Item>*& first, Chunk<Item>*& last, const Item& item, Process& process) {
    if (last == nullptr || last->count == Chunk<Item>::room) {
        auto* chunk = static_cast<Chunk<Item>*>(reserve(Chunk<Item>::bytes));
        if (chunk == nullptr) {
            __atomic_fetch_add(&process.failures, 1, __ATOMIC_RELAXED);
            return;
        }
        if (last == nullptr) {
            __atomic_store_n(&first, chunk, __ATOMIC_RELEASE);
        } else {
            __atomic_store_n(&last->next, chunk, __ATOMIC_RELEASE);
        }
        last = chunk;
    }
    last->items[last->count] = item;
    __atomic_store_n(&last->count, last->count + 1,
                     __ATOMIC_RELEASE); // pairs with readers' acquire
}

std::uint64_t weight_of(const ThreadCounters& thread) {
    return std::uint64_t{__atomic_load_n(&thread.weight_less_one, __ATOMIC_ACQUIRE)} + 1;
}

void add(Sums& sums, Direction direction, std::uint64_t accesses, std::uint64_t bytes) {
    if (direction == writing) {
        sums.writes += accesses;
        sums.bytes_written += bytes;
    } else {
        sums.reads += accesses;
        sums.bytes_read += bytes;
    }
}

// The word on top of the program's stack; 0 if it would be the first word of a page. The stack may
// be empty, as when a thread or a child of vfork begins, with nothing mapped above it.
std::uint64_t top_of_stack(const ThreadCounters& thread) {
    constexpr std::uint64_t page_bytes = 4096;
    const auto at = reinterpret_cast<std::uint64_t>(*thread.stack);
    return (at + sizeof at - 1) % page_bytes < sizeof at ? 0 : **thread.stack;
}

// The thread touches the unit for the first time, and may be the first of all threads.
void note_touch(ThreadCounters& thread, std::uint64_t address, Direction direction,
                std::uint64_t instruction) {
    const unsigned shift = thread.process->layout.unit_shift;
    const std::uint64_t unit = address >> shift << shift;
    std::uint8_t& touched = thread.process->touched[thread.process->layout.index(unit)];
    const std::uint8_t mark = direction == writing ? 3 : 1;
    if ((__atomic_load_n(&touched, __ATOMIC_RELAXED) & mark) == mark) {
        return;
    }
    const std::uint8_t before = __atomic_fetch_or(&touched, mark, __ATOMIC_RELAXED);
    if ((before & mark) != mark) {
        const bool late = thread.bursts != nullptr && is_resident(thread, address);
        const Process& process = *thread.process;
        const bool of_library = process.c_library_begin <= instruction &&
                                instruction < process.c_library_end && thread.stack != nullptr;
        append(thread.first_firsts, thread.last_firsts,
               FirstTouch{unit, instruction, __builtin_ia32_rdtsc(),
                          of_library ? top_of_stack(thread) : 0, direction, late},
               *thread.process);
    }
}

// The thread has not accessed this unit in this direction before.
void note_first(ThreadCounters& thread, std::uint64_t address, Direction direction,
                std::uint64_t instruction) {
    Process& process = *thread.process;
    const std::uint64_t index = process.layout.index(address);
    const auto bit = static_cast<std::uint8_t>(1U << (index & 7));
    const std::uint64_t unit = address >> process.layout.unit_shift << process.layout.unit_shift;
    if ((thread.listed[index >> 3] & bit) == 0) {
        thread.listed[index >> 3] |= bit;
        append(thread.first_units, thread.last_units, unit, process);
    }
    if (word_of(thread, index, direction == reading ? writing : reading) == 0) {
        __atomic_store_n(&thread.units_begun, thread.units_begun + 1, __ATOMIC_RELAXED);
    }
    const auto above = static_cast<std::uint32_t>(
        (address >> process.layout.unit_shift >> process.layout.unit_bits) + 1);
    std::uint32_t& owner = process.owners[index >> (process.layout.unit_bits - owner_pieces_bits)];
    std::uint32_t expected = 0;
    if (!__atomic_compare_exchange_n(&owner, &expected, above, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED) &&
        expected != above) {
        __atomic_fetch_add(&process.clashes, 1, __ATOMIC_RELAXED);
    }
    note_touch(thread, address, direction, instruction);
}

// Moves all but one access from the word to the account.
void spill(ThreadCounters& thread, std::uint64_t index, Direction direction, std::uint64_t sum) {
    // In this order, a concurrent reader sees too few accesses but never too many.
    __atomic_store_n(&word_of(thread, index, direction), 0U - constant_of(1, 0), __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    const std::uint64_t weight = weight_of(thread);
    add(thread.accounts[index].spilt, direction, weight * ((sum >> count_shift) - 1),
        weight * (sum & ((1U << count_shift) - 1)));
}

// Changes the weight of later counts. Earlier counts keep their weight: no word holds any of them
// when the new weight is stored, and words count again only after that.
void change_weight(ThreadCounters& thread, std::uint32_t weight) {
    for_items(thread.first_units, [&](std::uint64_t unit) {
        const std::uint64_t index = thread.process->layout.index(unit);
        for (const Direction direction : {reading, writing}) {
            const std::uint32_t word = word_of(thread, index, direction);
            if (word != 0 && word != 0U - constant_of(1, 0)) {
                spill(thread, index, direction, (std::uint64_t{1} << 32) - word);
            }
        }
    });
    __atomic_store_n(&thread.weight_less_one, weight - 1, __ATOMIC_RELEASE);
}

std::uint64_t processor_ns() {
    struct {
        std::int64_t seconds, ns;
    } time{};
    constexpr std::uint64_t thread_clock = 3; // CLOCK_THREAD_CPUTIME_ID
    system_call(SYS_clock_gettime, thread_clock, reinterpret_cast<std::uint64_t>(&time), 0, 0, 0,
                0);
    return static_cast<std::uint64_t>(time.seconds) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.ns);
}

void turn_burst(ThreadCounters& thread) {
    Bursts& bursts = *thread.bursts;
    if (bursts.turn(processor_ns())) {
        change_weight(thread, bursts.weight());
    }
    *thread.inline_words = bursts.counting() ? thread.words : thread.idle_words;
}

void subtract(ThreadCounters& thread, std::uint64_t address, std::uint32_t constant,
              Direction direction, std::uint64_t instruction) {
    const std::uint64_t index = thread.process->layout.index(address);
    acquire(thread, index, direction);
    std::uint32_t& word = word_of(thread, index, direction);
    const std::uint32_t before = word;
    word = before - constant;
    if (before < constant) {
        borrowed(thread, address, constant, direction, instruction);
    }
}

// Counts any number of accesses within one unit.
void count_many(ThreadCounters& thread, std::uint64_t address, std::uint64_t accesses,
                std::uint64_t bytes, std::uint64_t weight, Direction direction,
                std::uint64_t instruction) {
    if (accesses == 1 && bytes <= 64 && weight == weight_of(thread)) {
        subtract(thread, address, constant_of(1, static_cast<std::uint32_t>(bytes)), direction,
                 instruction);
        return;
    }
    const std::uint64_t index = thread.process->layout.index(address);
    acquire(thread, index, direction);
    std::uint32_t& word = word_of(thread, index, direction);
    std::uint64_t counted = weight * accesses;
    if (word == 0) {
        note_first(thread, address, direction, instruction);
        word = 0U - constant_of(1, 0);
        --counted;
    }
    add(thread.accounts[index].spilt, direction, counted, weight * bytes);
}

// Notes the bytes of an access within one unit.
void note_bytes(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                Direction direction, std::uint64_t instruction) {
    if (thread.bytes == nullptr) {
        return;
    }
    constexpr std::uint64_t line = 64;
    BytesUsed& used = thread.bytes[thread.process->layout.index(address)];
    const std::uint64_t mask = (bytes < line ? (std::uint64_t{1} << bytes) - 1 : ~std::uint64_t{0})
                               << (address & (line - 1));
    std::uint64_t& known = direction == writing ? used.written : used.read;
    if ((known & mask) != mask) {
        if (direction == writing || used.written == 0) {
            used.instruction = instruction;
        }
        known |= mask;
    }
}

// Notes the bytes of a site's accesses in one direction. All lie in one unit.
void note_bytes(ThreadCounters& thread, std::uint64_t address, const Site& site,
                Direction direction) {
    for (unsigned index = 0; thread.bytes != nullptr && index < site.accesses; ++index) {
        const Access& access = site.access[index];
        if (access.write == (direction == writing)) {
            note_bytes(thread, address + static_cast<std::uint64_t>(std::int64_t{access.offset}),
                       access.bytes, direction, access.instruction);
        }
    }
}

// Each unit that the access touches counts it, with the bytes in that unit.
void count_weighted(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                    std::uint64_t weight, Direction direction, std::uint64_t instruction) {
    // xsave counts with its largest area, which may reach beyond the stack's end.
    constexpr std::uint64_t end_of_memory = std::uint64_t{1} << 47;
    if (address < end_of_memory && bytes > end_of_memory - address) {
        bytes = end_of_memory - address;
    }
    const std::uint64_t unit_bytes = std::uint64_t{1} << thread.process->layout.unit_shift;
    while (bytes != 0) {
        const std::uint64_t room = unit_bytes - (address & (unit_bytes - 1));
        const std::uint64_t here = bytes < room ? bytes : room;
        count_many(thread, address, 1, here, weight, direction, instruction);
        note_bytes(thread, address, here, direction, instruction);
        address += here;
        bytes -= here;
    }
}

// Handles an event at a site.
void met(ThreadCounters& thread, std::uint64_t address, const Site& site, std::uint64_t event) {
    const Direction first = site.first();
    const Direction second = first == reading ? writing : reading;
    switch (event) {
    case crossing:
        count_accesses(thread, address, site);
        break;
    case first_borrow:
        borrowed(thread, address, site.constants[first], first, instruction_of(site, first));
        note_bytes(thread, address, site, first);
        if (site.constants[second] != 0) {
            subtract(thread, address, site.constants[second], second, instruction_of(site, second));
            note_bytes(thread, address, site, second);
        }
        break;
    default:
        borrowed(thread, address, site.constants[second], second, instruction_of(site, second));
        note_bytes(thread, address, site, second);
    }
}

// Calls look_at_time() if that is due. `always`: the last look was long ago.
void look_at_clock(ThreadCounters& thread, bool always) {
    constexpr std::uint32_t events_per_look = 16; // the clock takes as long as half an event
    const Process& process = *thread.process;
    if (process.look_at_time == nullptr || (++thread.events % events_per_look != 0 && !always) ||
        __builtin_ia32_rdtsc() < __atomic_load_n(&process.due_clock, __ATOMIC_RELAXED)) {
        return;
    }
    process.look_at_time();
}

} // namespace

bool is_resident(ThreadCounters& thread, std::uint64_t address) {
    constexpr unsigned page_bits = 12;
    constexpr unsigned window_bits = 6;
    constexpr std::uint64_t pages = 1U << window_bits;
    const std::uint64_t window = address >> page_bits >> window_bits;
    const std::uint64_t page = address >> page_bits & (pages - 1);
    const std::uint64_t times_changed =
        __atomic_load_n(&thread.process->times_changed, __ATOMIC_ACQUIRE);
    ResidentPages& known = thread.resident[window % resident_windows];
    if (known.window == window && known.times_changed == times_changed &&
        (known.pages >> page & 1) != 0) {
        return true;
    }
    unsigned char there[pages];
    there[0] = 1; // also where it can't be told
    system_call(SYS_mincore, address >> page_bits << page_bits, 1U << page_bits,
                reinterpret_cast<std::uint64_t>(there), 0, 0, 0);
    if ((there[0] & 1) == 0) {
        return false;
    }
    known = {window, std::uint64_t{1} << page, times_changed};
    if (system_call(SYS_mincore, window << window_bits << page_bits, pages << page_bits,
                    reinterpret_cast<std::uint64_t>(there), 0, 0, 0) == 0) {
        for (std::uint64_t index = 0; index < pages; ++index) {
            known.pages |= std::uint64_t{there[index] & 1U} << index;
        }
    }
    return true;
}

Layout Layout::of(std::uint64_t granularity, bool communication) {
    const auto shift = static_cast<unsigned>(__builtin_ctzll(granularity));
    unsigned bits = shift < 12 ? 31 : 28;
    bits = bits + shift > 47 ? 47 - shift : bits;
    return {shift, bits, communication ? 2U : 1U};
}

void borrowed(ThreadCounters& thread, std::uint64_t address, std::uint32_t constant,
              Direction direction, std::uint64_t instruction) {
    const std::uint64_t index = thread.process->layout.index(address);
    std::uint32_t& word = word_of(thread, index, direction);
    if (word == 0U - constant) {
        note_first(thread, address, direction, instruction);
        if (const std::uint64_t others = weight_of(thread) - 1) {
            add(thread.accounts[index].spilt, direction, others, 0);
        }
        return;
    }
    spill(thread, index, direction, (std::uint64_t{1} << 33) - word);
}

std::uint64_t instruction_of(const Site& site, Direction direction) {
    for (unsigned index = 0; index < site.accesses; ++index) {
        if (site.access[index].write == (direction == writing)) {
            return site.access[index].instruction;
        }
    }
    return 0;
}

void count_access(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                  Direction direction, std::uint64_t instruction) {
    count_weighted(thread, address, bytes, weight_of(thread), direction, instruction);
}

void count_accesses(ThreadCounters& thread, std::uint64_t address, const Site& site) {
    for (unsigned index = 0; index < site.accesses; ++index) {
        const Access& access = site.access[index];
        count_access(thread, address + static_cast<std::uint64_t>(std::int64_t{access.offset}),
                     access.bytes, access.write ? writing : reading, access.instruction);
    }
}

void join(ThreadCounters& thread) {
    const Turn turn(*thread.process);
    thread.next_thread = thread.process->first_thread;
    thread.process->first_thread = &thread;
}

void leave(ThreadCounters& thread) {
    const Turn turn(*thread.process);
    for (ThreadCounters** at = &thread.process->first_thread; *at != nullptr;
         at = &(*at)->next_thread) {
        if (*at == &thread) {
            *at = thread.next_thread;
            return;
        }
    }
}

void start_bursts(ThreadCounters& thread, Bursts& bursts, std::int64_t* budget) {
    thread.bursts = &bursts;
    const auto seed = __builtin_ia32_rdtsc() ^ (std::uint64_t{thread.number} << 32);
    bursts.start(budget, thread.process->pool, seed, processor_ns());
    thread.weight_less_one = bursts.weight() - 1;
    *thread.inline_words = bursts.counting() ? thread.words : thread.idle_words;
}

extern "C" void warren_counts_event(ThreadCounters* thread, std::uint64_t address,
                                    std::uint64_t site_and_event) {
    const std::uint64_t event = site_and_event % events;
    const std::uint64_t place = site_and_event - event;
    switch (event) {
    case turns_begin:
        begin_turns(*thread, *reinterpret_cast<Loop*>(place));
        break;
    case turns_end:
        end_turns(*thread);
        break;
    case burst_turn:
        turn_burst(*thread);
        break;
    default:
        if (is_counting(*thread)) { // else it was of idle words
            met(*thread, address, *reinterpret_cast<const Site*>(place), event);
        }
    }
    look_at_clock(*thread, event == burst_turn);
}

void count_row(ThreadCounters& thread, std::uint64_t address, std::uint64_t accesses,
               std::uint32_t each, Direction direction, std::uint64_t instruction) {
    const std::uint64_t unit_bytes = std::uint64_t{1} << thread.process->layout.unit_shift;
    while (accesses != 0) {
        const std::uint64_t room = unit_bytes - (address & (unit_bytes - 1));
        const std::uint64_t whole = room / each < accesses ? room / each : accesses;
        if (whole != 0) {
            count_many(thread, address, whole, whole * each, 1, direction, instruction);
            note_bytes(thread, address, whole * each, direction, instruction);
            address += whole * each;
            accesses -= whole;
        }
        if (accesses != 0 && whole * each != room) {
            count_weighted(thread, address, each, 1, direction, instruction);
            address += each;
            --accesses;
        }
    }
}

void note_kernel_write(ThreadCounters& thread, std::uint64_t address, std::uint64_t bytes,
                       std::uint64_t instruction) {
    if (thread.bursts != nullptr) {
        return; // whether the page was there before isn't known any more
    }
    const std::uint64_t unit_bytes = std::uint64_t{1} << thread.process->layout.unit_shift;
    for (std::uint64_t unit = address & ~(unit_bytes - 1); unit < address + bytes;
         unit += unit_bytes) {
        note_touch(thread, unit, writing, instruction);
    }
}

Sums sums_of(const ThreadCounters& thread, std::uint64_t index) {
    Sums sums{};
    for (const Direction direction : {reading, writing}) {
        const std::uint32_t& word = word_of(thread, index, direction);
        if (__atomic_load_n(&word, __ATOMIC_RELAXED) == 0) {
            continue; // without a word there is no account either
        }
        const Sums& spilt = thread.accounts[index].spilt;
        const std::uint64_t& accesses = direction == writing ? spilt.writes : spilt.reads;
        const std::uint64_t& bytes = direction == writing ? spilt.bytes_written : spilt.bytes_read;
        std::uint64_t accesses_before = 0;
        std::uint64_t bytes_before = 0;
        std::uint64_t sum = 0;
        std::uint64_t weight = 0;
        // Reads again if the word was emptied in between: the word would be older than the account.
        // A changed weight is handled in the same way.
        do {
            accesses_before = __atomic_load_n(&accesses, __ATOMIC_ACQUIRE);
            bytes_before = __atomic_load_n(&bytes, __ATOMIC_ACQUIRE);
            sum = (std::uint64_t{1} << 32) - __atomic_load_n(&word, __ATOMIC_ACQUIRE);
            weight = weight_of(thread);
        } while (__atomic_load_n(&accesses, __ATOMIC_RELAXED) != accesses_before ||
                 __atomic_load_n(&bytes, __ATOMIC_RELAXED) != bytes_before);
        const std::uint64_t in_word = sum >> count_shift; // 0: seen in the middle of a borrow
        add(sums, direction, accesses_before + (in_word == 0 ? 0 : weight * (in_word - 1) + 1),
            bytes_before + weight * (sum & ((1U << count_shift) - 1)));
    }
    return sums;
}

bool is_counted(const ThreadCounters& thread, std::uint64_t index) {
    return (__atomic_load_n(&word_of(thread, index, reading), __ATOMIC_RELAXED) |
            __atomic_load_n(&word_of(thread, index, writing), __ATOMIC_RELAXED)) != 0;
}

std::uint64_t units_counted(const ThreadCounters& thread) {
    const std::uint64_t begun = __atomic_load_n(&thread.units_begun, __ATOMIC_RELAXED);
    return begun > thread.units_forgotten ? begun - thread.units_forgotten : 0;
}

void forget(ThreadCounters& thread, std::uint64_t index) {
    std::uint32_t* const words = &word_of(thread, index, 0);
    if (thread.process->layout.communication()) {
        words[state_word] = invalid;
        thread.process->writers[index] = 0;
    }
    if (!is_counted(thread, index)) {
        return;
    }
    ++thread.units_forgotten;
    words[reading] = 0;
    words[writing] = 0;
    thread.accounts[index] = Account{};
}

} // namespace warren::locality::counts
