#include "mpi/io/page_copies.hpp"

#include <algorithm>
#include <cstddef>
#include <sys/mman.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi/io/page_memory.hpp"

namespace warren::io {

namespace {

constexpr std::size_t read_bytes = 4 * page_bytes;
constexpr std::size_t fast_distance = 128;
constexpr int attempts = 5;

// The time that the fastest of some reads takes; 0: one fails.
std::uint64_t time_of_read(int file, std::byte* to) {
    std::uint64_t best = ~std::uint64_t{0};
    for (int i = 0; i < attempts; ++i) {
        const std::uint64_t begin = monotonic_ns();
        if (pread(file, to, read_bytes, 0) != static_cast<ssize_t>(read_bytes)) {
            return 0;
        }
        best = std::min(best, monotonic_ns() - begin);
    }
    return best;
}

// A file of the memory's file system behaves like others whose pages are in memory.
bool measure() {
    const PageMemory memory = allocate_pages(read_bytes + page_bytes);
    const int file = memfd_create("warren: how fast pages are copied", MFD_CLOEXEC);
    bool slow = false;
    if (memory != nullptr && file >= 0) {
        std::fill_n(memory.get(), read_bytes + page_bytes, std::byte{1});
        if (pwrite(file, memory.get(), read_bytes, 0) == static_cast<ssize_t>(read_bytes)) {
            const std::uint64_t fast = time_of_read(file, memory.get() + fast_distance);
            slow = time_of_read(file, memory.get() + slow_distances / 2) > 2 * fast && fast > 0;
        }
    }
    if (file >= 0) {
        close(file);
    }
    return slow;
}

} // namespace

bool has_slow_distances() {
    static const bool slow = measure();
    return slow;
}

} // namespace warren::io
