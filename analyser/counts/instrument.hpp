// The code that counts: inserted into the program's basic blocks by DynamoRIO.
//
// Accesses of a block whose addresses differ by constants (of a structure, of neighbours in an
// array, pushes) are one site: one check that all of them lie in one unit, and one subtraction per
// direction. What is rare, a site that crosses units or a borrow (counters.hpp), goes by a stub to
// warren_counts_event on a stack of its own. Instructions that repeat themselves (rep movs, stos,
// lods) are counted by multiplication before they run; those that end early (rep cmps, scas) and
// gathers and scatters are first expanded into loops and single accesses.
//
// Blocks that repeat themselves with addresses that move by constants, as loops over arrays do,
// have one check for many turns (loops.hpp), but in mode sample, with communication, and for cache
// lines.
//
// What counts as an access: every memory operand that an instruction reads or writes, explicit or
// not (push, call, ret, xsave), with its whole size; read-modify-write is one read and one write.
// Not counted: prefetches and flushes of cache lines, what the kernel does in system calls. A
// masked vector instruction counts as if its mask were full; of a gather or scatter only what is
// done. An access that faults counts, and so does what is behind it in its site; if a handler mends
// that and returns, both count once more.
//
// In mode sample what runs often, in traces, is there twice (dual_code.hpp), but for gathers and
// scatters, where outside bursts sites are jumped over; what runs seldom is short (seldom.hpp).
// Rows (rep movs, stos, lods, and here cmps and scas, counted behind them) may have any length, so
// bursts would meet or miss too much at once: all are counted exactly, by a call, which costs a
// fraction of a microsecond.
//
// Thread rule: start() and stop() once per process; the rest is called by DynamoRIO.
#pragma once

#include <cstdint>

#include "analyser/counts/counters.hpp"

namespace warren::locality::counts {

// Gives inline code what it needs of the calling thread, in DynamoRIO's thread-local storage, with
// a stack for events that ends at a multiple of 16. Returns where its instructions are counted; in
// mode sample the place of its budget (bursts.hpp).
std::uint64_t* set_thread(ThreadCounters& thread, void* stack_end);

// Before the thread counts what inline code doesn't.
void program_stack_is(ThreadCounters& thread, std::uint64_t pointer);

// Of the program's threads any: accesses by code of [begin, end) are not counted, and its
// instructions neither, unless they are to be (in mode sample).
void leave_alone(std::uint64_t begin, std::uint64_t end, bool count_instructions = false);

bool start_instrumentation(const Layout& layout, bool bursts);
void stop_instrumentation();

} // namespace warren::locality::counts
