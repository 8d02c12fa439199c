// The kernel's events of a process and all its descendants: page faults, with address, thread,
// instruction and calls; threads and processes that begin and end; programs that are executed; code
// that is mapped; the processor time of each thread that ends.
//
// There is one ring of events per processor (perf_event_open, inherited by children). No privileges
// are needed if kernel.perf_event_paranoid is at most 2. Faults are reported after the kernel has
// served them: failed ones don't appear, and the size of the page is known. A process's events come
// by several rings. collect() returns, in order of time, those that are old enough for all rings to
// have delivered earlier ones. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/error.hpp"

struct perf_event_attr;

namespace warren::locality {

struct PerfEvent {
    enum Kind : std::uint8_t { fault, began, ended, executed, mapped, time };
    Kind kind = fault;
    bool in_kernel = false; // fault: within a system call
    bool major = false;     // fault: something had to be read
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint32_t parent_pid = 0; // began
    std::uint32_t parent_tid = 0; // began
    std::uint64_t time_ns = 0;
    std::uint64_t address = 0;     // fault; mapped: begin
    std::uint64_t bytes = 0;       // fault: size of the page, 0 unknown; mapped: length
    std::uint64_t instruction = 0; // fault
    std::uint64_t physical = 0;    // fault; 0: unknown
    std::uint64_t file_offset = 0; // mapped
    std::uint64_t cpu_ns = 0;      // time: that the thread has had on one processor; they add up
    // Registers of the program, 0 if unknown, and the word on top of its stack.
    std::uint64_t rsi = 0, rdi = 0, rsp = 0, top_of_stack = 0;
    const std::uint64_t* calls = nullptr; // fault: the user's instruction, then return addresses
    std::uint32_t call_count = 0;
    const char* path = nullptr; // mapped: the file; executed: the thread's name
    std::uint8_t build_id_bytes = 0;
    std::uint8_t build_id[20] = {};
};

struct PerfOptions {
    std::uint32_t calls = 32; // at most, per fault
    std::size_t ring_bytes = std::size_t{2}
                             << 20; // per processor; less where the system gives less
    // Faults have thread, page, time and registers only. Calls, stack and frame each take the
    // kernel as long as the rest.
    bool brief = false;
};

class PerfEvents {
  public:
    PerfEvents() = default;
    PerfEvents(const PerfEvents&) = delete;
    PerfEvents& operator=(const PerfEvents&) = delete;
    ~PerfEvents();

    // Follows `pid` and its descendants from its next execve on. The error says what is missing and
    // how to get it.
    Error open(pid_t pid, const PerfOptions& options);

    // Descriptor of an epoll. It becomes readable each time that a quarter of a ring has been
    // filled or a followed thread has ended, until it is waited for or collect() is called. Fewer
    // events don't make it readable.
    int descriptor() const { return epoll_; }

    // Waiting events in order of time: those that are old enough, or `all`. Pointers in an event
    // are valid until the next call.
    const std::vector<PerfEvent>& collect(bool all);

    // Processor time of the first thread, which never appears as an event: the rest that is no
    // other thread's. Call after all threads have ended.
    std::uint64_t first_thread_ns() const;

    std::uint64_t lost() const { return lost_; }           // events that found a ring full
    bool sees_kernel() const { return kernel_; }           // faults within system calls, too
    bool sees_physical() const { return physical_; }       // addresses of frames
    std::size_t ring_bytes() const { return ring_bytes_; } // per processor
    std::size_t processors() const { return rings_.size(); }

  private:
    struct Ring {
        void* memory = nullptr;
        int descriptor = -1;
        int processor = 0;
    };
    struct Record {
        std::uint64_t time_ns;
        std::size_t offset; // in pool_
    };

    perf_event_attr attributes_of_faults() const;
    std::uint64_t sample_type() const;
    Error open_processor(pid_t pid, int processor);
    Error open_further(pid_t pid, const Ring& ring);
    Error map_ring(Ring& ring);
    void take_edges() const;
    void take(const Ring& ring);
    void ask_for_lost();
    void decode(const char* data);
    static bool decode_calls(const char*& data, const char* end, PerfEvent& event);
    bool decode_fault(const char* data, std::size_t bytes, PerfEvent& event) const;

    int epoll_ = -1;
    std::vector<Ring> rings_;
    std::vector<int> descriptors_; // of further events, which share the rings
    std::vector<int> clocks_;      // of them, those that count processor time
    std::vector<std::uint64_t> major_ids_;
    std::vector<Record> waiting_;
    std::vector<char> pool_, spent_pool_; // copies of records: those that wait, those handed out
    std::vector<PerfEvent> events_;
    std::uint64_t lost_ = 0;
    std::uint64_t told_cpu_ns_ = 0;
    std::size_t ring_bytes_ = 0;
    PerfOptions options_;
    bool kernel_ = false;
    bool physical_ = false;
    bool page_size_ = false;
    bool build_ids_ = false;
    bool tells_lost_ = false;
};

} // namespace warren::locality
