// Sites: the rules that fit the place that allocates, by its return address.
//
// An address is looked up once: first its module, then the function and the source file, from the
// module's symbols and debugging information. A module is read when its first address comes. The
// ranges of addresses that some rule's patterns fit are kept. Each address is kept with its rules
// in a table without locks, so an allocation costs a hash and a comparison.
//
// The place is the function that calls malloc (or operator new), as the compiler made it. An
// inlined function counts as the one around it, and callers of a malloc wrapper are not looked for.
// When a library is closed and another opened at its address, places of the first may stand for the
// second's.
//
// Thread rule: any thread at any time. Nothing is allocated. No lock of the loader's is taken, as
// the caller may hold it or wait for it.
#pragma once

#include <cstdint>

#include "memory/preload/plan.hpp"

namespace warren::memory {

// Prepares look-ups; called before the first. The plan stays.
void start_sites(const Plan& plan);

// A bit for each rule of the plan whose site fits the address.
std::uint64_t rules_of_site(const void* address);

// A fork holds the lock of the sites.
void lock_sites();
void unlock_sites();

} // namespace warren::memory
