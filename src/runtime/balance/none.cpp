#include "runtime/balance/balancer.hpp"

namespace warren::balance {

Placement place_none(const Matrix& matrix) {
    return matrix.placement;
}

} // namespace warren::balance
