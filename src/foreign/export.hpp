// WARREN_FOREIGN(type, Name, (parameters)) { … }: defines PMPI_Name, and MPI_Name as its weak
// alias. In C++ the procedure is call_Name, because mpi.h declares the names with the standard's
// types.
#pragma once

// Compilers see that some procedures never throw or only compute; their aliases don't say so.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

#define WARREN_FOREIGN(type, name, parameters)                                                     \
    extern "C" __attribute__((visibility("default")))                                              \
    type call_##name parameters asm("PMPI_" #name);                                                \
    extern "C" __attribute__((weak, alias("PMPI_" #name), visibility("default")))                  \
    type weak_##name parameters asm("MPI_" #name);                                                 \
    type call_##name parameters

// WARREN_EXTENSION(Name, (parameters)): MPIX_Name and PMPIX_Name, for WARREN_FOREIGN(int, Name, …).
#define WARREN_EXTENSION(name, parameters)                                                         \
    extern "C"                                                                                     \
        __attribute__((weak, alias("PMPI_" #name),                                                 \
                       visibility("default"))) int extension_##name parameters asm("MPIX_" #name); \
    extern "C" __attribute__((                                                                     \
        alias("PMPI_" #name),                                                                      \
        visibility("default"))) int profiled_extension_##name parameters asm("PMPIX_" #name);
