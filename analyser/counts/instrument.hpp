// The code that counts: inserted into the program's basic blocks by DynamoRIO.
//
// Accesses of a block whose addresses differ by constants (of a structure, of neighbours in an
// array, pushes) are one site, with one check that all of them lie in one unit, and one subtraction
// per direction. Rare events, a site that crosses units or a borrow (counters.hpp), call
// warren_counts_event by a stub, on a stack of its own. Instructions that repeat themselves (rep
// movs, stos, lods) are counted by multiplication before they run. Those that may end early (rep
// cmps, scas), gathers and scatters are first expanded into loops and single accesses.
//
// Blocks that repeat themselves with addresses that move by constants, as loops over arrays do,
// have one check for many turns (loops.hpp). Mode sample, communication and units of a cache line
// exclude this.
//
// Every memory operand that an instruction reads or writes counts as an access, explicit or not
// (push, call, ret, xsave), with its whole size. Read-modify-write is one read and one write.
// Prefetches, flushes of cache lines and the kernel's accesses in system calls are not counted. A
// masked vector instruction counts as if its mask were full; a gather or scatter counts the
// elements that it accesses. An access that faults counts, and so do later ones in its site; if a
// handler repairs the fault and returns, both count once more.
//
// In mode sample code in traces, which runs often, becomes dual code (dual_code.hpp), except
// gathers and scatters, whose sites are jumped over outside bursts. Code that runs seldom is short
// (seldom.hpp). Rows (rep movs, stos, lods, and here cmps and scas, counted behind them) may have
// any length, so bursts would meet or miss too much at once. All rows are counted exactly, by a
// call that costs a fraction of a microsecond.
//
// Thread rule: start() and stop() once per process; the rest is called by DynamoRIO.
#pragma once

#include <cstdint>

#include "analyser/counts/counters.hpp"

namespace warren::locality::counts {

// Puts what inline code needs of the calling thread into DynamoRIO's thread-local storage, with a
// stack for events that ends at a multiple of 16. Returns where the thread's instructions are
// counted; in mode sample the place of its budget (bursts.hpp).
std::uint64_t* set_thread(ThreadCounters& thread, void* stack_end);

// Sets the program's stack pointer. Call before the thread counts what inline code doesn't.
void program_stack_is(ThreadCounters& thread, std::uint64_t pointer);

// Accesses by code in [begin, end) are not counted, in any thread. Its instructions are counted
// only if `count_instructions` is set (mode sample).
void leave_alone(std::uint64_t begin, std::uint64_t end, bool count_instructions = false);

bool start_instrumentation(const Layout& layout, bool bursts);
void stop_instrumentation();

} // namespace warren::locality::counts
