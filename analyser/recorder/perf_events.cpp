#include "analyser/recorder/perf_events.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <iterator>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "base/page.hpp"

namespace warren::locality {

namespace {

constexpr int other_error = 16; // MPI_ERR_OTHER
// An event gets its time and reaches its ring within this, unless a virtual processor is
// descheduled just then.
constexpr std::uint64_t settled_ns = 10'000'000;
// PERF_FORMAT_LOST, since Linux 6.0: the number of lost events is read from the descriptor.
constexpr std::uint64_t format_lost = 1U << 4;
constexpr std::size_t smallest_ring_bytes = 8 * page_bytes;
// Only the top of the user's stack is sampled: the return address of functions that push nothing.
constexpr std::uint32_t stack_bytes = 8;
// Registers in the order of their numbers, as samples have them (asm/perf_regs.h).
constexpr std::uint64_t wanted_registers = 1U << 4 | 1U << 5 | 1U << 7; // SI, DI, SP

constexpr std::uint64_t common_sample = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;

int perf_event_open(perf_event_attr& attributes, pid_t pid, int processor) {
    return static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, pid, processor, -1, PERF_FLAG_FD_CLOEXEC));
}

std::string first_line(const char* path) {
    char line[64] = "";
    if (FILE* file = std::fopen(path, "r")) {
        if (std::fgets(line, sizeof line, file) == nullptr) {
            line[0] = 0;
        }
        std::fclose(file);
    }
    line[std::strcspn(line, "\n")] = 0;
    return line;
}

Error refused(int code) {
    if (code == ENOSYS) {
        return fail(other_error, "this kernel has no performance events (perf_event_open: %s)",
                    std::strerror(code));
    }
    const std::string paranoid = first_line("/proc/sys/kernel/perf_event_paranoid");
    const bool by_rule = std::atoi(paranoid.c_str()) > 2; // not if it can't be read
    // The kernel's own rule gives EACCES. Filters of system calls give EPERM, also for root and
    // whatever that rule says.
    if (code == EACCES && by_rule) {
        return fail(other_error,
                    "the system allows ordinary users no performance events: "
                    "kernel.perf_event_paranoid is %s, and 2 would do (sysctl -w "
                    "kernel.perf_event_paranoid=2, or with CAP_PERFMON, as root has it as a rule)",
                    paranoid.c_str());
    }
    if (code == EACCES || code == EPERM) {
        const std::string allowed = paranoid.empty() || by_rule
                                        ? ""
                                        : ", although kernel.perf_event_paranoid is " + paranoid;
        return fail(other_error,
                    "performance events are forbidden here (perf_event_open: %s)%s: containers do "
                    "so by seccomp (docker run --security-opt seccomp=unconfined, or --cap-add "
                    "PERFMON)",
                    std::strerror(code), allowed.c_str());
    }
    return fail(other_error, "perf_event_open: %s", std::strerror(code));
}

template <typename Value>
Value take_value(const char*& data) {
    Value value;
    std::memcpy(&value, data, sizeof value);
    data += sizeof value;
    return value;
}

} // namespace

PerfEvents::~PerfEvents() {
    for (const Ring& ring : rings_) {
        if (ring.memory != nullptr) {
            munmap(ring.memory, ring_bytes_ + page_bytes);
        }
        close(ring.descriptor);
    }
    for (const int descriptor : descriptors_) {
        close(descriptor);
    }
    if (epoll_ >= 0) {
        close(epoll_);
    }
}

Error PerfEvents::open(pid_t pid, const PerfOptions& options) {
    options_ = options;
    ring_bytes_ = options.ring_bytes;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) {
        return fail(other_error, "epoll_create1: %s", std::strerror(errno));
    }
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    for (int processor = 0; processor < processors; ++processor) {
        if (Error error = open_processor(pid, processor)) {
            return error;
        }
    }
    if (rings_.empty()) {
        return fail(other_error, "no processor is online");
    }
    for (const Ring& ring : rings_) {
        if (Error error = open_further(pid, ring)) {
            return error;
        }
    }
    return {};
}

