// AttributeNumbers: the attributes' values that Fortran set. C gets the address of such a number,
// and it must find the same one each time (MPI chapter 19.3, attributes), so the address is the
// value that an attribute stores. Values that C set are in no table: they are addresses of its own.
//
// Thread rule: under the rank's lock. Invariant: a number lives while an attribute stores its
// address, and from make() until the first one does or free_unused().
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "mpi.h"

namespace warren::comm {

class AttributeNumbers {
  public:
    // The address of a new number.
    MPI_Aint* make(MPI_Aint number);
    // The number at an attribute's value; null if C set the value.
    MPI_Aint* find(void* value);

    // An attribute stores the value from now on, or no longer. Other addresses than those of
    // numbers change nothing.
    void retain(void* value);
    void release(void* value);
    // Frees a number if no attribute stores it.
    void free_unused(void* value);

  private:
    struct Number {
        std::unique_ptr<MPI_Aint> place;
        std::uint32_t attributes = 0;
    };

    std::unordered_map<void*, Number> numbers_; // by address
};

} // namespace warren::comm
