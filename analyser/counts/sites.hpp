// Sites, and loops whose turns are counted together (turns.hpp), which generated code names when it
// calls the stub. Blocks are built again and again of the same instructions, so equal sites and
// loops exist once. They are never freed. Thread rule: start_sites() once per process, the rest
// any.
#pragma once

#include <cstdint>

#include "analyser/counts/block_accesses.hpp"
#include "analyser/counts/turns.hpp"
#include "dr_api.h"

namespace warren::locality::counts {

void start_sites();

const Site* site_of(const Group& group);

// The known loop at `begin` that equals `wanted`, or a new one.
Loop* known_loop(app_pc begin, const Loop& wanted);

} // namespace warren::locality::counts
