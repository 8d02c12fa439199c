// external32: packed data in the format that all MPI libraries share (MPI chapter 14.5.2).
//
// Big-endian, IEEE, with the sizes of the standard's table: MPI_LONG has 4 bytes, MPI_WCHAR 2,
// MPI_LONG_DOUBLE 16 with a 15-bit exponent. Where a number is wider here, only its least
// significant bytes are written, and reading extends its sign. There is no padding: a type's data
// is its basic elements in the order of the type map. Thread rule: functions of their arguments
// only. External sizes are at most the sizes here.
#pragma once

#include <cstddef>

#include "mpi.h"

namespace warren::datatype {

struct Datatype;

// Bytes of one element of a type in external32.
MPI_Count external_size(const Datatype& type);

// Copies `count` elements at base to their count * external_size bytes, and back.
void pack_external(const Datatype& type, const void* base, MPI_Count count, std::byte* packed);
void unpack_external(const Datatype& type, const std::byte* packed, void* base, MPI_Count count);
// The basic elements that are whole within `bytes` of external32. Returns how many bytes of data
// they are here.
MPI_Count unpack_external(const Datatype& type, const std::byte* packed, MPI_Count bytes,
                          void* base, MPI_Count count);

} // namespace warren::datatype
