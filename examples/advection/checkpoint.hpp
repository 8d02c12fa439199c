// A checkpoint: the state of all ranks in one file, in the order of the whole grid, whatever the
// number of ranks is. Collective; throws std::runtime_error if the file can't be written or read.
#pragma once

#include <array>
#include <string>

#include "grid.hpp"

namespace advection {

void write_checkpoint(const std::string& file, const double* u, const Grid& grid,
                      const std::array<int, 3>& points);
void read_checkpoint(const std::string& file, double* u, const Grid& grid,
                     const std::array<int, 3>& points);

} // namespace advection
