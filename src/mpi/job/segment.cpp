#include "mpi/job/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "mpi.h"

namespace warren::node {

namespace {

constexpr std::uint64_t page_bytes = 4096;

// Communicators of a node that have their own counters: enough for a program's few dozen busy ones;
// the rest use messages.
constexpr std::uint32_t collective_slot_limit = 256;
constexpr std::uint64_t collective_bytes_limit = 16 << 20;

// Pair rings take address space only until a pair opens them.
constexpr std::uint64_t pair_ring_region_limit = std::uint64_t{1} << 30;

// Tables of rank maps take address space only until they are made. What does not fit any more is
// made by every rank for itself.
constexpr std::uint64_t table_bytes_limit = 4 << 20;
constexpr std::uint64_t table_bytes_per_rank = 16 << 10;

// Staging areas take address space only until collective operations use them.
constexpr std::uint64_t staging_units_per_rank = 128;
constexpr std::uint64_t least_staging_units = 512;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

// Where everything is, for a number of ranks.
void lay_out(SegmentHeader& header, const SegmentOptions& options) {
    const std::uint64_t ranks = options.ranks;
    header.ranks = options.ranks;
    header.cores = options.cores;
    header.verbose = options.verbose;
    header.keeps_going = options.keeps_going;
    header.oversubscribed = options.crowded || options.ranks > options.cores;
    header.crowded = options.crowded;
    header.slots_offset = page_bytes;
    header.room_offset = header.slots_offset + ranks * sizeof(RankSlot);
    header.queues_offset =
        round_up(header.room_offset + ranks * ((ranks + 63) / 64) * 8, page_bytes);
    const std::uint64_t chunks_bytes = ranks * chunks_per_rank * chunk_bytes;
    header.chunks_offset = header.queues_offset + ranks * queue_cells * cell_bytes;
    header.collective_offset =
        round_up(header.chunks_offset + (options.crowded ? 0 : chunks_bytes), page_bytes);
    header.collective_slot_bytes =
        round_up(collective_head_bytes(ranks) + collective_phases * collective_phase_bytes(ranks),
                 page_bytes);
    const std::uint64_t slots = collective_bytes_limit / header.collective_slot_bytes;
    header.collective_slots = static_cast<std::uint32_t>(
        slots < 2 ? 2 : (slots > collective_slot_limit ? collective_slot_limit : slots));
    // Only the first slot, the world's, is sure to be used.
    header.committed_bytes = header.collective_offset + header.collective_slot_bytes;
    header.contexts_offset =
        header.collective_offset + header.collective_slots * header.collective_slot_bytes;
    header.tables_offset =
        round_up(header.contexts_offset + context_limit * sizeof(ContextEntry), page_bytes);
    header.tables_bytes = table_bytes_limit + ranks * table_bytes_per_rank;
    header.pair_rings_offset = header.tables_offset + header.tables_bytes;
    std::uint64_t pair_rings = ranks * (ranks - 1);
    if (pair_rings > ranks * pair_rings_per_receiver) {
        pair_rings = ranks * pair_rings_per_receiver;
    }
    if (pair_rings > pair_ring_region_limit / pair_ring_bytes) {
        pair_rings = pair_ring_region_limit / pair_ring_bytes;
    }
    header.pair_ring_limit = header.oversubscribed ? 0 : static_cast<std::uint32_t>(pair_rings);
    header.staging_offset =
        round_up(header.pair_rings_offset + header.pair_ring_limit * pair_ring_bytes, page_bytes);
    header.staging_units = ranks == 1 ? 0
                                      : std::clamp(ranks * staging_units_per_rank,
                                                   least_staging_units, staging_unit_limit);
    header.bytes = header.staging_offset + header.staging_units * staging_unit_bytes;
    if (header.pair_ring_limit > 0) {
        header.bounces_offset = header.bytes;
        header.bytes = round_up(
            header.bounces_offset + ranks * bounce_buffers * bounce_stride_bytes, page_bytes);
    }
    // Few of thousands of ranks use many chunks, and the rest of what these have (their stacks) has
    // no memory beforehand either.
    if (options.crowded) {
        header.chunks_offset = header.bytes;
        header.bytes = round_up(header.chunks_offset + chunks_bytes, page_bytes);
    }
    header.memory_use_offset = header.bytes;
    header.bytes += round_up(memory_use_limit * sizeof(MemoryUse), page_bytes);
    header.loads_offset = header.bytes;
    header.bytes += round_up(balance::LoadTable::bytes(ranks), page_bytes);
}

Error mapping_failed(std::uint64_t bytes) {
    const int reason = errno;
    rlimit address_space;
    if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
        return fail(MPI_ERR_NO_MEM,
                    "mapping %llu kB of the node segment: %s; the limit of address space is %llu "
                    "kB (ulimit -v)",
                    static_cast<unsigned long long>(bytes >> 10), std::strerror(reason),
                    static_cast<unsigned long long>(address_space.rlim_cur >> 10));
    }
    return fail(MPI_ERR_NO_MEM, "mapping %llu kB of the node segment: %s",
                static_cast<unsigned long long>(bytes >> 10), std::strerror(reason));
}

} // namespace