perf_event_attr PerfEvents::attributes_of_faults() const {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
    attributes.sample_period = 1;
    attributes.sample_type = sample_type();
    attributes.sample_regs_user = wanted_registers;
    if (!options_.brief) {
        attributes.sample_stack_user = stack_bytes;
        attributes.sample_max_stack = static_cast<std::uint16_t>(options_.calls + 1);
    }
    attributes.sample_id_all = 1;
    attributes.disabled = 1;
    attributes.enable_on_exec = 1;
    attributes.inherit = 1;
    attributes.exclude_kernel = kernel_ ? 0 : 1;
    attributes.exclude_hv = 1;
    attributes.exclude_callchain_kernel = 1;
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC;
    attributes.watermark = 1;
    attributes.wakeup_watermark = static_cast<std::uint32_t>(ring_bytes_ / 4);
    attributes.mmap = attributes.mmap2 = 1;
    attributes.comm = attributes.comm_exec = attributes.task = 1;
    attributes.build_id = build_ids_ ? 1 : 0;
    attributes.read_format = tells_lost_ ? format_lost : 0;
    return attributes;
}

std::uint64_t PerfEvents::sample_type() const {
    return common_sample | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER |
           (options_.brief ? 0 : PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER) |
           (physical_ ? PERF_SAMPLE_PHYS_ADDR : 0) | (page_size_ ? PERF_SAMPLE_DATA_PAGE_SIZE : 0);
}

Error PerfEvents::open_processor(pid_t pid, int processor) {
    // Opens the events with the most features that kernel and settings permit. The first processor
    // decides.
    int descriptor = -1;
    for (unsigned without = 0; descriptor < 0 && without < 32; ++without) {
        if (!rings_.empty()) {
            without = 0;
        } else {
            physical_ = (without & 1) == 0 && !options_.brief;
            kernel_ = (without & 2) == 0;
            page_size_ = (without & 4) == 0;
            build_ids_ = (without & 8) == 0;
            tells_lost_ = (without & 16) == 0;
        }
        perf_event_attr attributes = attributes_of_faults();
        descriptor = perf_event_open(attributes, pid, processor);
        if (descriptor < 0 && errno == ENODEV) {
            return {}; // this processor is not online
        }
        if (descriptor < 0 && (errno == EMFILE || !rings_.empty())) {
            break;
        }
    }
    if (descriptor < 0) {
        return refused(errno);
    }
    Ring ring{nullptr, descriptor, processor};
    Error error = map_ring(ring);
    rings_.push_back(ring); // the destructor closes it
    if (error) {
        return error;
    }
    // Edge-triggered, because the event of an ended thread would stay ready for ever (EPOLLHUP).
    epoll_event interest{};
    interest.events = EPOLLIN | EPOLLET;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &interest) != 0) {
        return fail(other_error, "epoll_ctl: %s", std::strerror(errno));
    }
    return {};
}

// Opens events for faults that waited for a disk and for threads' processor time. They go to the
// same ring, which has its final size by now.
Error PerfEvents::open_further(pid_t pid, const Ring& ring) {
    perf_event_attr attributes = attributes_of_faults();
    attributes.mmap = attributes.mmap2 = attributes.build_id = 0;
    attributes.comm = attributes.comm_exec = attributes.task = 0;
    attributes.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
    const int major = perf_event_open(attributes, pid, ring.processor);
    attributes.read_format = 0;
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    attributes.sample_period = 0;
    attributes.sample_type = common_sample;
    attributes.sample_regs_user = attributes.sample_stack_user = 0;
    attributes.inherit_stat = 1;
    const int clock = perf_event_open(attributes, pid, ring.processor);
    for (const int further : {major, clock}) {
        if (further < 0) {
            return refused(errno);
        }
        descriptors_.push_back(further);
        if (ioctl(further, PERF_EVENT_IOC_SET_OUTPUT, ring.descriptor) != 0) {
            return fail(other_error, "PERF_EVENT_IOC_SET_OUTPUT: %s", std::strerror(errno));
        }
    }
    std::uint64_t id = 0;
    if (ioctl(major, PERF_EVENT_IOC_ID, &id) != 0) {
        return fail(other_error, "PERF_EVENT_IOC_ID: %s", std::strerror(errno));
    }
    major_ids_.push_back(id);
    clocks_.push_back(clock);
    return {};
}

// Rings are locked memory, which is limited per user. The size that fits on the first processor is
// requested on all. If it does not fit on a later one, all rings shrink.
Error PerfEvents::map_ring(Ring& ring) {
    while (true) {
        ring.memory = mmap(nullptr, ring_bytes_ + page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                           ring.descriptor, 0);
        if (ring.memory != MAP_FAILED) {
            return {};
        }
        ring.memory = nullptr;
        const int code = errno;
        if ((code != EPERM && code != ENOMEM) || ring_bytes_ <= smallest_ring_bytes) {
            return fail(other_error,
                        "no memory for the kernel's events (%zu bytes per processor): %s; "
                        "kernel.perf_event_mlock_kb and ulimit -l limit it",
                        ring_bytes_, std::strerror(code));
        }
        const std::size_t before = ring_bytes_;
        ring_bytes_ /= 2;
        for (Ring& other : rings_) { // all are of one size
            munmap(other.memory, before + page_bytes);
            other.memory = mmap(nullptr, ring_bytes_ + page_bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED, other.descriptor, 0);
            if (other.memory == MAP_FAILED) {
                other.memory = nullptr;
                return fail(other_error, "mapping events again: %s", std::strerror(errno));
            }
        }
    }
}

