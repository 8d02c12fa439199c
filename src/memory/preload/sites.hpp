// Sites: which rules fit the place that allocates, by its return address.
//
// What an address means is found out once: the module that has it, then, in the module's symbols
// and debugging information, the function and the source file. A module is read when its first
// address comes, and what is kept of it are the ranges of addresses that some rule's patterns fit;
// an address is kept with the rules that fit it, in a table without locks. So an allocation costs a
// hash and a compare.
//
// The place is the function that calls malloc (or operator new), as the compiler made it: a
// function that was inlined counts as the one around it, and who calls a wrapper of malloc is not
// looked for. Where a library is closed and another one opened at its address, places of the first
// may stand for the second's.
//
// Thread rule: any thread at any time. Nothing is allocated, and no lock of the loader's is taken,
// which the caller may hold or wait for.
#pragma once

#include <cstdint>

#include "memory/preload/plan.hpp"

namespace warren::memory {

// Before the first look-up; the plan stays.
void start_sites(const Plan& plan);

// A bit for each rule of the plan whose site fits the address.
std::uint64_t rules_of_site(const void* address);

// Around fork.
void lock_sites();
void unlock_sites();

} // namespace warren::memory
