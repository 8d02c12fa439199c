// The node segment: the one region of memory that all ranks of a node and their launcher share.
//
// It lives in a memfd, so it needs no file system and no /dev/shm, and it is gone with its last
// user. Everything in it is found by offsets: every process maps it where it likes. It begins with
// a header: the directory of its regions (base/segment_region.hpp), the job's shape and the job's
// end. The regions are declared by the rooms that use them; this room's own are the rank slots.
//
// Memory that is sure to be used is committed when the segment is made, so that a node without
// memory gives an error there and not a SIGBUS later; the rest when its time comes
// (commit_units).
//
// Thread rule: create and attach from one thread; the contents are shared by processes, each field
// says how.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/types.h>

#include "base/error.hpp"
#include "base/page.hpp"
#include "base/segment_region.hpp"

namespace warren::node {

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

struct SegmentHeader {
    Directory directory;
    std::uint64_t bytes;           // of the mapping
    std::uint64_t committed_bytes; // of them, present since creation
    std::uint32_t cores;           // processors that no other node of the job uses
    std::uint32_t nodes;           // of the job
    std::uint32_t oversubscribed;  // 1: crowded: yield and sleep, don't spin
    std::uint32_t verbose;         // 1: explain choices on standard error
    std::uint32_t keeps_going;     // 1: the end of some ranks is not the others'
    std::uint32_t launcher_pid;
    std::uint32_t fibres;   // 1: all ranks are fibres of one process
    std::uint32_t profiled; // 1: ranks record their calls (mpi/rank/profile.hpp)
    // Ranks whose processes have ended while others go on (--keep-going); written by the launcher.
    std::atomic<std::uint32_t> ended_ranks;
    // 1: who wakes a rank fences; 0: who goes to sleep does, for all. See mpi/rank/doorbell.hpp.
    alignas(cache_line_bytes) std::atomic<std::uint32_t> fence_in_wakers;
    alignas(cache_line_bytes) std::atomic<JobEnd> job_end;
    std::uint32_t end_rank; // who ended it
    std::int32_t end_code;  // the exit code that it asked for
    char end_text[512];     // the reason, one line
};
static_assert(sizeof(SegmentHeader) <= page_bytes);

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
    std::uint32_t application; // index of its program on the command line
    // Index of its process among those of the job: ranks with the same share an address space.
    std::uint32_t process;
    std::atomic<std::uint32_t> ended; // 1: its process has ended, and others go on (--keep-going)
    // 1: it may have an entry of a file write (mpi/job/write_log.hpp).
    std::atomic<std::uint32_t> logs_writes;
    alignas(cache_line_bytes) Activity activity;
    // For words of the transport (mpi/transport/shm/segment_regions.hpp): one pointer leads to them
    // and to the doorbell, so that a rank needs less memory for each other that it talks to.
    alignas(cache_line_bytes) std::byte of_transport[4 * cache_line_bytes];
};
inline constexpr RegionId<RankSlot> rank_slots{0}; // a unit per rank

struct SegmentOptions {
    std::uint32_t ranks = 1;
    std::uint32_t cores = 1;
    std::uint32_t nodes = 1; // of the job
    bool verbose = false;
    bool keeps_going = false;
    bool fibres = false; // all ranks are fibres of one process
    bool profiled = false;
    bool commit = true; // false: the caller has commit_sure() done before anybody attaches

    JobShape shape() const {
        return {
            .ranks = ranks, .cores = cores, .nodes = nodes, .fibres = fibres, .profiled = profiled};
    }
};

// The regions that are linked with this program.
std::span<const Region* const> declared_regions();

// Where the regions of a job of this shape are. Error: two have the same number, or one has a
// number that the directory has no entry for.
struct Layout {
    DirectoryEntry entries[region_limit] = {};
    std::uint64_t bytes = 0;
    std::uint64_t committed_bytes = 0; // the header, and what regions are sure to use
};
Error lay_out(std::span<const Region* const> regions, const JobShape& shape, Layout& layout);

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
    std::uint32_t ranks() const { return header_->directory.ranks; }
    RankSlot& slot(std::uint32_t rank) const { return slots_[rank]; }
    // Whether a rank's process has ended while others go on (mpiexec --keep-going).
    bool has_ended(std::uint32_t rank) const {
        return header_->ended_ranks.load(std::memory_order_acquire) != 0 &&
               slots_[rank].ended.load(std::memory_order_acquire) != 0;
    }
    std::byte* at(std::uint64_t offset) const {
        return reinterpret_cast<std::byte*>(header_) + offset;
    }

    // A region of this job, and how much there is of it. Where units() is 0, there is none.
    template <typename T>
    T* at(RegionId<T> region) const {
        return reinterpret_cast<T*>(at(header_->directory[region].offset));
    }
    template <typename T>
    std::uint64_t units(RegionId<T> region) const {
        return header_->directory[region].extent.units;
    }
    template <typename T>
    std::uint64_t unit_bytes(RegionId<T> region) const {
        return header_->directory[region].extent.unit_bytes;
    }
    template <typename T>
    std::byte* unit(RegionId<T> region, std::uint64_t number) const {
        const DirectoryEntry& entry = header_->directory[region];
        return at(entry.offset + number * entry.extent.unit_bytes);
    }

    // Commits memory of units that are not sure. False when the node, or the job's limit, has none
    // left.
    template <typename T>
    bool commit_units(RegionId<T> region, std::uint64_t first, std::uint64_t count) const {
        const DirectoryEntry& entry = header_->directory[region];
        return commit(entry.offset + first * entry.extent.unit_bytes,
                      count * entry.extent.unit_bytes);
    }
    // Gives committed units, whole pages, back to the node.
    template <typename T>
    void release_units(RegionId<T> region, std::uint64_t first, std::uint64_t count) const {
        const DirectoryEntry& entry = header_->directory[region];
        release(entry.offset + first * entry.extent.unit_bytes, count * entry.extent.unit_bytes);
    }
    // Memory of the file by its place there; also behind the segment (mpi/rma/heap.hpp).
    bool commit(std::uint64_t offset, std::uint64_t bytes) const;
    void release(std::uint64_t offset, std::uint64_t bytes) const;
    // Commits what is sure to be used: header().committed_bytes.
    bool commit_sure() const { return commit_sure(header_->directory.entries); }

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
    bool commit_sure(std::span<const DirectoryEntry> entries) const;

    std::shared_ptr<Mapping> mapping_;
    SegmentHeader* header_ = nullptr;
    RankSlot* slots_ = nullptr;
    int descriptor_ = -1;
};

} // namespace warren::node