void PerfEvents::take(const Ring& ring) {
    auto* control = static_cast<perf_event_mmap_page*>(ring.memory);
    const char* data = static_cast<const char*>(ring.memory) + page_bytes;
    // The acquire pairs with the kernel's release of the data up to there.
    const std::uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    std::uint64_t tail = control->data_tail;
    while (tail < head) {
        const std::size_t at = tail & (ring_bytes_ - 1);
        perf_event_header header; // never cut in two: records are multiples of 8 bytes
        std::memcpy(&header, data + at, sizeof header);
        const std::size_t offset = pool_.size();
        const std::size_t to_end = std::min<std::size_t>(header.size, ring_bytes_ - at);
        pool_.insert(pool_.end(), data + at, data + at + to_end);
        pool_.insert(pool_.end(), data, data + (header.size - to_end));
        tail += header.size;
        const char* record = pool_.data() + offset;
        if (header.type == PERF_RECORD_LOST) {
            std::uint64_t count = 0;
            std::memcpy(&count, record + sizeof header + 8, sizeof count);
            lost_ += count;
            pool_.resize(offset);
            continue;
        }
        // A sample begins with identifier, instruction, thread, time; others end with thread, time,
        // identifier.
        std::uint64_t time_ns = 0;
        const std::size_t place =
            header.type == PERF_RECORD_SAMPLE ? sizeof header + 24 : header.size - 16U;
        std::memcpy(&time_ns, record + place, sizeof time_ns);
        waiting_.push_back({time_ns, offset});
    }
    // The release pairs with the kernel's read of the free space.
    __atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
}

// The kernel reports the losses of a full ring before the next event in it. If no event follows,
// the ring does not tell, so the descriptors are read.
void PerfEvents::ask_for_lost() {
    std::uint64_t lost = 0;
    const auto ask = [&lost](int descriptor) {
        std::uint64_t values[2] = {}; // the event's count and what of it was lost
        lost += read(descriptor, values, sizeof values) == sizeof values ? values[1] : 0;
    };
    for (const Ring& ring : rings_) {
        ask(ring.descriptor);
    }
    for (const int descriptor : descriptors_) {
        if (std::find(clocks_.begin(), clocks_.end(), descriptor) == clocks_.end()) {
            ask(descriptor);
        }
    }
    lost_ = std::max(lost_, lost);
}

// Consumes the edges, so that their descriptors are no longer ready.
void PerfEvents::take_edges() const {
    epoll_event ready[16];
    while (epoll_wait(epoll_, ready, std::size(ready), 0) == std::size(ready)) {
    }
}

const std::vector<PerfEvent>& PerfEvents::collect(bool all) {
    take_edges(); // before the rings are read: what comes meanwhile is another edge
    const std::uint64_t now = monotonic_ns();
    for (const Ring& ring : rings_) {
        take(ring);
    }
    if (all && tells_lost_) {
        ask_for_lost();
    }
    const std::uint64_t horizon = all ? UINT64_MAX : now - settled_ns;
    const auto later =
        std::stable_partition(waiting_.begin(), waiting_.end(),
                              [horizon](const Record& record) { return record.time_ns < horizon; });
    std::stable_sort(waiting_.begin(), later, [](const Record& one, const Record& other) {
        return one.time_ns < other.time_ns;
    });
    events_.clear();
    for (auto record = waiting_.begin(); record != later; ++record) {
        decode(pool_.data() + record->offset);
    }
    // Waiting records move to a new pool, and returned ones stay where they are.
    spent_pool_.swap(pool_);
    pool_.clear();
    waiting_.erase(waiting_.begin(), later);
    for (Record& record : waiting_) {
        const char* data = spent_pool_.data() + record.offset;
        perf_event_header header;
        std::memcpy(&header, data, sizeof header);
        record.offset = pool_.size();
        pool_.insert(pool_.end(), data, data + header.size);
    }
    return events_;
}

