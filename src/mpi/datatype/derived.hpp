// Derived: what a derived datatype has beyond the numbers in Datatype, and extras of predefined
// ones.
//
// Thread rule: layout and signature never change; the rest under the rank's lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/layout.hpp"
#include "mpi/datatype/signature.hpp"

namespace warren::datatype {

class TypeTable;

// A type's attributes: data that a later room attaches to the type and that ends with it. Calls
// hold the rank's lock, and release it while functions of the program run.
struct Attachment {
    virtual ~Attachment() = default;
    // The data that a duplicate of the type gets (MPI_Type_dup).
    virtual Error copy(MPI_Datatype old_handle, std::unique_ptr<Attachment>& copied) = 0;
    // The program frees the type, whose handle is still valid. After an error it stays.
    virtual Error clear(MPI_Datatype handle) = 0;
};

// How a type was constructed (MPI_Type_get_contents). The types are kept alive by it.
struct Contents {
    int combiner = MPI_COMBINER_NAMED;
    bool large = false; // made by a procedure with MPI_Count arguments
    std::vector<int> integers;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Count> counts;
    std::vector<const Datatype*> types;
};

// Name and attributes, which predefined types may be given too.
struct Extras {
    bool named = false; // a predefined type may be renamed, also to ""
    std::string name;
    std::unique_ptr<Attachment> attachment;
};

struct Derived {
    std::shared_ptr<const Body> layout;         // null: contiguous
    std::shared_ptr<const Signature> signature; // null: Datatype::basic tells it all
    Contents contents;
    Extras extras;
    TypeTable* table = nullptr;
};

} // namespace warren::datatype
