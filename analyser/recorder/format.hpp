// The format of a recording, which the recorders of the locality analyser write and its analysis
// reads (analyser/reports/recording.py has the same in Python). Plain data that needs nothing but
// sizes: code inside a recorded program includes this file and no more.
//
// A recording is a folder with a folder per process image: `rank-00003` for a rank, `process-4711`
// for another process. A forked process and an executed program get folders of their own, with a
// number behind the name if that is taken. Each has `process.json` (recording.hpp) and files of
// records.
//     threads.rec        ThreadRecord         who ran, when, with how much processor time
//     modules.rec        ModuleRecord         what was loaded where; paths are in strings.bin
//     stacks.rec         StackRecord          where allocations and names come from
//     touch_stacks.rec   StackRecord          where touches come from
//     allocations.rec    AllocationRecord     pieces of memory: begin and end of life
//     touches.rec        TouchRecord          pages when they are placed   (first-touch mode)
//     intervals.rec      IntervalRecord       what the numbers of intervals in counts mean
//     counts.rec         CountRecord          accesses per unit and thread (counts mode)
//     first.rec          FirstRecord          first touches of units       (counts mode)
//     communication.rec  CommunicationRecord  between threads              (counts mode)
//     bytes.rec          BytesRecord          of cache lines       (counts mode)
//     phases.rec         PhaseRecord          regions that the program marks
//     names.rec          NameRecord           structures that the program names
// A missing file has no records. Each file begins with a FileHeader. Records of equal size follow;
// an incomplete last one doesn't count. A record whose first word is 0 was about to be written when
// its writer was stopped: readers skip it, but it has its number. At the end of a recording
// process.json gets `files`, the lengths and CRC-32 sums of all other files, and `sum`, its own.
// They reveal what is missing, cut off or changed later. Where the recorder is within the program
// (all modes but first-touch), files of the tracker (log_sum.hpp) may be longer: the rest is unused
// space or came after the end, and doesn't count.
//
// Invariants: everything is little-endian. Times are CLOCK_MONOTONIC in nanoseconds; 0 is unknown.
// Addresses are the process's own. `thread` is the number of a thread in its process, from 0 in
// order of creation; `tid` is the system's number, which several threads may have one after the
// other. The records of a file are in order of time for each thread, and nearly so between threads.
#pragma once

#include <cstdint>

namespace warren::locality {

constexpr char file_magic[8] = {'W', 'A', 'R', 'R', 'E', 'N', 'L', 'R'};
// Readers refuse other versions. Increment it when a record or a meaning changes.
constexpr std::uint32_t format_version = 1;
constexpr const char* strings_file = "strings.bin";
constexpr const char* process_file = "process.json";
// In a recording of mode sample: a first-touch recording of the same processes, from the kernel's
// page faults. Pid and time join its folders with the others. `faults` in process.json says whether
// there is one.
constexpr const char* faults_folder = "faults";
constexpr std::uint32_t no_thread = 0xffffffffU;
constexpr std::uint32_t no_stack = 0;
constexpr std::uint32_t no_allocation = 0;

struct FileHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t kind; // of the records: the four letters of their `kind`
    std::uint32_t header_bytes;
    std::uint32_t record_bytes;
    std::uint64_t lost; // records for which a writer in the program had no room
};
static_assert(sizeof(FileHeader) == 32);

constexpr std::uint32_t letters(const char (&text)[5]) {
    std::uint32_t code = 0;
    for (unsigned index = 0; index < 4; ++index) {
        code |= std::uint32_t{static_cast<unsigned char>(text[index])} << (8 * index);
    }
    return code;
}

struct ThreadRecord {
    static constexpr std::uint32_t kind = letters("THRD");
    static constexpr const char* file = "threads.rec";
    enum Event : std::uint32_t {
        began = 1,
        ended = 2,
        so_far =
            3, // the processor time up to now of one that runs; the last record of a thread holds
    };
    std::uint32_t event;
    std::uint32_t thread;
    std::uint32_t tid;
    std::uint32_t parent; // the thread that made it, or no_thread
    std::uint64_t time_ns;
    std::uint64_t cpu_ns;       // 0 in `began`; in first-touch mode up to 50 ms before the end
    std::uint64_t instructions; // 0: unknown
    char name[16];              // ends with 0; empty: unknown
};
static_assert(sizeof(ThreadRecord) == 56);

