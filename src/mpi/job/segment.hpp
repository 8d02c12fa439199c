// The node segment: the one region of memory that all ranks of a node and their launcher share.
//
// It lives in a memfd, so it needs no file system and no /dev/shm, and it is gone with its last
// user. Everything in it is found by offsets: every process maps it where it likes. It holds
//     SegmentHeader    one page: sizes, policy, the job's end (who aborted and why)
//     RankSlot         one per rank: doorbell, life state, what it waits for
//     queue            one per rank: the cells of its multi-producer queue   (transport/)
//     chunks           a few per rank: payloads too large for a cell         (transport/)
//                      (among the last, and sparse, where ranks are fibres)
//     collective slots a few per node: counters, lines of communicators  (mpi/coll/slot_memory.hpp)
//     staging          larger data of collective operations                  (mpi/coll/staging.hpp)
//     contexts         a few bytes per communicator                     (mpi/comm/context_ids.hpp)
//     rank tables      irregular rank maps, as they are made             (mpi/comm/rank_table.hpp)
//     pair rings       single-producer rings of pairs of ranks that talk              (transport/)
//     bounce buffers   a few per rank, for large messages                             (transport/)
//     memory use       per NUMA node, for ranks that allocate by attribute (memory/heap/share.hpp)
//     loads            one per rank that is a fibre              (runtime/balance/load_table.hpp)
// Memory that is sure to be used is committed when the segment is made, so that a node without
// memory gives an error there and not a SIGBUS later. The rest when its time comes: a pair ring
// when a pair opens it, a bounce buffer when a rank sends its first large message, the collective
// slots after the first, the world's, when a communicator gets one, staging areas when its
// operations want them, contexts a page at a time.
//
// Thread rule: create and attach from one thread; the contents are shared by processes, each field
// says how.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/types.h>

#include "base/error.hpp"
#include "runtime/balance/load_table.hpp"