Error Segment::create(const SegmentOptions& options, Segment& made) {
    if (options.ranks == 0 || options.ranks > rank_limit) {
        return fail(MPI_ERR_ARG, "a node holds 1 to %u ranks, not %u", rank_limit, options.ranks);
    }
    SegmentHeader plan = {};
    lay_out(plan, options);

    const int descriptor = memfd_create("warren-node", MFD_CLOEXEC);
    if (descriptor < 0) {
        return fail(MPI_ERR_OTHER, "memfd_create of the node segment: %s", std::strerror(errno));
    }
    Segment segment;
    segment.mapping_ = std::make_shared<Mapping>(descriptor);
    segment.descriptor_ = descriptor;
    // Asked first, because the kernel's answer to a file that grows beyond it is SIGXFSZ.
    rlimit file_size;
    if (getrlimit(RLIMIT_FSIZE, &file_size) == 0 && plan.bytes > file_size.rlim_cur) {
        return fail(MPI_ERR_NO_MEM,
                    "the node segment of %u ranks needs %llu kB, which do not fit the limit of "
                    "file sizes of %llu kB (ulimit -f)",
                    options.ranks, static_cast<unsigned long long>(plan.bytes >> 10),
                    static_cast<unsigned long long>(file_size.rlim_cur >> 10));
    }
    if (ftruncate(segment.descriptor_, static_cast<off_t>(plan.bytes)) != 0) {
        return fail(MPI_ERR_NO_MEM, "the node segment of %u ranks needs %llu kB: %s", options.ranks,
                    static_cast<unsigned long long>(plan.bytes >> 10), std::strerror(errno));
    }
    if (options.commit && !segment.commit(0, plan.committed_bytes)) {
        return fail(MPI_ERR_NO_MEM, "the node segment of %u ranks needs %llu kB of memory: %s",
                    options.ranks, static_cast<unsigned long long>(plan.committed_bytes >> 10),
                    std::strerror(errno));
    }
    if (Error error = segment.map(plan.bytes)) {
        return error;
    }
    SegmentHeader& header = *segment.header_;
    lay_out(header, options);
    header.launcher_pid = static_cast<std::uint32_t>(getpid());
    header.fence_in_wakers.store(header.oversubscribed != 0 || !register_sleeper_fence(),
                                 std::memory_order_relaxed);
    // The world and self communicators have the contexts below, and the world the first collective
    // slot; see comm/.
    header.next_context.store(8, std::memory_order_relaxed);
    header.collective_map[0].store(1, std::memory_order_relaxed);
    header.version = segment_version;
    header.magic = segment_magic;
    segment.slots_ = reinterpret_cast<RankSlot*>(segment.at(header.slots_offset));
    for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
        segment.slots_[rank].process = rank;
    }
    made = std::move(segment);
    return {};
}

