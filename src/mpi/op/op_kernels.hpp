// The loops of op_loops.hpp, compiled for sets of instructions that not every processor has.
// Their results are equal to the last bit. AVX-512 is left out: gcc 12 uses its fused operations
// for complex products whatever the options say. Memory limits these loops in any case.
#pragma once

#include "mpi/op/op.hpp"

namespace warren::coll {

Kernel kernel_of_baseline(OpKind kind, datatype::Element element);
#if defined(__x86_64__)
Kernel kernel_of_avx2(OpKind kind, datatype::Element element);
#endif

// Instruction sets of this processor, as the compiler's library found out when the program started.
bool has_avx2();

} // namespace warren::coll
