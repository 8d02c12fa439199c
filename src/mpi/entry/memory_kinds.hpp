// Kinds of memory that buffers may be in (MPI 5.0, 11.4.3). A list of kinds is a text: names with
// commas between them, each with restrictors behind colons, "system,mpi:alloc_mem".
//
// Programs ask for kinds by mpiexec's -memory-alloc-kinds, told as MPI_INFO_ENV has it, and by the
// info of a session. What is granted is told in the info of sessions and communicators: "mpi" and
// "system" in any case, and what was asked for beside, as far as it is there.
//
// Thread rule: functions of their arguments.
#pragma once

#include <string>
#include <string_view>

namespace warren::mpi {

inline constexpr const char* memory_kinds_key = "mpi_memory_alloc_kinds";
inline constexpr const char* memory_kinds_assertion = "mpi_assert_memory_alloc_kinds";

// The memory kinds requested of mpiexec; "": none.
std::string_view memory_kinds_of_start();

// The kinds that are granted of what mpiexec was asked for and of a further request.
std::string granted_memory_kinds(std::string_view request);

// Whether all kinds of a list are there: an assertion about others says nothing.
bool has_memory_kinds(std::string_view list);

} // namespace warren::mpi