bool Segment::is_behind(int descriptor) {
    std::uint64_t magic = 0;
    return pread(descriptor, &magic, sizeof magic, offsetof(SegmentHeader, magic)) ==
               static_cast<ssize_t>(sizeof magic) &&
           magic == segment_magic;
}

Error Segment::attach(int descriptor, Segment& made) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        return fail(MPI_ERR_OTHER, "descriptor %d of the node segment: %s", descriptor,
                    std::strerror(errno));
    }
    SegmentHeader header;
    const ssize_t read = pread(descriptor, &header, sizeof header, 0);
    if (read != static_cast<ssize_t>(sizeof header) || header.magic != segment_magic) {
        return fail(MPI_ERR_OTHER, "descriptor %d is not a node segment", descriptor);
    }
    SegmentHeader plan = {};
    lay_out(plan, {.ranks = header.ranks,
                   .cores = header.cores,
                   .verbose = header.verbose != 0,
                   .crowded = header.crowded != 0});
    if (header.version != segment_version || header.ranks == 0 || header.ranks > rank_limit ||
        header.bytes != plan.bytes || static_cast<std::uint64_t>(status.st_size) < plan.bytes) {
        return fail(MPI_ERR_OTHER,
                    "the node segment has version %u and %llu bytes, this library "
                    "makes version %u and %llu bytes: mpiexec and the library come "
                    "from different builds of Warren",
                    header.version, static_cast<unsigned long long>(header.bytes), segment_version,
                    static_cast<unsigned long long>(plan.bytes));
    }
    Segment segment;
    segment.mapping_ = std::make_shared<Mapping>(descriptor);
    segment.descriptor_ = descriptor;
    if (Error error = segment.map(header.bytes)) {
        return error;
    }
    segment.slots_ = reinterpret_cast<RankSlot*>(segment.at(header.slots_offset));
    made = std::move(segment);
    return {};
}

Error Segment::map(std::uint64_t bytes) {
    void* base =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
    if (base == MAP_FAILED) {
        return mapping_failed(bytes);
    }
    mapping_->header = header_ = static_cast<SegmentHeader*>(base);
    return {};
}

Segment::Mapping::~Mapping() {
    if (header != nullptr) {
        munmap(header, header->bytes);
    }
    close(descriptor);
}

bool Segment::commit(std::uint64_t offset, std::uint64_t bytes) const {
    int result;
    do { // a signal (the program's timers) undoes what an allocation has so far
        result = fallocate(descriptor_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

void Segment::release(std::uint64_t offset, std::uint64_t bytes) const {
    // Refused: the memory stays committed, which does no harm.
    (void)fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

bool Segment::commit_contexts(std::uint32_t index) const {
    const std::uint32_t end = (index / contexts_per_page + 1) * contexts_per_page;
    std::uint32_t begin = header_->committed_contexts.load(std::memory_order_relaxed);
    // Two ranks may do the same here, which is harmless.
    if (begin < end && !commit(header_->contexts_offset + begin * sizeof(ContextEntry),
                               (end - begin) * sizeof(ContextEntry))) {
        return false;
    }
    while (begin < end && !header_->committed_contexts.compare_exchange_weak(
                              begin, end, std::memory_order_relaxed)) {
    }
    return true;
}

bool Segment::record_end(JobEnd end, std::uint32_t rank, int code, const char* text) const {
    JobEnd running = JobEnd::running;
    if (!header_->job_end.compare_exchange_strong(running, JobEnd::being_written)) {
        return false;
    }
    header_->end_rank = rank;
    header_->end_code = code;
    std::size_t length = 0;
    while (length + 1 < sizeof header_->end_text && text[length] != '\0') {
        header_->end_text[length] = text[length];
        ++length;
    }
    header_->end_text[length] = '\0';
    // Pairs with the launcher's acquire: who sees the end sees its reason.
    header_->job_end.store(end, std::memory_order_release);
    return true;
}

} // namespace warren::node
