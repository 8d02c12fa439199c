// Call stacks of the recorded program, found by its unwind tables. Each is kept once, in the tree
// of places of stacks.rec.
//
// Unwinding costs microseconds, and programs allocate from the same places repeatedly. So a stack
// is kept with the addresses that held its return addresses. A call from the same place and depth
// that finds them all unchanged has the same stack, at the cost of as many loads. Thread rule:
// find() and remember() under the caller's lock, unwind() without.
#pragma once

#include <cstdint>

#include "analyser/tracker/log.hpp"

namespace warren::locality::tracker {

constexpr std::uint32_t deepest_stack = 64;

// The place of a call: the return address, and the stack pointer after the return.
struct Caller {
    const void* address;
    const void* frame;
};
#define WARREN_CALLER                                                                              \
    (::warren::locality::tracker::Caller{__builtin_return_address(0), __builtin_dwarf_cfa()})

struct Unwound {
    std::uint32_t depth;
    bool slots_known;                          // every address was where it is expected
    std::uint64_t addresses[deepest_stack];    // innermost first
    const std::uint64_t* slots[deepest_stack]; // where they are in the stack
};

// The calls that led to `caller`, at most `depth` of them.
void unwind(const Caller& caller, std::uint32_t depth, Unwound& found);

class CallStacks {
  public:
    // The number of the stack if it is known and unchanged, else no_stack.
    std::uint32_t find(const Caller& caller, std::uint32_t tid) const;
    std::uint32_t remember(const Caller& caller, std::uint32_t tid, const Unwound& found, Log& log,
                           LogFolder& folder);

  private:
    struct Known {
        const void* address;
        const void* frame;
        std::uint32_t tid;
        std::uint32_t number;
        std::uint32_t depth;
        std::uint32_t reserved;
        std::uint64_t addresses[deepest_stack];
        const std::uint64_t* slots[deepest_stack];
    };
    struct Place {
        std::uint64_t address;
        std::uint32_t caller;
        std::uint32_t number; // 0: free
    };
    static constexpr std::uint64_t known_entries = 512;

    Known* entry_of(const Caller& caller, std::uint32_t tid) const;
    Place* place_of(std::uint64_t address, std::uint32_t caller) const;
    bool grow();

    Known* known_;
    Place* places_; // a hash table
    std::uint64_t capacity_;
    std::uint64_t used_;
};

} // namespace warren::locality::tracker