void PerfEvents::decode(const char* record) {
    perf_event_header header;
    std::memcpy(&header, record, sizeof header);
    const char* data = record + sizeof header;
    const char* trailer = record + header.size - 24; // tid, time, identifier
    PerfEvent event;
    if (header.type != PERF_RECORD_SAMPLE) {
        const char* place = trailer;
        event.pid = take_value<std::uint32_t>(place);
        event.tid = take_value<std::uint32_t>(place);
        event.time_ns = take_value<std::uint64_t>(place);
    }
    switch (header.type) {
    case PERF_RECORD_SAMPLE:
        event.in_kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
        if (!decode_fault(data, header.size - sizeof header, event)) {
            return;
        }
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        event.kind = header.type == PERF_RECORD_FORK ? PerfEvent::began : PerfEvent::ended;
        event.pid = take_value<std::uint32_t>(data);
        event.parent_pid = take_value<std::uint32_t>(data);
        event.tid = take_value<std::uint32_t>(data);
        event.parent_tid = take_value<std::uint32_t>(data);
        break;
    case PERF_RECORD_COMM:
        if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0) {
            return;
        }
        event.kind = PerfEvent::executed;
        event.pid = take_value<std::uint32_t>(data);
        event.tid = take_value<std::uint32_t>(data);
        event.path = data;
        break;
    case PERF_RECORD_MMAP2:
        event.kind = PerfEvent::mapped;
        data += 8; // pid, tid
        event.address = take_value<std::uint64_t>(data);
        event.bytes = take_value<std::uint64_t>(data);
        event.file_offset = take_value<std::uint64_t>(data);
        if ((header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
            event.build_id_bytes = static_cast<std::uint8_t>(
                std::min<std::size_t>(static_cast<std::uint8_t>(data[0]), sizeof event.build_id));
            std::memcpy(event.build_id, data + 4, event.build_id_bytes);
        }
        event.path = data + 24 + 8; // device or build id, protection and flags
        break;
    case PERF_RECORD_READ:
        event.kind = PerfEvent::time;
        event.pid = take_value<std::uint32_t>(data);
        event.tid = take_value<std::uint32_t>(data);
        event.cpu_ns = take_value<std::uint64_t>(data);
        told_cpu_ns_ += event.cpu_ns;
        break;
    default:
        return;
    }
    events_.push_back(event);
}

std::uint64_t PerfEvents::first_thread_ns() const {
    std::uint64_t all = 0;
    for (const int clock : clocks_) {
        std::uint64_t value = 0;
        all += read(clock, &value, sizeof value) == sizeof value ? value : 0;
    }
    return all > told_cpu_ns_ ? all - told_cpu_ns_ : 0;
}

bool PerfEvents::decode_calls(const char*& data, const char* end, PerfEvent& event) {
    auto calls = take_value<std::uint64_t>(data);
    if (calls > static_cast<std::uint64_t>(end - data) / 8) {
        return false;
    }
    // Context marks (PERF_CONTEXT_USER) are no calls.
    event.calls = reinterpret_cast<const std::uint64_t*>(data);
    data += calls * 8;
    while (calls > 0 && event.calls[0] >= static_cast<std::uint64_t>(PERF_CONTEXT_MAX)) {
        ++event.calls;
        --calls;
    }
    event.call_count = static_cast<std::uint32_t>(calls);
    return true;
}

bool PerfEvents::decode_fault(const char* data, std::size_t bytes, PerfEvent& event) const {
    const char* end = data + bytes;
    event.kind = PerfEvent::fault;
    const auto identifier = take_value<std::uint64_t>(data);
    event.major = std::find(major_ids_.begin(), major_ids_.end(), identifier) != major_ids_.end();
    event.instruction = take_value<std::uint64_t>(data);
    event.pid = take_value<std::uint32_t>(data);
    event.tid = take_value<std::uint32_t>(data);
    event.time_ns = take_value<std::uint64_t>(data);
    event.address = take_value<std::uint64_t>(data);
    if (!options_.brief && !decode_calls(data, end, event)) {
        return false;
    }
    const auto abi = take_value<std::uint64_t>(data);
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
        event.rsi = take_value<std::uint64_t>(data);
        event.rdi = take_value<std::uint64_t>(data);
        event.rsp = take_value<std::uint64_t>(data);
    }
    const auto stack = options_.brief ? 0 : take_value<std::uint64_t>(data);
    if (stack > 0) {
        const char* top = data;
        data += stack;
        if (take_value<std::uint64_t>(data) >= 8) { // how much of it is there
            event.top_of_stack = take_value<std::uint64_t>(top);
        }
    }
    if (physical_) {
        event.physical = take_value<std::uint64_t>(data);
    }
    if (page_size_) {
        event.bytes = take_value<std::uint64_t>(data);
    }
    return data <= end;
}

} // namespace warren::locality