struct ModuleRecord {
    static constexpr std::uint32_t kind = letters("MODL");
    static constexpr const char* file = "modules.rec";
    enum Event : std::uint32_t { loaded = 1, unloaded = 2 };
    std::uint32_t event;
    std::uint32_t path_bytes;
    std::uint64_t time_ns;
    std::uint64_t begin; // the mapped part [begin, end) is that from file_offset of the file
    std::uint64_t end;
    std::uint64_t file_offset;
    std::uint64_t path_offset; // in strings.bin
    std::uint32_t build_id_bytes;
    std::uint8_t build_id[20];
};
static_assert(sizeof(ModuleRecord) == 72);

// Stacks form a tree: record i (from 1) is a place, called from the place of record `caller`, which
// is smaller. A stack is the number of its innermost place.
struct StackRecord {
    static constexpr std::uint32_t kind = letters("STCK");
    static constexpr const char* file = "stacks.rec";
    static constexpr const char* touches_file = "touch_stacks.rec";
    enum Place : std::uint32_t {
        return_address = 1, // the instruction before it is the call
        instruction = 2,    // the address is that of the instruction itself
    };
    std::uint32_t place;
    std::uint32_t caller; // no_stack: there is none, or it is not known
    std::uint64_t address;
};
static_assert(sizeof(StackRecord) == 16);

struct AllocationRecord {
    static constexpr std::uint32_t kind = letters("ALLO");
    static constexpr const char* file = "allocations.rec";
    // The order in the file is that of cause and effect: an end precedes the beginning of the block
    // that gets its memory, even if their times overlap, as that of `began` is from before the
    // call. `ended` ends what began last at its address; if nothing did, it belongs to a block too
    // small to be recorded. With a size it ends everything in [address, address + size), parts too.
    // `discarded`: the pages are free, and the next touch places them anew (madvise); it begins
    // nothing. `filled`: a system call wrote [address, address + size), which the kernel does not
    // report as a touch; pages that had not been placed were placed by `tid`.
    enum Event : std::uint32_t { began = 1, ended = 2, discarded = 3, filled = 4 };
    enum Kind : std::uint32_t {
        unknown = 0,
        heap = 1,    // malloc and its kin, operator new
        mapping = 2, // mmap, private
        shared = 3,  // mmap, shared: of a file, of shm_open, or without a name
        shmem = 4,   // shmat
        program_break = 5,
        stack = 6, // of thread `tid`
    };
    std::uint32_t event;
    std::uint32_t what; // a Kind; 0 in `discarded` and `filled`
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t time_ns;
    std::uint32_t tid;
    std::uint32_t stack_id; // in stacks.rec
    // The former address (realloc, mremap), else 0. For shared memory: a number of its first byte
    // that is the same in all processes of the node and grows with the address (from its file or
    // segment and the offset in it); 0: not known.
    std::uint64_t previous;
};
static_assert(sizeof(AllocationRecord) == 48);

// In a first-touch recording the kernel reports when an absent page is needed. The first touch of a
// page that writes places it: a read of untouched memory without a name maps the kernel's page of
// zeros, and the write that follows places the page. Shared memory has no such page: there reads
// place, too.
struct TouchRecord {
    static constexpr std::uint32_t kind = letters("TOUC");
    static constexpr const char* file = "touches.rec";
    enum Flag : std::uint32_t {
        valid = 1, // always
        write = 2,
        read = 4,   // neither: unknown
        kernel = 8, // within a system call
        major = 16, // the page had to be read from a file or from swap
    };
    std::uint32_t flags;
    std::uint32_t thread;
    std::uint64_t address; // the byte, not the page, where it is known
    std::uint64_t bytes;   // that were mapped: 4096, or 2 MiB for a huge page. 0: unknown, one page
    std::uint64_t time_ns;
    std::uint64_t physical; // address of the page, 0: unknown
    std::uint32_t stack_id; // in touch_stacks.rec; the innermost is the instruction
    std::int32_t node;      // NUMA node, -1: unknown
};
static_assert(sizeof(TouchRecord) == 48);

