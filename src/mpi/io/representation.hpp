// Representation: how data is written in a file (MPI 5.0, 14.5): "native" and "internal" as in
// memory, "external32" as all MPI libraries read it, others as the program's functions say
// (MPI_Register_datarep).
//
// Thread rule: under the rank's lock, which the program's functions run without; constant once
// registered, and there until the rank's context ends.
#pragma once

#include <cstddef>
#include <list>
#include <string>

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/datatype/buffer.hpp"
#include "mpi/rank/lock.hpp"

namespace warren::io {

struct Representation {
    enum class Kind : std::uint8_t { native, external32, registered };

    std::string name;
    Kind kind = Kind::native;
    MPI_Datarep_conversion_function* read = nullptr;
    MPI_Datarep_conversion_function* write = nullptr;
    MPI_Datarep_conversion_function_c* read_c = nullptr;
    MPI_Datarep_conversion_function_c* write_c = nullptr;
    MPI_Datarep_extent_function* extent = nullptr;
    void* extra_state = nullptr;

    // Data in the file may have other sizes than in memory.
    bool converts() const { return kind != Kind::native; }
    bool converts_writes() const {
        return kind == Kind::external32 || write != nullptr || write_c != nullptr;
    }
    bool converts_reads() const {
        return kind == Kind::external32 || read != nullptr || read_c != nullptr;
    }

    // A registered one without functions: elements are as in memory, but lie as far apart as its
    // extent function says.
    bool spaces_only() const {
        return kind == Kind::registered && !converts_writes() && !converts_reads();
    }

    // The bytes of `memory` as they are in the file, of which there is room for all at `file`; and
    // memory from `bytes` of the file, which has an element of memory in item_bytes: external32's
    // basic elements that are whole, other representations' whole elements of memory. `filled`:
    // bytes of memory.
    Error to_file(const datatype::Buffer& memory, std::byte* file, RankLock& lock) const;
    Error from_file(const std::byte* file, MPI_Count bytes, MPI_Count item_bytes,
                    const datatype::Buffer& memory, RankLock& lock, MPI_Count& filled) const;
};

class Representations {
  public:
    Representations();
    // Null: there is none of that name.
    const Representation* find(const char* name) const;
    // MPI_ERR_DUP_DATAREP: there is one of that name.
    Error add(const Representation& representation);

  private:
    std::list<Representation> known_; // whose addresses stay
};

} // namespace warren::io