namespace warren::node {

inline constexpr std::size_t cache_line_bytes = 64;

// The limit of ranks on a node: far above what a node of today can start.
inline constexpr std::uint32_t rank_limit = 16384;

// Why a rank, or the launcher, ended the job. Who changes `job_end` from running writes the rest.
enum class JobEnd : std::uint32_t { running = 0, being_written = 1, aborted = 2, fatal_error = 3 };

// How far a rank has come. The launcher reads it when the rank's process has ended.
enum class RankStage : std::uint32_t {
    not_started = 0,
    initialised = 1, // MPI_Init has begun (or a session was opened)
    finalised = 2,   // MPI_Finalize has begun to succeed: the process may exit
    aborting = 3,    // ends by MPI_Abort or a fatal error
    doomed = 4       // another rank's MPI_Abort of a part of the job ends it (--keep-going)
};

inline constexpr std::uint64_t segment_magic = 0x67655372'72615701; // "\1WarrSeg", little-endian
inline constexpr std::uint32_t segment_version = 9;

struct SegmentHeader {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t ranks;           // ranks on this node
    std::uint64_t bytes;           // of the mapping
    std::uint64_t committed_bytes; // of them, from the start, present since creation
    std::uint32_t cores;           // processors that the job may use
    std::uint32_t oversubscribed;  // 1: more ranks than processors: yield and sleep, don't spin
    std::uint32_t verbose;         // 1: explain choices on standard error
    std::uint32_t keeps_going;     // 1: the end of some ranks is not the others'
    std::uint32_t launcher_pid;
    std::uint32_t crowded; // 1: all ranks take turns in one process (fibres)
    std::uint64_t slots_offset;
    std::uint64_t room_offset; // per rank: a bit for each rank that waits for room there
    std::uint64_t queues_offset;
    std::uint64_t chunks_offset;
    std::uint64_t collective_offset;
    std::uint64_t collective_slot_bytes;
    std::uint32_t collective_slots;
    std::uint32_t pair_ring_limit; // pair rings that fit
    std::uint64_t bounces_offset;  // 0: none (ranks share processors)
    std::uint64_t tables_offset;   // of rank maps (mpi/comm/rank_table.hpp)
    std::uint64_t tables_bytes;
    std::uint64_t pair_rings_offset;
    std::uint64_t contexts_offset;
    std::uint64_t staging_offset;
    std::uint64_t staging_units;
    std::uint64_t memory_use_offset;
    std::uint64_t loads_offset;
    // 1: who wakes a rank fences; 0: who goes to sleep does, for all. See mpi/rank/doorbell.hpp.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> fence_in_wakers;
    // Numbers of communicators (mpi/comm/context_ids.hpp): the first that has never been taken; the
    // list of those that are free again.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> next_context;
    std::atomic<std::uint64_t> free_contexts;
    std::atomic<std::uint32_t> committed_contexts; // have memory
    alignas(cache_line_bytes) std::atomic<std::uint32_t> pair_rings_opened;
    alignas(cache_line_bytes) std::atomic<std::uint32_t> finishing; // ranks that send no more
    std::atomic<std::uint32_t> withdrawing; // ranks that ask for what they have announced to others
    alignas(cache_line_bytes) std::atomic<std::uint64_t> collective_map[4]; // bit: slot in use
    alignas(cache_line_bytes) std::atomic<std::uint64_t> staging_map[16];   // bit: unit in use
    alignas(cache_line_bytes) std::atomic<JobEnd> job_end;
    std::uint32_t end_rank; // who ended it
    std::int32_t end_code;  // the exit code that it asked for
    char end_text[512];     // the reason, one line
};
static_assert(sizeof(SegmentHeader) <= 4096);

// The reason of a rank's long wait; written by it only when a wait gets long, so
// that it costs a quick call nothing; by the last one, where several threads of the rank wait.
// Readers (the launcher) take the fields as they come.
struct Activity {
    std::atomic<std::uint64_t> since_ns; // monotonic clock; 0: not waiting in a call
    std::atomic<std::uint32_t> call;     // index of the procedure (abi/calls), 0: none
    std::atomic<std::int32_t> peer;      // rank in the communicator, MPI_ANY_SOURCE, MPI_PROC_NULL
    std::atomic<std::uint32_t> peer_in_world; // 1: peer is the rank in the world (of a send)
    std::atomic<std::int32_t> tag;
    std::atomic<std::uint32_t> context;    // communicator id
    std::atomic<std::uint32_t> posted;     // receives posted
    std::atomic<std::uint32_t> unexpected; // messages that came before their receive
    std::atomic<std::uint32_t> pending_sends;
    std::atomic<std::uint32_t> requests; // active requests of the call (Waitall and its like)
    char communicator_name[32];
};

struct alignas(cache_line_bytes) RankSlot {
    // Bit 0: this rank sleeps, or is about to: whoever brings it work wakes it
    // (mpi/rank/doorbell.hpp).
    std::atomic<std::uint32_t> doorbell;
    alignas(cache_line_bytes) std::atomic<RankStage> state;
    // The rank's process: stored by the launcher when it has started it, then by MPI_Init, which
    // may run in a process of its own below that one (a wrapper script).
    std::atomic<std::int32_t> pid;
    std::atomic<std::uint32_t> inbound_pair_rings; // pair rings opened towards this rank
    std::uint32_t application;                     // index of its program on the command line
    // Index of its process among those of the job: ranks with the same share an address space.
    std::uint32_t process;
    alignas(cache_line_bytes) Activity activity;
    // Queue ends (transport/): tail is claimed by senders, consumed is stored by the rank.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> queue_tail;
    alignas(cache_line_bytes) std::atomic<std::uint32_t> queue_consumed;
    // 1: a bit is set among the ranks that sleep until this one has taken cells or chunks.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> room_wanted;
    // A bit for each of this rank's bounce buffers that has been given back
    // (mpi/transport/shm/bounce.hpp).
    alignas(cache_line_bytes) std::atomic<std::uint32_t> bounces_returned;
};

// A number of a communicator (mpi/comm/context_ids.hpp).
struct ContextEntry {
    std::atomic<std::uint32_t> users; // members that have not given it back
    std::atomic<std::uint32_t> next;  // in the free list, 0: none
    std::uint32_t lives;              // how often it was taken; changed by who has taken it
    // 0: none yet; ~0: there was none left; else 1 + the communicator's collective slot.
    std::atomic<std::uint32_t> slot;
};
inline constexpr std::uint32_t context_limit = 1 << 20;
inline constexpr std::uint32_t contexts_per_page = 4096 / sizeof(ContextEntry);

// One NUMA node's memory as the job sees it. Sparse: committed by who uses it.
struct MemoryUse {
    std::atomic<std::uint64_t> free_bytes; // when the job first used it, odd; 0: nobody has yet
};
inline constexpr std::size_t memory_use_limit = 1024; // NUMA nodes

// Sizes of the regions, fixed by the version of the segment.
inline constexpr std::uint32_t queue_cells = 128; // power of two
inline constexpr std::size_t cell_bytes = 64;     // one cache line
inline constexpr std::uint32_t chunks_per_rank = 8;
inline constexpr std::size_t chunk_bytes = 4096 + cache_line_bytes; // payload + its header
inline constexpr std::uint32_t pair_ring_cells = 128;               // power of two
inline constexpr std::size_t pair_ring_data_bytes = 32 * 1024;      // power of two
inline constexpr std::size_t pair_ring_bytes =
    4096 + pair_ring_cells * cell_bytes + pair_ring_data_bytes; // ends, cells, payload
inline constexpr std::uint32_t bounce_buffers = 8;              // per rank
inline constexpr std::size_t bounce_bytes = 256 * 1024;
// With room for the shift of the data, and not a power of two, so that the buffers don't compete
// for the same sets of the caches.
inline constexpr std::size_t bounce_stride_bytes = bounce_bytes + 4096 + 5 * cache_line_bytes;
inline constexpr std::uint32_t pair_rings_per_receiver = 16; // bounds what a poll looks at

// Collective slots: a line, and phases of two lines, a line per rank, and four bitmaps of ranks.
inline constexpr std::uint32_t collective_phases = 4; // power of two
constexpr std::size_t collective_bitmap_bytes(std::size_t ranks) {
    return (ranks + 8 * cache_line_bytes - 1) / (8 * cache_line_bytes) * cache_line_bytes;
}
// Before the phases: the slot's own line, and what each rank announces.
constexpr std::size_t collective_head_bytes(std::size_t ranks) {
    return (1 + ranks) * cache_line_bytes;
}
constexpr std::size_t collective_phase_bytes(std::size_t ranks) {
    return (2 + ranks) * cache_line_bytes + 4 * collective_bitmap_bytes(ranks);
}

// A staging area (mpi/coll/staging.hpp) consists of units.
inline constexpr std::uint64_t staging_unit_bytes = 32 * 1024;
inline constexpr std::uint64_t staging_unit_limit = 1024; // the bits of staging_map

struct SegmentOptions {
    std::uint32_t ranks = 1;
    std::uint32_t cores = 1;
    bool verbose = false;
    bool keeps_going = false;
    bool crowded = false; // ranks take turns on the processors, however many there are (fibres)
    bool commit =
        true; // false: the caller has commit(0, committed_bytes) done before anybody attaches
};

// Copies are the same mapping: the ranks of one process have one. It ends with the last of them.
class Segment {
  public:
    // Makes the segment of a job. Errors (class MPI_ERR_NO_MEM, MPI_ERR_OTHER) say what is short.
    static Error create(const SegmentOptions& options, Segment& made);

