// What the recorder does where room is short, on the disk or up to the limit.
//
// What saves write again and again must not take the room of what is written in the end: they stop
// while there is room for two more. In the end, if not all fits, the units that threads have
// accessed most are written, with their first touches.

#include <algorithm>
#include <array>
#include <bit>
#include <sys/statvfs.h>
#include <unistd.h>

#include "locality/counts/recorder.hpp"

namespace warren::locality::counts {
namespace {

// Blocks of files that are begun, and what others write on the same disk meanwhile.
constexpr std::uint64_t reserve_bytes = 256 << 10;
constexpr std::uint8_t kept_mark = 4; // in `touched`: of the unit counts are written

// Of a number of accesses: four per power of two.
constexpr unsigned most_ranks = 4 * 65;
unsigned rank_of(std::uint64_t accesses) {
    const auto width = static_cast<unsigned>(std::bit_width(accesses));
    const auto next = width < 3 ? 0U : static_cast<unsigned>(accesses >> (width - 3)) & 3U;
    return 4 * width + next;
}

} // namespace

std::uint64_t Recorder::room_left() const {
    const std::uint64_t left = room_.left();
    struct statvfs disk {};
    // Some file systems don't know how large they are.
    if (statvfs(folder_.c_str(), &disk) != 0 || disk.f_blocks == 0) {
        return left;
    }
    const std::uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
    const std::uint64_t free = blocks * disk.f_frsize;
    return std::min(left, free > reserve_bytes ? free - reserve_bytes : 0);
}

std::uint64_t Recorder::bytes_per_count() const {
    return sizeof(CountRecord) + (process_.layout.lines() ? sizeof(BytesRecord) : 0);
}

std::uint64_t Recorder::room_needed(const std::vector<Thread*>& threads) const {
    std::uint64_t counts = 0;
    std::uint64_t firsts = 0;
    for (const Thread* thread : threads) {
        counts += number_of_items(thread->counters.first_units);
        firsts += number_of_items(thread->counters.first_firsts) - thread->firsts_done;
    }
    return counts * bytes_per_count() + firsts * sizeof(FirstRecord) +
           threads.size() * sizeof(ThreadRecord);
}

bool Recorder::has_room_for_two() {
    if (room_left() >= 2 * room_needed(threads_)) {
        return true;
    }
    miss_locked("room became short on the disk, or up to the limit: from then on nothing was "
                "saved until the end, and no interval ended");
    return false;
}

void Recorder::write_threads(const std::vector<Thread*>& threads, ThreadRecord::Event event) {
    for (Thread* thread : threads) {
        write_communication(*thread);
        write_thread(*thread, event);
    }
    left_out_ = 0;
    if (room_needed(threads) > room_left()) {
        write_most_used(threads);
        return;
    }
    for (Thread* thread : threads) {
        write_firsts(*thread);
        write_all_counts(*thread);
    }
}

void Recorder::write_most_used(const std::vector<Thread*>& threads) {
    std::array<std::uint64_t, most_ranks> numbers{}; // of units and threads with that rank
    const auto for_counts = [&](const auto& use) {
        for (Thread* thread : threads) {
            if (thread->counters.uncounted) {
                continue;
            }
            for_items(thread->counters.first_units, [&](std::uint64_t unit) {
                if (const std::uint64_t accesses = unwritten(*thread, unit)) {
                    use(*thread, unit, rank_of(accesses));
                }
            });
        }
    };
    for_counts([&](Thread&, std::uint64_t, unsigned rank) { ++numbers[rank]; });
    std::uint64_t left = room_left() / (bytes_per_count() + sizeof(FirstRecord));
    unsigned last = most_ranks; // of which not all fit
    while (last > 0 && numbers[last - 1] <= left) {
        left -= numbers[--last];
    }
    const auto write = [&](Thread& thread, std::uint64_t unit) {
        write_counts(thread, unit, allocation_for(thread, unit));
        process_.touched[process_.layout.index(unit)] |= kept_mark;
    };
    for_counts([&](Thread& thread, std::uint64_t unit, unsigned rank) {
        if (rank >= last) {
            write(thread, unit);
        } else if (rank + 1 == last && left != 0) {
            --left;
            write(thread, unit);
        } else {
            ++left_out_;
        }
    });
    for (Thread* thread : threads) {
        write_firsts(*thread, kept_mark);
    }
}

} // namespace warren::locality::counts
