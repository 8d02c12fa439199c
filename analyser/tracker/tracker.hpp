// The tracker: the library that recorded programs load first. It records its process's allocations,
// phases and names.
//
// Its state lies in memory that any forked child finds empty (MADV_WIPEONFORK). The child then
// connects to the recorder like a new process, and never writes its parent's files. A thread that
// records is inside the tracker: later calls in it (by a signal handler, or the C library's own
// allocations) aren't recorded. Thread rule: any thread; one lock for all, held for nanoseconds,
// except while a window of a file is mapped.
#pragma once

#include <cstdint>

#include "analyser/recorder/format.hpp"
#include "analyser/tracker/call_stacks.hpp"

namespace warren::locality::tracker {

// Heap blocks of at least this size are recorded. The first call in a process asks the recorder.
std::uint64_t threshold();

// Marks the calling thread as inside the tracker for a scope.
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

// Records the beginning of a block's life. `time_ns` is from before the call that made it.
// `filled`: the call has also written it (calloc), as a part of its life.
void record_begin(AllocationRecord::Kind kind, const void* address, std::uint64_t bytes,
                  std::uint64_t time_ns, const Caller& caller, const void* previous = nullptr,
                  bool filled = false);

// Records the end of a block's life. Call before other blocks can get the memory. Bytes 0: what
// began at the address ends.
void record_end(AllocationRecord::Kind kind, const void* address, std::uint64_t bytes);

void record_discard(const void* address, std::uint64_t bytes);
// Writes no record: tells a listener, which doesn't see system calls, that the kernel is about to
// take the pages of an ended block.
void tell_gone(const void* address, std::uint64_t bytes);

// Records that a system call has filled a range. Left out are ranges that can't have placed a page,
// and ranges that were recorded since memory was last freed.
void record_fill(const void* address, std::uint64_t bytes, const Caller& caller);

void record_phase(PhaseRecord::Event event, std::int32_t level, const char* name);
void record_name(const void* address, std::uint64_t bytes, const char* name);

// Records the calling thread's stack: once per thread, and by the child of a fork for its only one.
void record_own_stack(std::uint64_t begin, std::uint64_t bytes);
void record_own_stack_end();

} // namespace warren::locality::tracker