    // Maps the segment behind an inherited descriptor, which it takes over. Refuses what is not a
    // segment of this version.
    static Error attach(int descriptor, Segment& made);

    // Whether this descriptor is open and a segment's, of whatever version.
    static bool is_behind(int descriptor);

    explicit operator bool() const { return mapping_ != nullptr; }
    int descriptor() const { return descriptor_; }
    SegmentHeader& header() const { return *header_; }
    std::uint32_t ranks() const { return header_->ranks; }
    RankSlot& slot(std::uint32_t rank) const { return slots_[rank]; }
    // The bits of the ranks that wait for room at `rank`: room_words() words of 64.
    std::atomic<std::uint64_t>* room_waiters(std::uint32_t rank) const {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(at(header_->room_offset)) +
               std::uint64_t{rank} * room_words();
    }
    std::uint32_t room_words() const { return (header_->ranks + 63) / 64; }
    std::byte* at(std::uint64_t offset) const {
        return reinterpret_cast<std::byte*>(header_) + offset;
    }

    std::byte* collective_slot(std::uint32_t slot) const {
        return at(header_->collective_offset + slot * header_->collective_slot_bytes);
    }
    bool commit_collective_slot(std::uint32_t slot) const {
        return commit(header_->collective_offset + slot * header_->collective_slot_bytes,
                      header_->collective_slot_bytes);
    }

    std::uint64_t staging_unit_offset(std::uint64_t unit) const {
        return header_->staging_offset + unit * staging_unit_bytes;
    }

    // Commit it before it is written to.
    balance::LoadTable loads() const { return balance::LoadTable::at(at(header_->loads_offset)); }
    bool commit_loads() const {
        return commit(header_->loads_offset, balance::LoadTable::bytes(header_->ranks));
    }

    ContextEntry& context(std::uint32_t index) const {
        return reinterpret_cast<ContextEntry*>(at(header_->contexts_offset))[index];
    }
    // Gives memory to the entries up to this one, and some more.
    bool commit_contexts(std::uint32_t index) const;

    // Commits memory of the sparse part. False when the node, or the job's limit, has none left.
    bool commit(std::uint64_t offset, std::uint64_t bytes) const;
    // Gives committed memory, whole pages, back to the node.
    void release(std::uint64_t offset, std::uint64_t bytes) const;

    // Records why the job ends; the first caller wins, the others' reasons are dropped.
    // Returns true for the first. Async-signal-safe.
    bool record_end(JobEnd end, std::uint32_t rank, int code, const char* text) const;

  private:
    struct Mapping {
        explicit Mapping(int its_descriptor) : descriptor(its_descriptor) {}
        ~Mapping();
        Mapping(const Mapping&) = delete;
        Mapping& operator=(const Mapping&) = delete;

        SegmentHeader* header = nullptr;
        int descriptor;
    };

    Error map(std::uint64_t bytes);

    std::shared_ptr<Mapping> mapping_;
    SegmentHeader* header_ = nullptr;
    RankSlot* slots_ = nullptr;
    int descriptor_ = -1;
};

} // namespace warren::node
