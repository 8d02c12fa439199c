// WARREN_FOREIGN(type, Name, (parameters)) { … }: defines PMPI_Name, and MPI_Name as its weak
// alias. In C++ the procedure is call_Name, because mpi.h declares the names with the standard's
// types.
#pragma once

#define WARREN_FOREIGN(type, name, parameters)                                                     \
    extern "C" __attribute__((visibility("default")))                                              \
    type call_##name parameters asm("PMPI_" #name);                                                \
    extern "C" __attribute__((weak, alias("PMPI_" #name), visibility("default")))                  \
    type weak_##name parameters asm("MPI_" #name);                                                 \
    type call_##name parameters