struct IntervalRecord {
    static constexpr std::uint32_t kind = letters("INTV");
    static constexpr const char* file = "intervals.rec";
    std::uint32_t number; // from 1
    std::uint32_t phase;  // number (from 1) of the record in phases.rec that began it, else 0
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
};
static_assert(sizeof(IntervalRecord) == 24);

// Accesses of one thread to one unit of memory in one interval: differences, not running sums.
struct CountRecord {
    static constexpr std::uint32_t kind = letters("CNTS");
    static constexpr const char* file = "counts.rec";
    std::uint32_t interval;
    std::uint32_t thread;
    std::uint64_t address;    // of the unit; its size is `granularity` in process.json
    std::uint32_t allocation; // number (from 1) of its first record in allocations.rec
    std::uint32_t reserved;
    std::uint64_t reads;
    std::uint64_t writes;
    std::uint64_t bytes_read;
    std::uint64_t bytes_written;
};
static_assert(sizeof(CountRecord) == 56);

struct FirstRecord {
    static constexpr std::uint32_t kind = letters("FRST");
    static constexpr const char* file = "first.rec";
    // `late`: the page was there before, so it may not be the first touch (sample mode).
    enum Flag : std::uint32_t { valid = 1, write = 2, late = 4 };
    std::uint32_t flags;
    std::uint32_t thread;
    std::uint64_t address; // of the unit
    std::uint64_t time_ns;
    std::uint64_t instruction;
    std::uint32_t allocation;
    std::uint32_t stack_id; // in touch_stacks.rec, or no_stack
};
static_assert(sizeof(FirstRecord) == 40);

// Units that a thread got from another. The `consumer` accessed them for the first time, or after
// another thread wrote them; the `producer` wrote them last. `bytes` are those of the units.
struct CommunicationRecord {
    static constexpr std::uint32_t kind = letters("COMM");
    static constexpr const char* file = "communication.rec";
    std::uint32_t interval;
    std::uint32_t producer; // thread that wrote
    std::uint32_t consumer; // thread that then read or wrote
    std::uint32_t reserved;
    std::uint64_t events;
    std::uint64_t bytes;
};
static_assert(sizeof(CommunicationRecord) == 32);

// Bytes of a unit of 64 B that a thread has used, a bit each, the lowest first: those of the
// examined accesses. In mode hooks all accesses are examined. In mode counts they are the thread's
// first access to the line in each direction, one in 4,096 after it, each that crosses lines, and,
// with communication, each that took the line from another thread. In mode sample they are those
// among these that bursts have met.
struct BytesRecord {
    static constexpr std::uint32_t kind = letters("BYTS");
    static constexpr const char* file = "bytes.rec";
    std::uint32_t flags; // 1
    std::uint32_t thread;
    std::uint64_t address; // of the unit
    std::uint32_t allocation;
    std::uint32_t reserved;
    std::uint64_t read;
    std::uint64_t written;
    std::uint64_t instruction; // that used the latest of them, by writing if any was written
};
static_assert(sizeof(BytesRecord) == 48);

struct PhaseRecord {
    static constexpr std::uint32_t kind = letters("PHAS");
    static constexpr const char* file = "phases.rec";
    enum Event : std::uint32_t { began = 1, ended = 2, pcontrol = 3 };
    std::uint32_t event;
    std::uint32_t tid;
    std::uint64_t time_ns;
    std::int32_t level; // the argument of MPI_Pcontrol
    std::uint32_t reserved;
    char name[104]; // ends with 0; longer ones are cut
};
static_assert(sizeof(PhaseRecord) == 128);

struct NameRecord {
    static constexpr std::uint32_t kind = letters("NAME");
    static constexpr const char* file = "names.rec";
    std::uint32_t event; // 1
    std::uint32_t tid;
    std::uint64_t address;
    std::uint64_t size; // 0: of the allocation that the address is in
    std::uint64_t time_ns;
    char name[128]; // ends with 0; longer ones are cut
};
static_assert(sizeof(NameRecord) == 160);

template <typename Record>
constexpr FileHeader header_of() {
    FileHeader header{};
    for (unsigned index = 0; index < sizeof header.magic; ++index) {
        header.magic[index] = file_magic[index];
    }
    header.version = format_version;
    header.kind = Record::kind;
    header.header_bytes = sizeof(FileHeader);
    header.record_bytes = sizeof(Record);
    return header;
}

} // namespace warren::locality
