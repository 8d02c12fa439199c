// CountArray: an array of counts or displacements as the program passed it, int in the standard's
// original procedures, 64 bits wide in the large-count ones. Whoever reads it sees MPI_Counts.
// Thread rule: a view, valid during the call; nonblocking operations copy what they need.
#pragma once

#include <type_traits>

#include "mpi.h"

namespace warren::mpi {

class CountArray {
  public:
    constexpr CountArray() = default;
    constexpr CountArray(const int* values) : values_(values), wide_(false) {}
    constexpr CountArray(const MPI_Count* values) : values_(values), wide_(true) {}
    // MPI_Aint, where it is another type than MPI_Count.
    template <typename Integer>
    requires(std::is_integral_v<Integer> && sizeof(Integer) == sizeof(MPI_Count) &&
             !std::is_same_v<Integer, MPI_Count>) CountArray(const Integer* values)
        : values_(values), wide_(true) {}

    MPI_Count operator[](MPI_Count index) const {
        return wide_ ? static_cast<const MPI_Count*>(values_)[index]
                     : static_cast<const int*>(values_)[index];
    }
    bool null() const { return values_ == nullptr; }
    bool wide() const { return wide_; }
    const void* data() const { return values_; }

  private:
    const void* values_ = nullptr;
    bool wide_ = false;
};

} // namespace warren::mpi
