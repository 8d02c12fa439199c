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
#include "base/page.hpp"
#include "mpi.h"

// The linker's: the first declaration of a region and what follows the last.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" [[gnu::visibility("hidden")]] const warren::node::Region* const __start_warren_regions[];
extern "C" [[gnu::visibility("hidden")]] const warren::node::Region* const __stop_warren_regions[];
// NOLINTEND(readability-identifier-naming)

namespace warren::node {

namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

// The order in which regions are laid out: what is sure comes first, so that it is committed in one
// piece; small regions share the header's pages.
int layout_group(const Extent& extent) {
    if (extent.sure_units == extent.units) {
        return extent.bytes() < page_bytes ? 0 : 1;
    }
    return extent.sure_units != 0 ? 2 : 3;
}
constexpr int layout_groups = 4;

bool is_known(const SegmentHeader& header, std::uint64_t file_bytes) {
    Layout layout;
    const JobShape shape = {.ranks = header.directory.ranks,
                            .cores = header.cores,
                            .nodes = header.nodes,
                            .fibres = header.fibres != 0,
                            .profiled = header.profiled != 0};
    if (header.directory.version != segment_version || shape.ranks == 0 ||
        shape.ranks > rank_limit || shape.nodes == 0) {
        return false;
    }
    if (Error error = lay_out(declared_regions(), shape, layout)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        return false;
    }
    // Behind the segment, the file may have the memory of windows.
    return header.bytes == layout.bytes && file_bytes >= layout.bytes &&
           std::memcmp(header.directory.entries, layout.entries, sizeof layout.entries) == 0;
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

std::span<const Region* const> declared_regions() {
    return {__start_warren_regions, __stop_warren_regions};
}

Error lay_out(std::span<const Region* const> regions, const JobShape& shape, Layout& layout) {
    const Region* by_number[region_limit] = {};
    for (const Region* region : regions) {
        if (region->number >= region_limit) {
            return fail(MPI_ERR_INTERN, "the region \"%s\" has the number %u, the limit is %u",
                        region->name, region->number, region_limit);
        }
        const Region*& place = by_number[region->number];
        if (place != nullptr) {
            return fail(MPI_ERR_INTERN, "the regions \"%s\" and \"%s\" have the same number, %u",
                        place->name, region->name, region->number);
        }
        place = region;
    }
    std::uint64_t end = sizeof(SegmentHeader);
    layout.committed_bytes = end;
    for (int group = 0; group < layout_groups; ++group) {
        for (std::uint32_t number = 0; number < region_limit; ++number) {
            const Extent extent =
                by_number[number] != nullptr ? by_number[number]->extent(shape) : Extent{};
            if (extent.units == 0 || layout_group(extent) != group) {
                continue;
            }
            const std::uint64_t offset = round_up(end, group == 0 ? cache_line_bytes : page_bytes);
            layout.entries[number] = {.offset = offset, .extent = extent};
            if (extent.sure_units != 0) {
                layout.committed_bytes += offset - end + extent.sure_bytes();
            }
            end = offset + extent.bytes();
        }
    }
    layout.bytes = whole_pages(end);
    return {};
}

Error Segment::create(const SegmentOptions& options, Segment& made) {
    if (options.ranks == 0 || options.ranks > rank_limit) {
        return fail(MPI_ERR_ARG, "a node holds 1 to %u ranks, not %u", rank_limit, options.ranks);
    }
    const JobShape shape = options.shape();
    Layout plan;
    if (Error error = lay_out(declared_regions(), shape, plan)) {
        return error;
    }

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
    if (options.commit && !segment.commit_sure(plan.entries)) {
        return fail(MPI_ERR_NO_MEM, "the node segment of %u ranks needs %llu kB of memory: %s",
                    options.ranks, static_cast<unsigned long long>(plan.committed_bytes >> 10),
                    std::strerror(errno));
    }
    if (Error error = segment.map(plan.bytes)) {
        return error;
    }
    SegmentHeader& header = *segment.header_;
    std::memcpy(header.directory.entries, plan.entries, sizeof plan.entries);
    header.directory.ranks = options.ranks;
    header.bytes = plan.bytes;
    header.committed_bytes = plan.committed_bytes;
    header.cores = options.cores;
    header.nodes = options.nodes;
    header.oversubscribed = shape.shares_processors();
    header.verbose = options.verbose;
    header.keeps_going = options.keeps_going;
    header.profiled = options.profiled;
    header.fibres = options.fibres;
    header.launcher_pid = static_cast<std::uint32_t>(getpid());
    header.fence_in_wakers.store(header.oversubscribed != 0 || !register_sleeper_fence(),
                                 std::memory_order_relaxed);
    for (const Region* region : declared_regions()) {
        const DirectoryEntry& entry = plan.entries[region->number];
        if (region->initialise != nullptr && entry.offset != 0) {
            region->initialise(segment.at(entry.offset), shape);
        }
    }
    header.directory.version = segment_version;
    header.directory.magic = segment_magic;
    segment.slots_ = segment.at(rank_slots);
    made = std::move(segment);
    return {};
}

bool Segment::is_behind(int descriptor) {
    std::uint64_t magic = 0;
    return pread(descriptor, &magic, sizeof magic, offsetof(SegmentHeader, directory.magic)) ==
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
    if (read != static_cast<ssize_t>(sizeof header) || header.directory.magic != segment_magic) {
        return fail(MPI_ERR_OTHER, "descriptor %d is not a node segment", descriptor);
    }
    if (!is_known(header, static_cast<std::uint64_t>(status.st_size))) {
        return fail(MPI_ERR_OTHER,
                    "the node segment has version %u and %llu bytes, this library "
                    "makes version %u and other regions: mpiexec and the library come "
                    "from different builds of Warren",
                    header.directory.version, static_cast<unsigned long long>(header.bytes),
                    segment_version);
    }
    Segment segment;
    segment.mapping_ = std::make_shared<Mapping>(descriptor);
    segment.descriptor_ = descriptor;
    if (Error error = segment.map(header.bytes)) {
        return error;
    }
    segment.slots_ = segment.at(rank_slots);
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

bool Segment::commit_sure(std::span<const DirectoryEntry> entries) const {
    // In the order of the layout: what is sure whole is one piece with the header.
    std::uint64_t end = sizeof(SegmentHeader);
    for (const DirectoryEntry& entry : entries) {
        if (entry.extent.sure_units == entry.extent.units) {
            end = std::max(end, entry.offset + entry.extent.bytes());
        }
    }
    if (!commit(0, end)) {
        return false;
    }
    for (const DirectoryEntry& entry : entries) {
        const bool in_part = entry.extent.sure_units != entry.extent.units;
        if (in_part && entry.extent.sure_units != 0 &&
            !commit(entry.offset, entry.extent.sure_bytes())) {
            return false;
        }
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
