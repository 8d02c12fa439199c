// The environment (MPI chapters 9, 11.2 and 20): what its entry points call.
//
// Most of these may be called at any time, so they find the process's context themselves.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

// Starting and ending. argc and argv may be null and are left as they are.
Error init(int* argc, char*** argv);
Error init_thread(int* argc, char*** argv, int required, int* provided);
Error finalize();
Error initialized(int* flag);
Error finalized(int* flag);
Error query_thread(Context& context, int* provided);
Error is_thread_main(Context& context, int* flag);
// Ends the whole job, whatever the communicator.
Error abort(Context& context, comm::Communicator& comm, int errorcode);

// Versions.
Error get_version(int* version, int* subversion);
Error get_library_version(char* version, int* resultlen);
Error abi_get_version(int* abi_major, int* abi_minor);

Error get_processor_name(Context& context, char* name, int* resultlen);

// Seconds since the node started, the same clock for all its ranks.
double wtime();
double wtick();

// Memory. alloc_mem stores the address at baseptr. `info` may be null; keys that are looked at:
//     mpi_minimum_memory_alignment   MPI 5.0, 9.2: a power of two, in bytes
//     warren_memory                  criteria as warren_mem_criteria_parse takes them, for instance
//                                    "bandwidth,capacity full=strict": memory by attribute. Needs
//                                    libwarren.so, the program's or the one beside this library
// Wrong values are MPI_ERR_INFO_VALUE, memory that is full MPI_ERR_NO_MEM.
Error alloc_mem(Context& context, MPI_Aint size, comm::Info* info, void* baseptr);
Error free_mem(Context& context, void* base);
inline constexpr const char* memory_alignment_key = "mpi_minimum_memory_alignment";
// The alignment that an info asks for, or a cache line's.
Error memory_alignment(const comm::Info* info, std::size_t& alignment);
inline constexpr const char* memory_criteria_key = "warren_memory";
// The criteria that an info asks for; null: none.
const char* memory_criteria(const comm::Info* info);
// Places pages of a memory file that nobody has touched yet, as the criteria's first choice says;
// unplace: as if that had not been.
Error place_pages(const char* criteria, void* pages, std::size_t bytes);
void unplace_pages(void* pages, std::size_t bytes);

// For profiling tools; does nothing.
int pcontrol(int level);

MPI_Aint aint_add(MPI_Aint base, MPI_Aint disp);
MPI_Aint aint_diff(MPI_Aint addr1, MPI_Aint addr2);

} // namespace warren::mpi
