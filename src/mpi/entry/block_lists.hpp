// Lists of blocks: what the arrays of counts, displacements and datatypes of the program describe,
// with the checks of their elements. Thread rule: under the rank's lock.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "mpi/coll/blocks.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/count_array.hpp"

namespace warren::mpi {

// counts[index] is `value`, which is negative.
Error negative_count(const char* counts, int index, MPI_Count value);

// `number` blocks of one datatype; displacements in elements. `name` is the counts'.
Error list_blocks(int number, void* base, const CountArray& counts, const CountArray& displs,
                  const datatype::Datatype& type, const char* name,
                  std::vector<message::Buffer>& blocks);

// Lists blocks with displacements in bytes and a datatype each, which the steps keep. `name` is the
// datatypes' argument.
Error list_typed_blocks(Context& context, coll::Steps& steps, int number, void* base,
                        const CountArray& counts, const CountArray& displs,
                        const MPI_Datatype types[], const char* name,
                        std::vector<message::Buffer>& blocks);

} // namespace warren::mpi
