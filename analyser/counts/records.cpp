// The recorder's records of threads: how much they did, which units they accessed and touched
// first, and which they got from each other.

#include <ctime>
#include <iterator>
#include <string>
#include <x86intrin.h>

#include "analyser/counts/guard.hpp"
#include "analyser/counts/recorder.hpp"

namespace warren::locality::counts {
namespace {

// The clock of another thread's processor time, as the kernel numbers them.
clockid_t processor_clock(std::uint32_t tid) {
    return static_cast<clockid_t>((~tid << 3) | 6U);
}

std::string name_of(std::uint32_t tid) {
    const std::string path = "/proc/self/task/" + std::to_string(tid) + "/comm";
    const std::string line = read_file(path.c_str());
    return line.substr(0, line.find('\n'));
}

} // namespace

void Recorder::note_thread(Thread* thread) {
    const Guard guard(lock_);
    thread->has_left = true;
    thread->last_cpu_ns = time_of(CLOCK_THREAD_CPUTIME_ID);
    thread->last_name = name_of(thread->tid);
}

void Recorder::write_thread(Thread& thread, ThreadRecord::Event event) {
    ThreadRecord record{};
    record.event = event;
    record.thread = thread.counters.number;
    record.tid = thread.tid;
    record.parent = thread.parent;
    record.time_ns = now_ns();
    if (event != ThreadRecord::began) {
        record.cpu_ns = thread.has_left ? thread.last_cpu_ns : time_of(processor_clock(thread.tid));
        record.instructions = thread.instructions_so_far();
        const std::string name = thread.has_left ? thread.last_name : name_of(thread.tid);
        name.copy(record.name, sizeof record.name - 1);
    }
    thread_file_.append(record);
    if (event == ThreadRecord::began) {
        thread_file_.flush(); // few, and without them nobody knows whose the rest is
    }
}

std::uint64_t Recorder::unwritten(const Thread& thread, std::uint64_t unit) const {
    const std::uint64_t index = process_.layout.index(unit);
    const Sums sums = sums_of(thread.counters, index);
    const Sums& folded = thread.counters.accounts[index].folded;
    const std::uint64_t now = sums.reads + sums.writes;
    const std::uint64_t before = folded.reads + folded.writes;
    return now > before ? now - before : 0;
}

bool Recorder::take_counts(Thread& thread, std::uint64_t unit, CountRecord& record) {
    const std::uint64_t index = process_.layout.index(unit);
    const Sums sums = sums_of(thread.counters, index);
    Sums& folded = thread.counters.accounts[index].folded;
    const auto difference = [](std::uint64_t now, std::uint64_t before) {
        return now > before ? now - before : 0; // less: seen in the middle of a borrow
    };
    record.reads = difference(sums.reads, folded.reads);
    record.writes = difference(sums.writes, folded.writes);
    record.bytes_read = difference(sums.bytes_read, folded.bytes_read);
    record.bytes_written = difference(sums.bytes_written, folded.bytes_written);
    // If a word was emptied meanwhile, bytes may come after their accesses and stand alone.
    if ((record.reads | record.writes | record.bytes_read | record.bytes_written) == 0) {
        return false;
    }
    folded.reads += record.reads;
    folded.writes += record.writes;
    folded.bytes_read += record.bytes_read;
    folded.bytes_written += record.bytes_written;
    return true;
}

void Recorder::write_counts(Thread& thread, std::uint64_t unit, std::uint32_t allocation) {
    CountRecord record{};
    if (!take_counts(thread, unit, record)) {
        return;
    }
    record.interval = interval_;
    record.thread = thread.counters.number;
    record.address = unit;
    record.allocation = allocation;
    count_file_.append(record);
    if (thread.counters.bytes == nullptr) {
        return;
    }
    BytesUsed& used = thread.counters.bytes[process_.layout.index(unit)];
    BytesRecord bytes{};
    bytes.flags = 1;
    bytes.thread = record.thread;
    bytes.address = unit;
    bytes.allocation = allocation;
    bytes.instruction = __atomic_load_n(&used.instruction, __ATOMIC_RELAXED);
    bytes.read = __atomic_exchange_n(&used.read, 0, __ATOMIC_RELAXED);
    bytes.written = __atomic_exchange_n(&used.written, 0, __ATOMIC_RELAXED);
    if ((bytes.read | bytes.written) != 0) {
        bytes_file_.append(bytes);
    }
}

void Recorder::write_all_counts(Thread& thread) {
    if (thread.counters.uncounted) {
        return;
    }
    for_items(thread.counters.first_units, [&](std::uint64_t unit) {
        write_counts(thread, unit, allocation_for(thread, unit));
    });
}

// As in first-touch mode: functions of the C library that fill memory push nothing, so their return
// address is on top of the stack. Other words there are mostly no code of another module.
std::uint32_t Recorder::stack_of(const FirstTouch& touch) {
    const auto after = code_.upper_bound(touch.top);
    if (touch.top == 0 || after == code_.begin() || touch.top >= std::prev(after)->second ||
        (process_.c_library_begin <= touch.top && touch.top < process_.c_library_end)) {
        return no_stack;
    }
    const auto [known, made] = touch_stacks_.try_emplace({touch.instruction, touch.top}, no_stack);
    if (made) {
        const auto caller = static_cast<std::uint32_t>(
            touch_stack_file_.append({StackRecord::return_address, no_stack, touch.top}));
        known->second = static_cast<std::uint32_t>(
            touch_stack_file_.append({StackRecord::instruction, caller, touch.instruction}));
        touch_stack_file_.flush();
    }
    return known->second;
}

void Recorder::write_firsts(Thread& thread) {
    std::uint64_t others = UINT64_MAX;
    write_firsts(thread, 0, others);
}

template <typename Use>
void Recorder::take_firsts(Thread& thread, const Use& use) {
    Chunk<FirstTouch>* chunk = thread.written_chunk;
    if (chunk == nullptr) {
        chunk = __atomic_load_n(&thread.counters.first_firsts, __ATOMIC_ACQUIRE);
    }
    while (chunk != nullptr) {
        const std::uint64_t count = __atomic_load_n(&chunk->count, __ATOMIC_ACQUIRE);
        for (; thread.written < count; ++thread.written) {
            ++thread.firsts_done;
            use(chunk->items[thread.written]);
        }
        thread.written_chunk = chunk;
        auto* const next = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
        if (next == nullptr) {
            break;
        }
        chunk = next;
        thread.written = 0;
    }
}

void Recorder::look_at_rate() {
    const double ticks = static_cast<double>(__rdtsc() - clock_start_);
    ns_per_tick_ = ticks > 0 ? static_cast<double>(now_ns() - start_ns_) / ticks : 0;
}

void Recorder::write_first(const Thread& thread, const FirstTouch& touch) {
    FirstRecord record{};
    record.flags = FirstRecord::valid | (touch.write != 0 ? FirstRecord::write : 0U) |
                   (touch.late != 0 ? FirstRecord::late : 0U);
    record.thread = thread.counters.number;
    record.address = touch.address;
    const auto since = static_cast<double>(static_cast<std::int64_t>(touch.clock - clock_start_));
    record.time_ns = start_ns_ + static_cast<std::uint64_t>(since > 0 ? since * ns_per_tick_ : 0);
    record.instruction = touch.instruction;
    record.allocation = allocation_for(thread, touch.address);
    record.stack_id = stack_of(touch);
    first_file_.append(record);
}

void Recorder::write_firsts(Thread& thread, std::uint8_t mark, std::uint64_t& others) {
    if (thread.counters.uncounted) {
        return;
    }
    look_at_rate();
    const auto settle = [&](const FirstTouch& touch) {
        const std::uint8_t marks = process_.touched[process_.layout.index(touch.address)];
        if ((marks & mark) != mark) {
            if (others == 0) {
                ++lost_firsts_;
                return;
            }
            --others;
        }
        write_first(thread, touch);
    };
    for (const auto& [unit, touch] : thread.waiting_firsts) {
        settle(touch);
    }
    thread.waiting_firsts.clear();
    take_firsts(thread, settle);
}

void Recorder::settle_firsts() {
    check_quota();
    for (Thread* thread : threads_) {
        if (!is_short_) {
            write_firsts(*thread);
        } else if (!thread->counters.uncounted) {
            take_firsts(*thread, [thread](const FirstTouch& touch) {
                thread->waiting_firsts.emplace(touch.address, touch);
            });
        }
    }
}

void Recorder::write_communication(Thread& thread) {
    if (thread.counters.uncounted || !process_.layout.communication()) {
        return;
    }
    const std::uint32_t producers = next_thread_ < most_producers ? next_thread_ : most_producers;
    for (std::uint32_t producer = 0; producer < producers; ++producer) {
        const std::uint64_t now =
            __atomic_load_n(&thread.counters.transfers[producer], __ATOMIC_RELAXED);
        std::uint64_t& folded = thread.counters.transfers_folded[producer];
        if (now == folded) {
            continue;
        }
        CommunicationRecord record{};
        record.interval = interval_;
        record.producer = producer;
        record.consumer = thread.counters.number;
        record.events = now - folded;
        record.bytes = record.events * settings_.granularity;
        folded = now;
        communication_file_.append(record);
    }
}

void Recorder::write_everything() {
    write_threads(threads_, ThreadRecord::so_far);
}

void Recorder::flush() {
    thread_file_.flush();
    strings_file_.flush(); // before the modules, whose paths are in it
    module_file_.flush();
    touch_stack_file_.flush(); // before the touches, which name them
    first_file_.flush();
    communication_file_.flush();
    bytes_file_.flush();
    count_file_.flush();
    interval_file_.flush();
}

void Recorder::hold(bool held) {
    held_ = held;
    thread_file_.hold(held);
    module_file_.hold(held);
    strings_file_.hold(held);
    interval_file_.hold(held);
    count_file_.hold(held);
    first_file_.hold(held);
    touch_stack_file_.hold(held);
    communication_file_.hold(held);
    bytes_file_.hold(held);
}

} // namespace warren::locality::counts
