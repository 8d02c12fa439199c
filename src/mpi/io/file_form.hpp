// FileForms: datatypes as a file of a representation has them. Each predefined type takes as many
// bytes as the representation says; displacements that a constructor was given in bytes stay, and
// those in elements become multiples of the element's extent in the file (MPI 5.0, 14.5).
//
// Thread rule: under the rank's lock, which the program's extent function runs without.
#pragma once

#include <list>

#include "base/error.hpp"
#include "mpi/datatype/construct.hpp"
#include "mpi/datatype/signature.hpp"
#include "mpi/io/representation.hpp"

namespace warren::io {

class FileForms {
  public:
    FileForms(const Representation& representation, RankLock& lock)
        : representation_(representation), lock_(lock) {}

    // Bytes of one element's data, and its extent, in the file.
    Error bytes_of(const datatype::Datatype& type, MPI_Count& bytes);
    Error extent_of(const datatype::Datatype& type, MPI_Count& extent);

    // The type in the file: made in `draft`, or the type itself if that is the same.
    Error layout_of(const datatype::Datatype& type, datatype::Draft& draft,
                    const datatype::Datatype*& layout);

  private:
    Error bytes_of_basic(std::uint8_t basic, MPI_Count& bytes);
    Error extent_of_basic(std::uint8_t basic, MPI_Count& extent);
    Error rebuild_basic(const datatype::Datatype& type, datatype::Draft& draft);
    Error bytes_of(const datatype::Signature& signature, MPI_Count& bytes);
    Error rebuild(const datatype::Datatype& type, datatype::Draft& draft);
    Error rebuild_array(const datatype::Derived& derived, const datatype::Datatype& element,
                        datatype::Draft& draft);
    Error form_of(const datatype::Datatype& type, const datatype::Datatype*& form);

    const Representation& representation_;
    RankLock& lock_;
    std::list<datatype::Draft> parts_;
};

} // namespace warren::io
