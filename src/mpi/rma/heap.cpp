#include "mpi/rma/heap.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>

#include "memory/heap/control_group.hpp"
#include "mpi.h"
#include "mpi/rma/tuning.hpp"

namespace warren::rma {

namespace {

std::uint64_t table_offset(const node::Segment& segment) {
    return whole_pages(segment.header().bytes);
}

// Memory that the kernel says is available. Memory files have no limit of their own, and the kernel
// kills processes when they exceed its memory or the control group's limit.
std::uint64_t available_bytes() {
    unsigned long long found = 0;
    if (std::FILE* file = std::fopen("/proc/meminfo", "re")) {
        char line[128];
        while (found == 0 && std::fgets(line, sizeof line, file) != nullptr) {
            if (std::sscanf(line, "MemAvailable: %llu kB", &found) == 1) {
                break;
            }
        }
        static_cast<void>(std::fclose(file));
    }
    const auto of_group = static_cast<std::uint64_t>(memory::group_bytes());
    return found == 0 ? of_group : std::min(std::uint64_t{found} << 10, of_group);
}

// Memory orders for the lists, which the mutex protects. Stores are in order for a rank that takes
// the mutex over from a rank that has been killed.
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto in_order = std::memory_order_release;

constexpr unsigned long long kilobytes(std::uint64_t bytes) {
    return bytes >> 10;
}

} // namespace

Error WindowHeap::commit(const node::Segment& segment, std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0 || segment.commit(offset, bytes)) {
        return {};
    }
    return fail(MPI_ERR_NO_MEM, "the node has no memory for %llu kB of a window: %s",
                kilobytes(bytes), std::strerror(errno));
}

Error WindowHeap::open(const node::Segment& segment, std::uint32_t rank, WindowHeap& heap) {
    // The mutex and the count have memory before anybody touches them.
    if (Error error = commit(segment, table_offset(segment), page_bytes)) {
        return error;
    }
    heap.segment_ = &segment;
    heap.rank_ = rank;
    if (Error error = SharedPart::map(segment, table_offset(segment), table_bytes, heap.part_)) {
        return error;
    }
    heap.table_ = reinterpret_cast<Table*>(heap.part_.base());
    return {};
}

// Under the mutex.
Error WindowHeap::commit_table(std::uint32_t count) {
    if (count <= table_->committed) {
        return {};
    }
    const std::uint64_t bytes = whole_pages(offsetof(Table, extents) + count * sizeof(Extent));
    if (Error error = commit(*segment_, table_offset(*segment_), bytes)) {
        return error;
    }
    table_->committed =
        static_cast<std::uint32_t>((bytes - offsetof(Table, extents)) / sizeof(Extent));
    return {};
}

Error WindowHeap::take(std::uint64_t bytes, std::uint64_t memory, std::uint64_t& offset) {
    const std::uint64_t wanted = whole_pages(bytes);
    if (memory >= looked_for_bytes) {
        const std::uint64_t available = available_bytes();
        if (memory > available) {
            return fail(MPI_ERR_NO_MEM,
                        "the node, or the control group, has %llu kB of memory left, not %llu kB",
                        kilobytes(available), kilobytes(memory));
        }
    }
    const SharedLock lock(table_->mutex, user());
    const Link freed = table_->free.load(relaxed);
    const Link made = freed != 0 ? freed : table_->used + 1;
    if (made > extent_limit) {
        return fail(MPI_ERR_NO_MEM, "the job's windows are %u already", extent_limit);
    }
    if (Error error = commit_table(made)) {
        return error;
    }
    // The first gap that is large enough.
    offset = table_offset(*segment_) + table_bytes;
    std::atomic<Link>* place = &table_->first;
    while (const Link link = place->load(relaxed)) {
        Extent& next = extent(link);
        if (next.offset - offset >= wanted) {
            break;
        }
        offset = next.offset + next.bytes;
        place = &next.next;
    }
    // Asked first, because the kernel's answer to a file that grows beyond it is SIGXFSZ.
    rlimit file_size;
    constexpr std::uint64_t largest_file = std::uint64_t{1} << 62;
    const bool limited = getrlimit(RLIMIT_FSIZE, &file_size) == 0;
    if (wanted < bytes || wanted > largest_file || offset > largest_file - wanted ||
        (limited && offset + wanted > file_size.rlim_cur)) {
        return fail(MPI_ERR_NO_MEM,
                    "windows of %llu kB don't fit the limit of file sizes (ulimit -f)",
                    kilobytes(offset + wanted));
    }
    Extent& own = extent(made);
    if (freed != 0) {
        table_->free.store(own.next.load(relaxed), relaxed);
    } else {
        ++table_->used;
    }
    own.offset = offset;
    own.bytes = wanted;
    own.next.store(place->load(relaxed), in_order);
    place->store(made, in_order);
    return {};
}

void WindowHeap::give_back(std::uint64_t offset) {
    const SharedLock lock(table_->mutex, user());
    std::atomic<Link>* place = &table_->first;
    Link link = place->load(relaxed);
    while (link != 0 && extent(link).offset != offset) {
        place = &extent(link).next;
        link = place->load(relaxed);
    }
    if (link == 0) {
        return;
    }
    Extent& its = extent(link);
    // Before another window may take the extent, so that it is zero.
    segment_->release(offset, its.bytes);
    place->store(its.next.load(relaxed), in_order);
    its.next.store(table_->free.load(relaxed), in_order);
    table_->free.store(link, in_order);
}

} // namespace warren::rma
