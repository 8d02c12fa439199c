// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY of MPICH's ABI: variables of the library, whose values are
// addresses that nothing else has. Thread rule: constants.
#pragma once

namespace warren::foreign {

extern int unweighted;
extern int weights_empty;

template <typename Int>
Int* core_weights(Int* weights) {
    return weights == &unweighted      ? MPI_UNWEIGHTED
           : weights == &weights_empty ? MPI_WEIGHTS_EMPTY
                                       : weights;
}

} // namespace warren::foreign
