// Lives of memory: to which allocation the counts of a unit belong when memory gets or loses its
// use.

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "analyser/counts/guard.hpp"
#include "analyser/counts/recorder.hpp"

namespace warren::locality::counts {

std::uint32_t Recorder::allocation_of(std::uint64_t unit) const {
    const auto after = allocations_.upper_bound(unit);
    if (after != allocations_.begin()) {
        const auto before = std::prev(after);
        if (before->second.end > unit) { // from before
            return before->second.number;
        }
    }
    const std::uint64_t unit_end = unit + settings_.granularity;
    return after != allocations_.end() && after->first < unit_end ? after->second.number
                                                                  : no_allocation;
}

std::uint32_t Recorder::allocation_for(const Thread& thread, std::uint64_t unit) const {
    const std::uint32_t number = allocation_of(unit);
    const Allocation& last = thread.last_ended;
    return number == no_allocation && last.begin < unit + settings_.granularity && unit < last.end
               ? last.number
               : number;
}

template <typename Counts>
void Recorder::settle_short(std::uint64_t begin, std::uint64_t end, const Counts& is_settled,
                            bool with_firsts) {
    // Mark in `touched`: the unit is to be settled. The range may be reported more than once.
    constexpr std::uint8_t to_settle = 32;
    const auto marks = [&](std::uint64_t at) {
        return &process_.touched[process_.layout.index(at)];
    };
    const auto firsts_bytes = [&](const Thread& thread, std::uint64_t at) {
        return with_firsts ? thread.waiting_firsts.count(at) * sizeof(FirstRecord) : 0;
    };
    std::uint64_t within = 0; // of what is needed
    for_touched(begin, end, [&](std::uint64_t at) {
        if (at < begin || at + settings_.granularity > end) {
            return; // there is other memory in it, which may be in use
        }
        if ((__atomic_fetch_or(marks(at), to_settle, __ATOMIC_RELAXED) & to_settle) != 0) {
            return;
        }
        for (const Thread* thread : threads_) {
            if (thread->counters.uncounted) {
                continue;
            }
            const bool counts =
                is_settled(*thread) && is_counted(thread->counters, process_.layout.index(at));
            within += (counts ? bytes_per_count() : 0) + firsts_bytes(*thread, at);
        }
    });
    std::uint64_t left = quota_beside(within);
    look_at_rate();
    for_touched(begin, end, [&](std::uint64_t at) {
        constexpr std::uint8_t others = 0xff & ~to_settle;
        if ((__atomic_fetch_and(marks(at), others, __ATOMIC_RELAXED) & to_settle) == 0) {
            return;
        }
        std::uint64_t bytes = 0;
        for (const Thread* thread : threads_) {
            const bool counts =
                !thread->counters.uncounted && is_settled(*thread) && unwritten(*thread, at) != 0;
            bytes += (counts ? bytes_per_count() : 0) + firsts_bytes(*thread, at);
        }
        const bool is_kept = bytes <= left;
        left -= is_kept ? bytes : 0;
        for (Thread* thread : threads_) {
            if (with_firsts) {
                const auto [first, last] = thread->waiting_firsts.equal_range(at);
                for (auto touch = first; touch != last; ++touch) {
                    is_kept ? write_first(*thread, touch->second) : void(++lost_firsts_);
                }
                thread->waiting_firsts.erase(first, last);
            }
            if (thread->counters.uncounted || !is_settled(*thread)) {
                continue;
            }
            is_kept ? write_counts(*thread, at, allocation_for(*thread, at))
                    : lose_counts(*thread, at);
        }
    });
}

void Recorder::settle_short(std::uint64_t begin, std::uint64_t end) {
    settle_short(
        begin, end, [](const Thread&) { return true; }, true);
}

void Recorder::settle_counts_short(std::uint64_t begin, std::uint64_t end, const Thread* but) {
    settle_short(
        begin, end, [but](const Thread& thread) { return &thread != but; }, false);
}

template <typename Use>
void Recorder::for_touched(std::uint64_t begin, std::uint64_t end, const Use& use) const {
    const std::uint64_t unit = settings_.granularity;
    begin &= ~(unit - 1);
    if (begin >= end) {
        return;
    }
    const auto use_touched = [&](std::uint64_t at) {
        if (begin <= at && at < end && process_.touched[process_.layout.index(at)] != 0) {
            use(at);
        }
    };
    std::uint64_t most = std::uint64_t{1} << 20; // that take no time worth mentioning
    for (const Thread* thread : threads_) {
        most += number_of_items(thread->counters.first_units);
    }
    // In a range longer than the tables addresses share counters.
    most = std::min(most, process_.layout.units());
    const std::uint64_t units = (end - begin - 1) / unit + 1;
    if (units <= most) {
        for (std::uint64_t index = 0; index < units; ++index) {
            use_touched(begin + index * unit);
        }
        return;
    }
    for (const Thread* thread : threads_) {
        for_items(thread->counters.first_units, use_touched);
        for_items(thread->counters.first_firsts, // the kernel's writes too
                  [&](const FirstTouch& touch) { use_touched(touch.address); });
    }
}

// Writes the counts of the units in [begin, end) up to now.
void Recorder::write_range(std::uint64_t begin, std::uint64_t end) {
    if (is_short_) {
        settle_short(begin, end);
        return;
    }
    for_touched(begin, end, [&](std::uint64_t at) {
        for (Thread* thread : threads_) {
            if (!thread->counters.uncounted) {
                write_counts(*thread, at, allocation_for(*thread, at));
            }
        }
    });
}

void Recorder::allocation_began(Thread* by, const Allocation& allocation, std::uint64_t previous) {
    const Guard guard(lock_);
    if (!running_ || by == nullptr || allocation.begin >= allocation.end) {
        return;
    }
    check_quota();
    if (previous != allocation.begin && previous != 0 && previous == by->last_ended.begin) {
        write_range(previous, by->last_ended.end); // it was copied from there
    }
    const bool written = previous != 0;
    const std::uint64_t unit = settings_.granularity;
    if (is_short_) {
        settle_counts_short(allocation.begin, allocation.end, written ? by : nullptr);
    } else {
        for_touched(allocation.begin, allocation.end, [&](std::uint64_t at) {
            const bool whole = at >= allocation.begin && at + unit <= allocation.end;
            for (Thread* thread : threads_) {
                const bool is_its = whole && written && thread == by;
                if (!thread->counters.uncounted) {
                    write_counts(*thread, at,
                                 is_its ? allocation.number : allocation_for(*thread, at));
                }
            }
        });
    }
    // No thread's last ended allocation has this memory any more.
    for (Thread* thread : threads_) {
        if (thread->last_ended.begin < allocation.end &&
            allocation.begin < thread->last_ended.end) {
            thread->last_ended = {};
        }
    }
    allocations_[allocation.begin] = allocation;
}

// Ends the part [begin, end) of an allocation, or all of it.
void Recorder::end_allocation(Thread* by, const Allocation& allocation, std::uint64_t begin,
                              std::uint64_t end) {
    settle_firsts();
    write_range(begin, end);
    allocations_.erase(allocation.begin);
    if (allocation.begin < begin) {
        allocations_[allocation.begin] = {allocation.begin, begin, allocation.number};
    }
    if (end < allocation.end) {
        allocations_[end] = {end, allocation.end, allocation.number};
    }
    if (by != nullptr) {
        by->last_ended = {begin, end, allocation.number};
    }
}

void Recorder::allocation_ended(Thread* by, std::uint64_t address, std::uint64_t size) {
    const Guard guard(lock_);
    if (!running_) {
        return;
    }
    if (size == 0) {
        const auto found = allocations_.find(address);
        if (found != allocations_.end()) {
            const Allocation allocation = found->second;
            end_allocation(by, allocation, allocation.begin, allocation.end);
        }
        return;
    }
    const std::uint64_t end = address + size;
    std::vector<Allocation> within;
    auto next = allocations_.upper_bound(address);
    if (next != allocations_.begin() && std::prev(next)->second.end > address) {
        --next;
    }
    for (; next != allocations_.end() && next->first < end; ++next) {
        within.push_back(next->second);
    }
    for (const Allocation& one : within) {
        end_allocation(by, one, std::max(one.begin, address), std::min(one.end, end));
    }
}

void Recorder::memory_gone(std::uint64_t begin, std::uint64_t end) {
    const Guard guard(lock_);
    if (!running_) {
        return;
    }
    const std::uint64_t unit = settings_.granularity;
    begin = (begin + unit - 1) & ~(unit - 1);
    end &= ~(unit - 1);
    if (begin >= end) {
        return;
    }
    settle_firsts();
    write_range(begin, end);
    for_touched(begin, end, [&](std::uint64_t address) {
        const std::uint64_t index = process_.layout.index(address);
        for (Thread* thread : threads_) {
            if (!thread->counters.uncounted) {
                forget(thread->counters, index);
            }
        }
        process_.touched[index] = 0;
    });
}

void Recorder::memory_moved(std::uint64_t from, std::uint64_t from_bytes, std::uint64_t to,
                            std::uint64_t to_bytes) {
    std::vector<std::pair<std::uint64_t, std::uint8_t>> touched; // address there, marks
    {
        const Guard guard(lock_);
        for_touched(from, from + std::min(from_bytes, to_bytes), [&](std::uint64_t at) {
            touched.emplace_back(to + (std::max(at, from) - from),
                                 process_.touched[process_.layout.index(at)]);
        });
    }
    memory_gone(to, to + to_bytes); // what was there before
    memory_gone(from, from + from_bytes);
    const Guard guard(lock_);
    for (const auto& [address, marks] : touched) {
        process_.touched[process_.layout.index(address)] |= marks;
    }
}

std::vector<std::uint64_t> Recorder::touched_in(std::uint64_t begin, std::uint64_t end) {
    std::vector<std::uint64_t> found;
    {
        const Guard guard(lock_);
        const std::uint64_t unit = settings_.granularity;
        for_touched(begin, end, [&](std::uint64_t at) {
            if (at >= begin && at + unit <= end) {
                found.push_back(at);
            }
        });
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

void Recorder::break_moves(std::uint64_t to) {
    std::uint64_t from = 0;
    {
        const Guard guard(lock_);
        from = break_;
        break_ = to;
    }
    if (to < from) {
        memory_gone(to, from);
    }
}

} // namespace warren::locality::counts
