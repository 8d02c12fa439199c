// Listens to the tracker's allocations and phases. System calls are not followed, so the kernel is
// asked which of an allocation's pages are still there.

#include <algorithm>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "analyser/counts/platform.hpp"
#include "analyser/hooks/hooks.hpp"
#include "analyser/tracker/link.hpp"

namespace warren::locality::hooks {

namespace {

// Tells which pages are in memory or swapped out.
class PageMap {
  public:
    PageMap()
        : file_(syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC)),
          page_(counts::platform::page_bytes()) {}
    PageMap(const PageMap&) = delete;
    PageMap& operator=(const PageMap&) = delete;
    ~PageMap() {
        if (file_ >= 0) {
            syscall(SYS_close, file_);
        }
    }
    // Calls use() for the pages that begin in [begin, end), which consists of whole pages. If the
    // kernel does not say, a page is taken to be there.
    template <typename Use>
    void for_pages(std::uint64_t begin, std::uint64_t end, const Use& use) const {
        constexpr std::uint64_t there = std::uint64_t{3} << 62;
        constexpr std::size_t at_once = 512;
        std::uint64_t entries[at_once];
        for (std::uint64_t at = begin / page_; at * page_ < end;) {
            const std::size_t wanted = std::min<std::uint64_t>(at_once, end / page_ - at);
            const long bytes = syscall(SYS_pread64, file_, entries, wanted * sizeof(std::uint64_t),
                                       at * sizeof(std::uint64_t));
            const bool known = bytes == static_cast<long>(wanted * sizeof(std::uint64_t));
            for (std::size_t index = 0; index < wanted; ++index) {
                use((at + index) * page_, !known || (entries[index] & there) != 0);
            }
            at += wanted;
        }
    }
    bool has(std::uint64_t begin, std::uint64_t end) const {
        bool any = false;
        for_pages(begin & ~(page_ - 1), (end + page_ - 1) & ~(page_ - 1),
                  [&](std::uint64_t, bool there) { any = any || there; });
        return any;
    }
    std::uint64_t page() const { return page_; }

  private:
    long file_;
    std::uint64_t page_;
};

// Forgets touched pages of a beginning block that are no longer there: they were given back
// meanwhile.
void forget_pages(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t unit = recorder().settings().granularity;
    const std::vector<std::uint64_t> touched = recorder().touched_in(begin, end);
    const PageMap map;
    for (std::size_t at = 0; at < touched.size();) {
        // Takes units that are adjacent or in one page together.
        std::size_t past = at + 1;
        while (past < touched.size() && (touched[past] == touched[past - 1] + unit ||
                                         touched[past] / map.page() == touched[at] / map.page())) {
            ++past;
        }
        std::uint64_t next = touched[at];
        const std::uint64_t last = touched[past - 1] + unit;
        while (next < last) { // a page, or a unit if that is larger
            const std::uint64_t end_of =
                std::min(last, std::max(next + unit, (next & ~(map.page() - 1)) + map.page()));
            if (!map.has(next, end_of)) {
                recorder().memory_gone(next, end_of);
            }
            next = end_of;
        }
        at = past;
    }
}

// Notes first touches by a call that made a block and wrote it: of the pages that are there.
void note_written(counts::Thread& by, std::uint64_t address, std::uint64_t bytes) {
    // The C library gets larger blocks from the kernel, which has zeroed them.
    constexpr std::uint64_t largest_bytes = std::uint64_t{32} << 20;
    const std::uint64_t unit = recorder().settings().granularity;
    const PageMap map;
    // A resident page does not show which of its lines were touched.
    if (bytes <= largest_bytes && unit >= map.page()) {
        const std::uint64_t end = (address + bytes) & ~(unit - 1);
        for (std::uint64_t at = (address + unit - 1) & ~(unit - 1); at < end; at += unit) {
            if (map.has(at, at + unit)) {
                counts::note_kernel_write(by.counters, at, unit, 0);
            }
        }
    }
}

// Whether the kernel has moved a block's pages away.
bool has_left(std::uint64_t address, std::uint64_t bytes) {
    const PageMap map;
    const std::uint64_t begin = (address + map.page() - 1) & ~(map.page() - 1);
    const std::uint64_t end = (address + bytes) & ~(map.page() - 1);
    return begin < end && !map.has(begin, end);
}

void ask(Welcome* welcome) {
    if (!has_begun() && is_linked()) {
        start_process(Waits::for_beginning);
    }
    if (has_begun()) {
        const Inside inside;
        if (inside && is_own_process()) {
            recorder().welcome_tracker(*welcome);
        }
    }
}

void noted(std::uint32_t event, std::uint32_t record, std::uint64_t address, std::uint64_t bytes,
           std::uint64_t previous) {
    if (!has_begun()) {
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
        forget_pages(address, address + bytes);
        if (previous != 0) {
            note_written(*thread, address, bytes);
        }
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
    if (has_begun()) {
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

void meet_tracker() {
    using Listen = void (*)(const Listener*);
    if (const auto listen =
            reinterpret_cast<Listen>(dlsym(RTLD_DEFAULT, "warren_locality_listen"))) {
        listen(&warren_locality_listener);
    }
}

[[gnu::constructor]] static void begin_with_process() {
    if (is_linked()) {
        start_process();
    }
}

} // namespace warren::locality::hooks
