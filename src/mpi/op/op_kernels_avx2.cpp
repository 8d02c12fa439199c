#if defined(__x86_64__)

#include "mpi/op/op_kernels.hpp"
#include "mpi/op/op_loops.hpp"

namespace warren::coll {

Kernel kernel_of_avx2(OpKind kind, Element element) {
    return loop_of(kind, element);
}

} // namespace warren::coll

#endif
