#include "coll/op_kernels.hpp"

#include "coll/op_loops.hpp"

namespace warren::coll {

Kernel kernel_of_baseline(OpKind kind, Element element) {
    return loop_of(kind, element);
}

bool has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

Kernel kernel_of(OpKind kind, Element element) {
#if defined(__x86_64__)
    if (has_avx2()) {
        return kernel_of_avx2(kind, element);
    }
#endif
    return loop_of(kind, element);
}

} // namespace warren::coll
