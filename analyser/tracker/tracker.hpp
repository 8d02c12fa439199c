// The tracker: what the library that recorded programs load first knows of its process, and how it
// writes that down.
//
// Its state lies in memory that a forked child finds empty (MADV_WIPEONFORK), however it was
// forked: the child then makes itself known to the recorder like a new process, and never writes
// its parent's files. Whoever records is inside the tracker: what happens meanwhile in the same
// thread (a signal handler, the C library's own allocations) isn't recorded. Thread rule: any
// thread; one lock for all, held for nanoseconds, except while a window of a file is mapped.
#pragma once

#include <cstdint>

#include "analyser/recorder/format.hpp"
#include "analyser/tracker/call_stacks.hpp"

namespace warren::locality::tracker {

// Heap blocks from this size on are recorded; the first call in a process asks the recorder.
std::uint64_t threshold();

// Whether the calling thread is inside the tracker, and marks that it is.
class Inside {
  public:
    Inside();
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    explicit operator bool() const { return mine_; } // false: it was already, record nothing

  private:
    bool mine_;
};

std::uint64_t now_ns();

// A piece of memory begins its life. `time_ns` is from before the call that made it. `filled`: the
// call has written it (calloc), which is then part of its life.
void record_begin(AllocationRecord::Kind kind, const void* address, std::uint64_t bytes,
                  std::uint64_t time_ns, const Caller& caller, const void* previous = nullptr,
                  bool filled = false);

// It ends; to be told before others can get the memory. Bytes 0: of what began at the address.
void record_end(AllocationRecord::Kind kind, const void* address, std::uint64_t bytes);

void record_discard(const void* address, std::uint64_t bytes);
// No record: the kernel is about to take the pages of what has ended, for those who count in the
// program's own code, and don't see its system calls.
void tell_gone(const void* address, std::uint64_t bytes);

// A system call has filled a range. Ranges that can't have placed a page, or have been told since
// memory was last freed, are left out.
void record_fill(const void* address, std::uint64_t bytes, const Caller& caller);

void record_phase(PhaseRecord::Event event, std::int32_t level, const char* name);
void record_name(const void* address, std::uint64_t bytes, const char* name);

// The calling thread's stack. Told once per thread, and by the child of a fork for its only one.
void record_own_stack(std::uint64_t begin, std::uint64_t bytes);
void record_own_stack_end();

} // namespace warren::locality::tracker
