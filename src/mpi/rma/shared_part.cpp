#include "mpi/rma/shared_part.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>

#include "base/page.hpp"
#include "mpi.h"

namespace warren::rma {

// Records that the ranks of this process share. The mutex is held for a system call at most.
struct SharedPart::Records {
    std::mutex mutex;
    Record* first = nullptr;

    static Records& of_process() {
        static constinit Records records;
        return records;
    }
};

namespace {

// Maps the file at a multiple of `alignment`, if that is more than a page; else anywhere.
void* map_aligned(int descriptor, std::uint64_t offset, std::uint64_t bytes,
                  std::uint64_t alignment) {
    std::byte* place = nullptr;
    int fixed = 0;
    if (alignment > page_bytes) {
        // Addresses with room for any beginning; what is before and behind is given back.
        const std::uint64_t room = bytes + alignment;
        void* const range =
            mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) {
            return MAP_FAILED;
        }
        const std::uint64_t before = -reinterpret_cast<std::uint64_t>(range) & (alignment - 1);
        place = static_cast<std::byte*>(range) + before;
        if (before > 0) {
            munmap(range, before);
        }
        munmap(place + bytes, room - before - bytes);
        fixed = MAP_FIXED;
    }
    void* const base =
        mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | fixed, descriptor,
             static_cast<off_t>(offset));
    if (base == MAP_FAILED && fixed != 0) {
        const int reason = errno;
        munmap(place, bytes);
        errno = reason;
    }
    return base;
}

} // namespace

Error SharedPart::map(const node::Segment& segment, std::uint64_t offset, std::uint64_t bytes,
                      SharedPart& made, std::uint64_t alignment) {
    Records& records = Records::of_process();
    const std::lock_guard lock(records.mutex);
    for (Record* record = records.first; record != nullptr; record = record->next) {
        // (The last window at this place may still be mapped, elsewhere than this one has to be.)
        const bool is_aligned =
            (reinterpret_cast<std::uint64_t>(record->base) & (alignment - 1)) == 0;
        if (record->segment == &segment.header() && record->offset == offset &&
            record->bytes == bytes && is_aligned) {
            ++record->holders;
            made.record_ = record;
            return {};
        }
    }
    void* const base = map_aligned(segment.descriptor(), offset, bytes, alignment);
    if (base == MAP_FAILED) {
        return fail(MPI_ERR_NO_MEM, "mapping %llu kB of windows: %s",
                    static_cast<unsigned long long>(bytes >> 10), std::strerror(errno));
    }
    auto* record = new (std::nothrow) Record{.segment = &segment.header(),
                                             .offset = offset,
                                             .bytes = bytes,
                                             .base = static_cast<std::byte*>(base),
                                             .holders = 1,
                                             .next = records.first};
    if (record == nullptr) {
        munmap(base, bytes);
        return fail(MPI_ERR_NO_MEM, "no memory for a mapping");
    }
    records.first = record;
    made.record_ = record;
    return {};
}

void SharedPart::drop() {
    Record* record = std::exchange(record_, nullptr);
    if (record == nullptr) {
        return;
    }
    Records& records = Records::of_process();
    const std::lock_guard lock(records.mutex);
    if (--record->holders > 0) {
        return;
    }
    Record** link = &records.first;
    while (*link != record) {
        link = &(*link)->next;
    }
    *link = record->next;
    munmap(record->base, record->bytes);
    delete record;
}

} // namespace warren::rma
