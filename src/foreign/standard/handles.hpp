// Handles of the standard ABI, for its Fortran library: those of the core. An INTEGER of Fortran is
// the lower half of a handle (MPI_Comm_toint). Thread rule: functions of their arguments.
#pragma once

#include <cstdint>

#include "base/handle_table.hpp"
#include "mpi.h"

namespace warren::foreign {

using Comm = MPI_Comm;
using Datatype = MPI_Datatype;
using Group = MPI_Group;
using Info = MPI_Info;
using Errhandler = MPI_Errhandler;
using Op = MPI_Op;
using Request = MPI_Request;
using Session = MPI_Session;
using Message = MPI_Message;
using Win = MPI_Win;
using File = MPI_File;

// Conversions that need no call: predefined handles, and every handle's INTEGER.
inline constexpr bool integers_are_halves = true;

// (What a call has left alone is a null handle to Fortran.)
template <typename Handle, std::uintptr_t null>
struct SameHandle {
    using Core = Handle;
    using Foreign = Handle;

    static Handle core(Handle handle) { return handle; }
    static Handle foreign(Handle handle) {
        return handle != nullptr ? handle : reinterpret_cast<Handle>(null);
    }
};

namespace handle {

using Comm = SameHandle<MPI_Comm, 0x100>;
using Datatype = SameHandle<MPI_Datatype, 0x200>;
using Group = SameHandle<MPI_Group, 0x108>;
using Info = SameHandle<MPI_Info, 0x130>;
using Errhandler = SameHandle<MPI_Errhandler, 0x140>;
using Op = SameHandle<MPI_Op, 0x20>;
using Request = SameHandle<MPI_Request, 0x180>;
using Session = SameHandle<MPI_Session, 0x120>;
using Message = SameHandle<MPI_Message, 0x128>;
using Win = SameHandle<MPI_Win, 0x110>;
using File = SameHandle<MPI_File, 0x118>;

} // namespace handle

template <typename Byte>
Byte* core_buffer(Byte* buffer) {
    return buffer;
}

inline void* foreign_buffer(void* buffer) {
    return buffer;
}

} // namespace warren::foreign
