// Mappings, shared memory and the break that programs request by the C library's functions.
// Mappings of the C library itself, for malloc and thread stacks, are not seen.

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "analyser/tracker/real.hpp"
#include "analyser/tracker/tracker.hpp"

namespace warren::locality::tracker {

namespace {

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) {
    return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

// The address of shared memory that all processes agree on (AllocationRecord::previous); never 0.
// Files begin at a hash in 64 bits and wrap around at its end: of a thousand with a GiB each, two
// overlap in one of seventeen thousand jobs. They begin at multiples of the largest unit, so that a
// unit never has parts of two files.
const void* shared_place(std::uint64_t device, std::uint64_t number, std::uint64_t offset) {
    constexpr std::uint64_t largest_unit = std::uint64_t{2} << 20; // counts/settings.hpp
    std::uint64_t mixed = (device + 1) * 0x9E37'79B9'7F4A'7C15U ^ number;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8'FEB8'6659'FD93U;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8'FEB8'6659'FD93U;
    const std::uint64_t place = (mixed & ~(largest_unit - 1)) + offset;
    return reinterpret_cast<const void*>(place != 0 ? place : largest_unit);
}

const void* place_in_file(int flags, int descriptor, off_t offset) {
    struct stat about {};
    // Each mapping of /dev/zero is separate memory, and other devices differ.
    if ((flags & MAP_TYPE) == MAP_PRIVATE || (flags & MAP_ANONYMOUS) != 0 ||
        fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
        return nullptr;
    }
    return shared_place(about.st_dev, about.st_ino, static_cast<std::uint64_t>(offset));
}

void* mapped(void* wanted, std::size_t bytes, int protection, int flags, int descriptor,
             off_t offset, const Caller& caller) {
    const Real* functions = real();
    if (functions == nullptr) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    const Inside inside;
    if (!inside) {
        return functions->mmap(wanted, bytes, protection, flags, descriptor, offset);
    }
    const std::uint64_t before_ns = now_ns();
    if ((flags & MAP_FIXED) != 0 && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE) {
        record_end(AllocationRecord::mapping, wanted, whole_pages(bytes));
    }
    void* memory = functions->mmap(wanted, bytes, protection, flags, descriptor, offset);
    if (memory != MAP_FAILED) {
        const int kept_errno = errno;
        const bool is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;
        record_begin(is_shared ? AllocationRecord::shared : AllocationRecord::mapping, memory,
                     whole_pages(bytes), before_ns, caller,
                     place_in_file(flags, descriptor, offset));
        if ((flags & (MAP_POPULATE | MAP_LOCKED)) != 0) {
            record_fill(memory, whole_pages(bytes), caller);
        }
        errno = kept_errno;
    }
    return memory;
}

} // namespace

extern "C" {

void* mmap(void* wanted, std::size_t bytes, int protection, int flags, int descriptor,
           off_t offset) {
    return mapped(wanted, bytes, protection, flags, descriptor, offset, WARREN_CALLER);
}

void* mmap64(void* wanted, std::size_t bytes, int protection, int flags, int descriptor,
             off64_t offset) {
    return mapped(wanted, bytes, protection, flags, descriptor, offset, WARREN_CALLER);
}

int munmap(void* memory, std::size_t bytes) {
    const Real* functions = real();
    if (functions == nullptr) {
        errno = ENOMEM;
        return -1;
    }
    const Inside inside;
    if (inside && reinterpret_cast<std::uint64_t>(memory) % page_bytes == 0 && bytes != 0) {
        record_end(AllocationRecord::mapping, memory, whole_pages(bytes));
        tell_gone(memory, whole_pages(bytes));
    }
    return functions->munmap(memory, bytes);
}

void* mremap(void* memory, std::size_t before_bytes, std::size_t bytes, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
    va_end(arguments);
    const Real* functions = real();
    if (functions == nullptr) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    const Inside inside;
    if (!inside) {
        return functions->mremap(memory, before_bytes, bytes, flags, wanted);
    }
    const Caller caller = WARREN_CALLER;
    const std::uint64_t before_ns = now_ns();
    record_end(AllocationRecord::mapping, memory, whole_pages(before_bytes));
    void* moved = functions->mremap(memory, before_bytes, bytes, flags, wanted);
    const int kept_errno = errno;
    const bool failed = moved == MAP_FAILED;
    record_begin(AllocationRecord::mapping, failed ? memory : moved,
                 whole_pages(failed ? before_bytes : bytes), before_ns, caller, memory);
    errno = kept_errno;
    return moved;
}

int madvise(void* memory, std::size_t bytes, int advice) {
    const Real* functions = real();
    if (functions == nullptr) {
        return 0;
    }
    const Inside inside;
    const int result = functions->madvise(memory, bytes, advice);
    if (inside && result == 0) {
        const int kept_errno = errno;
        constexpr int dontneed_locked = 24; // MADV_DONTNEED_LOCKED, since Linux 5.18
        if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
            advice == dontneed_locked) {
            record_discard(memory, whole_pages(bytes));
        } else if (advice == MADV_POPULATE_WRITE) {
            record_fill(memory, whole_pages(bytes), WARREN_CALLER);
        }
        errno = kept_errno;
    }
    return result;
}

int mlock(const void* memory, std::size_t bytes) {
    const Real* functions = real();
    if (functions == nullptr) {
        errno = ENOMEM;
        return -1;
    }
    const int result = functions->mlock(memory, bytes);
    const Inside inside;
    if (inside && result == 0) {
        const int kept_errno = errno;
        record_fill(memory, bytes, WARREN_CALLER);
        errno = kept_errno;
    }
    return result;
}

void* sbrk(std::intptr_t increment) {
    const Real* functions = real();
    if (functions == nullptr) {
        errno = ENOMEM;
        return reinterpret_cast<void*>(-1);
    }
    const Inside inside;
    const std::uint64_t before_ns = inside ? now_ns() : 0;
    void* before = functions->sbrk(increment);
    if (inside && before != reinterpret_cast<void*>(-1) && increment != 0) {
        const int kept_errno = errno;
        if (increment > 0) {
            record_begin(AllocationRecord::program_break, before,
                         static_cast<std::uint64_t>(increment), before_ns, WARREN_CALLER);
        } else {
            record_end(AllocationRecord::program_break, static_cast<char*>(before) + increment,
                       static_cast<std::uint64_t>(-increment));
        }
        errno = kept_errno;
    }
    return before;
}

int brk(void* end) {
    const Real* functions = real();
    if (functions == nullptr) {
        errno = ENOMEM;
        return -1;
    }
    const Inside inside;
    char* before = inside ? static_cast<char*>(functions->sbrk(0)) : nullptr;
    const std::uint64_t before_ns = inside ? now_ns() : 0;
    const int result = functions->brk(end);
    if (inside && result == 0) {
        const int kept_errno = errno;
        const std::ptrdiff_t grown = static_cast<char*>(end) - before;
        if (grown > 0) {
            record_begin(AllocationRecord::program_break, before, static_cast<std::uint64_t>(grown),
                         before_ns, WARREN_CALLER);
        } else if (grown < 0) {
            record_end(AllocationRecord::program_break, end, static_cast<std::uint64_t>(-grown));
        }
        errno = kept_errno;
    }
    return result;
}

void* shmat(int id, const void* wanted, int flags) {
    const Real* functions = real();
    if (functions == nullptr) {
        errno = ENOMEM;
        return reinterpret_cast<void*>(-1);
    }
    const Inside inside;
    const std::uint64_t before_ns = inside ? now_ns() : 0;
    void* memory = functions->shmat(id, wanted, flags);
    if (inside && memory != reinterpret_cast<void*>(-1)) {
        const int kept_errno = errno;
        shmid_ds about{};
        if (shmctl(id, IPC_STAT, &about) == 0) {
            // No file has the device number with all bits set.
            record_begin(AllocationRecord::shmem, memory, whole_pages(about.shm_segsz), before_ns,
                         WARREN_CALLER,
                         shared_place(~std::uint64_t{0}, static_cast<std::uint64_t>(id), 0));
        }
        errno = kept_errno;
    }
    return memory;
}

int shmdt(const void* memory) {
    const Real* functions = real();
    if (functions == nullptr) {
        errno = EINVAL;
        return -1;
    }
    const Inside inside;
    if (inside) {
        record_end(AllocationRecord::shmem, memory, 0);
    }
    return functions->shmdt(memory);
}

} // extern "C"

} // namespace warren::locality::tracker
