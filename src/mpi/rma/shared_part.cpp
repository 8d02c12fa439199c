#include "mpi/rma/shared_part.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>

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

Error SharedPart::map(const node::Segment& segment, std::uint64_t offset, std::uint64_t bytes,
                      SharedPart& made) {
    Records& records = Records::of_process();
    const std::lock_guard lock(records.mutex);
    for (Record* record = records.first; record != nullptr; record = record->next) {
        if (record->segment == &segment.header() && record->offset == offset &&
            record->bytes == bytes) {
            ++record->holders;
            made.record_ = record;
            return {};
        }
    }
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      segment.descriptor(), static_cast<off_t>(offset));
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
