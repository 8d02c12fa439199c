// What generated code names when it goes by the stub: sites, and loops whose turns are counted
// together (turns.hpp). Blocks are built again and again, of the same instructions: what is equal
// is there once. They are never freed. Thread rule: start_sites() once per process, the rest any.
#pragma once

#include <cstdint>

#include "analyser/counts/block_accesses.hpp"
#include "analyser/counts/turns.hpp"
#include "dr_api.h"

namespace warren::locality::counts {

void start_sites();

const Site* site_of(const Group& group);

// `wanted`, which begins at `begin`, or the one that is like it.
Loop* known_loop(app_pc begin, const Loop& wanted);

} // namespace warren::locality::counts
