// Datatype: what lies where in a program's buffer, and how it goes to and from contiguous bytes.
//
// A datatype is a list of blocks (offset and length, in bytes, in the order of the type map,
// neighbours merged) that repeats every `extent` bytes. Predefined types are constants of the
// library; derived ones live in the rank's table. Thread rule: immutable once committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi.h"

namespace warren::datatype {

struct Block {
    MPI_Count offset;
    MPI_Count bytes;
};

// What an element is to a reduction operation: the machine's type behind the predefined datatypes.
// Derived types have none.
enum class Element : std::uint8_t {
    none,
    int8, int16, int32, int64,
    uint8, uint16, uint32, uint64,
    float32, float64, float_extended,      // float, double, long double
    complex64, complex128, complex_extended,
    boolean,                               // _Bool / bool
    logical8, logical16, logical32, logical64, // Fortran LOGICALs
    byte,                                  // MPI_BYTE, MPI_PACKED
    character,                             // MPI_CHAR, MPI_CHARACTER, MPI_WCHAR: no arithmetic
    float_int, double_int, long_int, int_int, short_int, long_double_int, // MINLOC, MAXLOC pairs
    two_float32, two_float64
};

struct Datatype {
    MPI_Count size = 0;        // bytes of data
    MPI_Count lower_bound = 0;
    MPI_Count extent = 0;
    MPI_Count true_lower_bound = 0;
    MPI_Count true_extent = 0;
    Element element = Element::none; // of a predefined type, or of a derived type's only element kind
    bool committed = false;
    bool predefined = false;
    // One block at offset 0 that fills the extent: any count of it is one piece of memory.
    bool contiguous = false;
    std::uint32_t references = 1;    // the handle, types and requests that use it
    const char* fixed_name = "";     // of a predefined type
    std::vector<Block> blocks;       // empty for contiguous types

    // Copies `count` elements at `base` to contiguous memory, and back. Unpack takes `bytes`, which
    // may end inside an element.
    void pack(const void* base, MPI_Count count, void* packed) const;
    void unpack(const void* packed, MPI_Count bytes, void* base, MPI_Count count) const;
};

// The predefined datatype of a handle below first_handle, or null (MPI_DATATYPE_NULL, no such type).
const Datatype* predefined(MPI_Datatype handle);

} // namespace warren::datatype
