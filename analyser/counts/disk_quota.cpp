// How the recorder keeps within its disk quota and the free space of the disk.
//
// Saves must not take the space that the end needs: they stop unless two more would fit. Counts of
// freed memory and its first touches are written only while everything else that may be in use
// (counted, and not given back to the kernel) fits twice beside them; else they are lost. If not
// everything fits when threads end or in the end, the units that threads have accessed most are
// written, with their first touches.

#include <algorithm>
#include <array>
#include <bit>

#include "analyser/counts/recorder.hpp"
#include "analyser/recorder/disk.hpp"

namespace warren::locality::counts {
namespace {

// For blocks of files that are begun, and for what others write to the same disk meanwhile.
constexpr std::uint64_t reserve_bytes = 256 << 10;
constexpr std::uint64_t end_bytes = 4 << 10; // the last interval, and stacks of first touches
// Marks in `touched`: the unit's counts are written; its first touches (two at most) are to be
// written.
constexpr std::uint8_t kept_mark = 4;
constexpr std::uint8_t read_mark = 8;
constexpr std::uint8_t write_mark = 16;

std::uint64_t without(std::uint64_t quota, std::uint64_t bytes) {
    return quota > bytes ? quota - bytes : 0;
}

// Rank of a number of accesses: four ranks per power of two.
constexpr unsigned most_ranks = 4 * 65;
unsigned rank_of(std::uint64_t accesses) {
    const auto width = static_cast<unsigned>(std::bit_width(accesses));
    const auto next = width < 3 ? 0U : static_cast<unsigned>(accesses >> (width - 3)) & 3U;
    return 4 * width + next;
}

} // namespace

std::uint64_t Recorder::disk_left() const {
    const std::uint64_t free = disk_free_bytes(folder_.c_str());
    return free == UINT64_MAX ? free
                              : without(free, reserve_bytes + count_file_.waiting() +
                                                  bytes_file_.waiting() + first_file_.waiting());
}

std::uint64_t Recorder::quota_left() const {
    return std::min(quota_.left(), disk_left());
}

// Called at each free. Asks the kernel only if much has been written since, or the disk is nearly
// full.
void Recorder::check_quota() {
    constexpr std::uint64_t much = 64 << 10;
    constexpr std::uint64_t little = 64 << 20;
    const std::uint64_t left = quota_.left();
    if (quota_then_ < left || quota_then_ - left > much || disk_left_ < little) {
        quota_then_ = left;
        disk_left_ = disk_left();
    }
    quota_now_ = std::min(left, without(disk_left_, quota_then_ - left));
    // Twice, because the tracker writes as well and more memory comes into use.
    is_short_ = quota_now_ < 2 * bytes_needed(threads_) + end_bytes;
}

std::uint64_t Recorder::quota_beside(std::uint64_t bytes) const {
    return without(quota_now_, 2 * without(bytes_needed(threads_), bytes) + end_bytes);
}

void Recorder::lose_counts(Thread& thread, std::uint64_t unit) {
    CountRecord lost{};
    if (take_counts(thread, unit, lost)) {
        ++lost_ended_;
    }
    if (thread.counters.bytes != nullptr) {
        BytesUsed& used = thread.counters.bytes[process_.layout.index(unit)];
        __atomic_store_n(&used.read, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&used.written, 0, __ATOMIC_RELAXED);
    }
}

std::uint64_t Thread::unwritten_firsts() const {
    return number_of_items(counters.first_firsts) - firsts_done + waiting_firsts.size();
}

std::uint64_t Recorder::bytes_per_count() const {
    return sizeof(CountRecord) + (process_.layout.lines() ? sizeof(BytesRecord) : 0);
}

std::uint64_t Recorder::bytes_needed(const std::vector<Thread*>& threads) const {
    std::uint64_t counts = 0;
    std::uint64_t firsts = 0;
    for (const Thread* thread : threads) {
        if (!thread->counters.uncounted) {
            counts += units_counted(thread->counters);
            firsts += thread->unwritten_firsts();
        }
    }
    return counts * bytes_per_count() + firsts * sizeof(FirstRecord) +
           threads.size() * sizeof(ThreadRecord);
}

bool Recorder::fits_twice() {
    if (quota_left() >= 2 * bytes_needed(threads_)) {
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
    if (bytes_needed(threads_) + end_bytes > quota_left()) {
        write_most_used(threads);
        return;
    }
    for (Thread* thread : threads) {
        write_firsts(*thread);
        write_all_counts(*thread);
    }
}

template <typename Use>
void Recorder::for_new_firsts(const Thread& thread, const Use& use) {
    for (const auto& [unit, touch] : thread.waiting_firsts) {
        use(touch);
    }
    std::uint64_t done = thread.firsts_done;
    for_items(thread.counters.first_firsts, [&](const FirstTouch& touch) {
        if (done != 0) {
            --done;
        } else {
            use(touch);
        }
    });
}

// Says of each unit, by its marks, which first touches of it there are.
void Recorder::mark_firsts() {
    const auto marks = [&](std::uint64_t unit) -> std::uint8_t& {
        return process_.touched[process_.layout.index(unit)];
    };
    for (const Thread* thread : threads_) {
        for_items(thread->counters.first_units, [&](std::uint64_t unit) {
            constexpr std::uint8_t others = 0xff & ~(kept_mark | read_mark | write_mark);
            __atomic_fetch_and(&marks(unit), others, __ATOMIC_RELAXED);
        });
    }
    for (const Thread* thread : threads_) {
        for_new_firsts(*thread, [&](const FirstTouch& touch) {
            __atomic_fetch_or(&marks(touch.address), touch.write != 0 ? write_mark : read_mark,
                              __ATOMIC_RELAXED);
        });
    }
}

void Recorder::write_most_used(const std::vector<Thread*>& threads) {
    const auto marks = [&](std::uint64_t unit) -> std::uint8_t& {
        return process_.touched[process_.layout.index(unit)];
    };
    mark_firsts();
    const auto bytes_of = [&](std::uint64_t unit) {
        const auto firsts =
            static_cast<unsigned>(std::popcount(marks(unit) & (0U + read_mark + write_mark)));
        return bytes_per_count() + firsts * sizeof(FirstRecord);
    };
    const auto for_counts = [&](const std::vector<Thread*>& whose, const auto& use) {
        for (Thread* thread : whose) {
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
    std::array<std::uint64_t, most_ranks> bytes{}; // of units and threads with that rank
    for_counts(threads_,
               [&](Thread&, std::uint64_t unit, unsigned rank) { bytes[rank] += bytes_of(unit); });
    const std::uint64_t quota = without(quota_left(), end_bytes);
    std::uint64_t left = quota;
    unsigned last = most_ranks; // of which not all fit
    while (last > 0 && bytes[last - 1] <= left) {
        left -= bytes[--last];
    }
    std::uint64_t most = quota; // whatever other threads count meanwhile
    for_counts(threads, [&](Thread& thread, std::uint64_t unit, unsigned rank) {
        const std::uint64_t size = bytes_of(unit);
        const bool is_border = rank + 1 == last && size <= left;
        if (size > most || (rank < last && !is_border)) {
            ++left_out_;
            return;
        }
        left -= is_border ? size : 0;
        most -= size;
        write_counts(thread, unit, allocation_for(thread, unit));
        __atomic_fetch_or(&marks(unit), kept_mark, __ATOMIC_RELAXED);
    });
    // First touches of other units are written only if no counts will need the space.
    std::uint64_t kept = 0;
    for (const Thread* thread : threads) {
        for_new_firsts(*thread, [&](const FirstTouch& touch) {
            kept += (marks(touch.address) & kept_mark) != 0 ? 1 : 0;
        });
    }
    std::uint64_t others = 0;
    if (threads.size() == threads_.size()) {
        others =
            without(quota_left(), end_bytes + kept * sizeof(FirstRecord)) / sizeof(FirstRecord);
    }
    for (Thread* thread : threads) {
        write_firsts(*thread, kept_mark, others);
    }
}

} // namespace warren::locality::counts
