#include "mpi/op/op_kernels.hpp"

#include <array>

#include "base/processor.hpp"
#include "mpi/op/op_loops.hpp"

namespace warren::coll {

bool defined(OpKind kind, Element element) {
    // A bit per kind of element, by kind of operation.
    static const auto table = [] { // not constexpr: UBSan adds what is not constant
        std::array<std::uint64_t, static_cast<std::size_t>(OpKind::user) + 1> bits{};
        for (std::size_t k = 0; k < bits.size(); ++k) {
            for (unsigned e = 0; e <= static_cast<unsigned>(Element::two_float64); ++e) {
                if (loop_of(static_cast<OpKind>(k), static_cast<Element>(e)) != nullptr) {
                    bits[k] |= std::uint64_t{1} << e;
                }
            }
        }
        return bits;
    }();
    return (table[static_cast<std::size_t>(kind)] >> static_cast<unsigned>(element) & 1) != 0;
}

Kernel kernel_of_baseline(OpKind kind, Element element) {
    return loop_of(kind, element);
}

bool has_avx2() {
#if defined(__x86_64__)
    return processor_has_avx2();
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
