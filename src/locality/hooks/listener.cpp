// What the tracker tells: allocations and phases; and what has become of their pages meanwhile,
// which the kernel tells, because nobody follows the system calls.

#include <algorithm>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "locality/counts/platform.hpp"
#include "locality/hooks/hooks.hpp"
#include "locality/tracker/link.hpp"

namespace warren::locality::hooks {

namespace {

// Which units of [begin, end), multiples of them, are in memory, or swapped out. Empty: not known.
std::vector<bool> units_there(std::uint64_t begin, std::uint64_t end, std::uint64_t unit) {
    constexpr std::uint64_t there = std::uint64_t{3} << 62;
    constexpr std::size_t at_once = 512;
    const std::uint64_t page = counts::platform::page_bytes();
    std::vector<bool> found((end - begin) / unit, false);
    const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return {};
    }
    bool known = true;
    const std::uint64_t last = (end + page - 1) / page;
    for (std::uint64_t at = begin / page; known && at < last;) {
        std::uint64_t entries[at_once];
        const std::size_t wanted = std::min<std::uint64_t>(at_once, last - at);
        const long bytes = syscall(SYS_pread64, file, entries, wanted * sizeof(std::uint64_t),
                                   at * sizeof(std::uint64_t));
        known = bytes == static_cast<long>(wanted * sizeof(std::uint64_t));
        for (std::size_t index = 0; known && index < wanted; ++index) {
            if ((entries[index] & there) != 0) {
                const std::uint64_t first = std::max((at + index) * page, begin);
                const std::uint64_t past = std::min((at + index + 1) * page, end);
                for (std::uint64_t place = first; place < past; place += unit) {
                    found[(place - begin) / unit] = true;
                }
            }
        }
        at += wanted;
    }
    syscall(SYS_close, file);
    return known ? found : std::vector<bool>{};
}

void look_at_pages(counts::Thread& by, std::uint64_t address, std::uint64_t bytes, bool written) {
    const std::uint64_t unit = recorder().settings().granularity;
    const std::uint64_t begin = (address + unit - 1) & ~(unit - 1);
    const std::uint64_t end = (address + bytes) & ~(unit - 1);
    if (begin < end) {
        const std::vector<bool> there = units_there(begin, end, unit);
        // A page that is there tells nothing of its lines.
        recorder().memory_found(by, begin, there,
                                written && unit >= counts::platform::page_bytes());
    }
}

// Whether the kernel has taken a block's pages from where they were.
bool has_left(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t page = counts::platform::page_bytes();
    const std::uint64_t begin = (address + page - 1) & ~(page - 1);
    const std::uint64_t end = (address + bytes) & ~(page - 1);
    if (begin >= end) {
        return false;
    }
    const std::vector<bool> there = units_there(begin, end, page);
    return std::find(there.begin(), there.end(), true) == there.end();
}

void ask(Welcome* welcome) {
    start_process();
    if (is_recording()) {
        const Inside inside;
        if (inside && is_own_process()) {
            recorder().welcome_tracker(*welcome);
        }
    }
}

void noted(std::uint32_t event, std::uint32_t record, std::uint64_t address, std::uint64_t bytes,
           std::uint64_t previous) {
    if (!is_recording()) {
        return;
    }
    const Inside inside;
    if (!inside || !is_own_process()) {
        return;
    }
    counts::Thread* const thread = this_thread();
    counts::Recorder& of = recorder();
    switch (event) {
    case AllocationRecord::began:
        if (thread == nullptr) {
            break;
        }
        if (const counts::Allocation last = thread->last_ended;
            previous != 0 && previous != address && previous == last.begin &&
            has_left(last.begin, last.end - last.begin)) {
            const std::uint64_t page = counts::platform::page_bytes();
            const std::uint64_t offset = address & (page - 1);
            of.memory_moved(last.begin & ~(page - 1), last.end - (last.begin & ~(page - 1)),
                            address - offset, bytes + offset);
        }
        of.allocation_began(thread, {address, address + bytes, record}, previous);
        look_at_pages(*thread, address, bytes, previous != 0);
        break;
    case AllocationRecord::ended:
        of.allocation_ended(thread, address, bytes);
        break;
    case AllocationRecord::discarded:
        of.memory_gone(address, address + bytes);
        break;
    case AllocationRecord::filled:
        if (thread != nullptr) {
            counts::note_kernel_write(thread->counters, address, bytes, 0);
        }
        break;
    default:
        break;
    }
}

void phase_noted(std::uint32_t event, std::uint32_t record) {
    if (is_recording()) {
        const Inside inside;
        if (inside && is_own_process()) {
            recorder().phase_noted(static_cast<PhaseRecord::Event>(event), record);
        }
    }
}

} // namespace

extern "C" {
// The tracker looks for this when it begins.
extern const Listener warren_locality_listener;
const Listener warren_locality_listener = {link_version, 0, ask, noted, phase_noted};
}

// If this library comes later than the tracker's beginning.
[[gnu::constructor]] static void introduce() {
    start_process();
    using Listen = void (*)(const Listener*);
    if (const auto listen =
            reinterpret_cast<Listen>(dlsym(RTLD_DEFAULT, "warren_locality_listen"))) {
        listen(&warren_locality_listener);
    }
    if (is_recording()) {
        const Inside inside;
        if (inside) {
            note_modules();
        }
    }
}

} // namespace warren::locality::hooks
