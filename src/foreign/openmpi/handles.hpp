// Handles of Open MPI's ABI: pointers.
//
// A predefined handle is the address of an exported object (predefined.hpp). Another one is
// Warren's own with bit 63 set, which no address of a program has: whole handles of Warren never
// have that bit. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>

#include "base/handle_table.hpp"
#include "classes.hpp"
#include "mpi.h"
#include "numbers.hpp"
#include "objects.hpp"
#include "predefined.hpp"

namespace warren::foreign {

using Comm = struct CommObject*;
using Datatype = struct DatatypeObject*;
using Group = struct GroupObject*;
using Info = struct InfoObject*;
using Errhandler = struct ErrhandlerObject*;
using Op = struct OpObject*;
using Request = struct RequestObject*;
using Session = struct SessionObject*;
using Message = struct MessageObject*;
using Win = struct WinObject*;
using File = struct FileObject*;

inline constexpr bool integers_are_halves = false;
inline constexpr std::uintptr_t made_handle = std::uintptr_t{1} << 63;

// A kind of handle: its types, and the translations both ways. `null`: for types that Open MPI
// lacks.
template <typename CoreHandle, typename ForeignHandle, std::uintptr_t null>
struct PointerHandle {
    using Core = CoreHandle;
    using Foreign = ForeignHandle;

    static Core core(Foreign handle) {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        if ((bits & made_handle) == 0) {
            return reinterpret_cast<Core>(predefined.core(handle));
        }
        const std::uintptr_t made = bits & ~made_handle;
        return reinterpret_cast<Core>(made >= first_handle ? made : invalid_handle);
    }
    static Foreign foreign(Core handle) {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        if (bits >= first_handle) {
            return reinterpret_cast<Foreign>(bits | made_handle);
        }
        void* object = predefined.foreign(bits);
        return static_cast<Foreign>(object != nullptr ? object : predefined.foreign(null));
    }
};

namespace handle {

struct Comm : PointerHandle<MPI_Comm, foreign::Comm, 256> {
    static Core core(Foreign handle) {
        if (static_cast<void*>(handle) == &ompi_mpi_comm_world) [[likely]] {
            return MPI_COMM_WORLD;
        }
        return PointerHandle::core(handle);
    }
};
using Group = PointerHandle<MPI_Group, foreign::Group, 264>;
using Win = PointerHandle<MPI_Win, foreign::Win, 272>;
using File = PointerHandle<MPI_File, foreign::File, 280>;
using Session = PointerHandle<MPI_Session, foreign::Session, 288>;
using Message = PointerHandle<MPI_Message, foreign::Message, 296>;
using Info = PointerHandle<MPI_Info, foreign::Info, 304>;
struct Errhandler : PointerHandle<MPI_Errhandler, foreign::Errhandler, 320> {
    static Core core(Foreign handle) {
        const Core found = PointerHandle::core(handle);
        return reinterpret_cast<std::uintptr_t>(found) != invalid_handle
                   ? found
                   : ompi_warren_class_handler(handle);
    }
};
using Request = PointerHandle<MPI_Request, foreign::Request, 384>;
using Datatype = PointerHandle<MPI_Datatype, foreign::Datatype, 512>;
using Op = PointerHandle<MPI_Op, foreign::Op, 32>;

} // namespace handle

// MPI_IN_PLACE and MPI_BOTTOM are the standard's.
template <typename Byte>
Byte* core_buffer(Byte* buffer) {
    static_assert(foreign_in_place == core_in_place && foreign_bottom == core_bottom);
    return buffer;
}
inline MPI_T_pvar_handle core_variable_handle(MPI_T_pvar_handle handle) {
    constexpr std::intptr_t all_handles = -1;
    return reinterpret_cast<std::intptr_t>(handle) == all_handles ? MPI_T_PVAR_ALL_HANDLES : handle;
}

inline void* foreign_buffer(void* buffer) {
    return buffer;
}

} // namespace warren::foreign
