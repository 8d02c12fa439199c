// Handles of MPICH's ABI: ints, of files void*.
//
// A predefined handle is a constant. Another one is, without any table,
//     bits 31…30  11
//     bits 29…25  last bits of the generation
//     bits 24…0   index of the object's slot
// of Warren's handle, which names the object in the short form (base/handle_table.hpp). The rank
// that made an object is found by its thread, so ranks of a process don't collide. Handles of files
// have room for Warren's own. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <iterator>

#include "base/handle_table.hpp"
#include "mpi.h"
#include "numbers.hpp"

namespace warren::foreign {

using Comm = int;
using Datatype = int;
using Group = int;
using Info = int;
using Errhandler = int;
using Op = int;
using Request = int;
using Session = int;
using Message = int;
using Win = int;
using File = void*;

inline constexpr bool integers_are_halves = false;

inline constexpr int index_bits = 25;
inline constexpr std::uint32_t made_handle = 0xc0000000;

inline bool is_made(std::uint32_t handle) {
    return handle >= made_handle;
}

inline std::uintptr_t core_made(std::uint32_t handle) {
    const std::uint32_t index = handle & ((1U << index_bits) - 1);
    const std::uintptr_t generation = (handle & ~made_handle) >> index_bits;
    return short_handle | generation << 32 | (first_handle + index);
}

inline int foreign_made(std::uintptr_t handle) {
    const std::uint32_t index = static_cast<std::uint32_t>(handle) - first_handle;
    const auto generation =
        static_cast<std::uint32_t>(handle >> 32) & ((1U << short_generation_bits) - 1);
    return static_cast<int>(made_handle | generation << index_bits | index);
}

// A kind of handle: its types, and the translations both ways.
template <typename CoreHandle, std::uintptr_t (*core_predefined)(std::uint32_t),
          int (*foreign_predefined)(std::uintptr_t)>
struct IntHandle {
    using Core = CoreHandle;
    using Foreign = int;

    static Core core(int handle) {
        const auto bits = static_cast<std::uint32_t>(handle);
        return reinterpret_cast<Core>(is_made(bits) ? core_made(bits) : core_predefined(bits));
    }
    static int foreign(Core handle) {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        return bits >= first_handle ? foreign_made(bits) : foreign_predefined(bits);
    }
};

namespace handle {

using Group = IntHandle<MPI_Group, core_predefined_group, foreign_predefined_group>;
using Info = IntHandle<MPI_Info, core_predefined_info, foreign_predefined_info>;
using Errhandler =
    IntHandle<MPI_Errhandler, core_predefined_errhandler, foreign_predefined_errhandler>;
using Op = IntHandle<MPI_Op, core_predefined_op, foreign_predefined_op>;
using Request = IntHandle<MPI_Request, core_predefined_request, foreign_predefined_request>;
using Session = IntHandle<MPI_Session, core_predefined_session, foreign_predefined_session>;
using Message = IntHandle<MPI_Message, core_predefined_message, foreign_predefined_message>;
using Win = IntHandle<MPI_Win, core_predefined_win, foreign_predefined_win>;
using Comm = IntHandle<MPI_Comm, core_predefined_comm, foreign_predefined_comm>;

struct Datatype : IntHandle<MPI_Datatype, core_predefined_datatype, foreign_predefined_datatype> {
    using Base = IntHandle<MPI_Datatype, core_predefined_datatype, foreign_predefined_datatype>;

    static MPI_Datatype core(int handle) {
        const BasicType& basic = basic_types[handle & 0xff];
        if (basic.foreign == handle) [[likely]] {
            return reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(basic.core));
        }
        return Base::core(handle);
    }
    static int foreign(MPI_Datatype handle) {
        const std::uintptr_t basic = reinterpret_cast<std::uintptr_t>(handle) - first_basic;
        return basic < std::size(foreign_basic_types) ? foreign_basic_types[basic]
                                                      : Base::foreign(handle);
    }
};

struct File {
    using Core = MPI_File;
    using Foreign = void*;

    static MPI_File core(void* handle) {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        return bits == 0              ? MPI_FILE_NULL
               : bits >= first_handle ? static_cast<MPI_File>(handle)
                                      : reinterpret_cast<MPI_File>(invalid_handle);
    }
    static void* foreign(MPI_File handle) { return handle == MPI_FILE_NULL ? nullptr : handle; }
};

} // namespace handle

// Buffers: MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC are the last addresses, the standard's the first.
template <typename Byte>
Byte* core_buffer(Byte* buffer) {
    const auto address = reinterpret_cast<std::intptr_t>(buffer);
    static_assert(foreign_in_place == -1 && foreign_buffer_automatic == -2);
    return address == foreign_in_place || address == foreign_buffer_automatic
               ? reinterpret_cast<Byte*>(-address)
               : buffer;
}

// MPI_T_PVAR_ALL_HANDLES is the address of a variable.
extern char no_handles;
inline MPI_T_pvar_handle core_variable_handle(MPI_T_pvar_handle handle) {
    return static_cast<void*>(handle) == &no_handles ? MPI_T_PVAR_ALL_HANDLES : handle;
}

inline void* foreign_buffer(void* buffer) {
    return buffer == MPI_BUFFER_AUTOMATIC ? reinterpret_cast<void*>(foreign_buffer_automatic)
                                          : buffer;
}

} // namespace warren::foreign
