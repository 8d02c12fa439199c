// Groups compared with lists of ranks.
#pragma once

#include "program.hpp"

namespace programs {

// Fails unless the group holds these ranks of the base, in this order.
void compare_group(Program& program, MPI_Group group, const Ranks& expected,
                   const std::string& what);

// A group of `wanted` (ranks of the base, all in `whole`), made of the group of `whole` in one of
// many ways.
MPI_Group make_group(Program& program, MPI_Group group, const Ranks& whole, const Ranks& wanted);

} // namespace programs
