// Weights of the standard ABI, for its Fortran library (fortran/fortran_constants.hpp). Thread
// rule: constants.
#pragma once

namespace warren::foreign {

template <typename Int>
Int* core_weights(Int* weights) {
    return weights;
}

} // namespace warren::foreign
