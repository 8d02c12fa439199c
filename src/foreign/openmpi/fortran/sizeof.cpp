// MPI_Sizeof of Open MPI's module mpi: one procedure for each type and rank of its argument, of
// which none looks at it.

#include "foreign/export.hpp"

#define WARREN_SIZEOF(type, bytes, form)                                                           \
    extern "C" __attribute__((visibility("default"))) void sizeof_##type##_##form(                 \
        void*, int* size, int* ierror) asm("pmpi_sizeof_" #type "_" #form "_");                    \
    extern "C" __attribute__((weak, alias("pmpi_sizeof_" #type "_" #form "_"),                     \
                              visibility("default"))) void                                         \
        weak_sizeof_##type##_##form(void*, int* size,                                              \
                                    int* ierror) asm("mpi_sizeof_" #type "_" #form "_");           \
    void sizeof_##type##_##form(void*, int* size, int* ierror) {                                   \
        *size = bytes;                                                                             \
        if (ierror != nullptr) {                                                                   \
            *ierror = 0;                                                                           \
        }                                                                                          \
    }
#define WARREN_SIZEOF_ALL(type, bytes)                                                             \
    WARREN_SIZEOF(type, bytes, scalar)                                                             \
    WARREN_SIZEOF(type, bytes, r1)                                                                 \
    WARREN_SIZEOF(type, bytes, r2)                                                                 \
    WARREN_SIZEOF(type, bytes, r3)                                                                 \
    WARREN_SIZEOF(type, bytes, r4)                                                                 \
    WARREN_SIZEOF(type, bytes, r5)                                                                 \
    WARREN_SIZEOF(type, bytes, r6)                                                                 \
    WARREN_SIZEOF(type, bytes, r7)                                                                 \
    WARREN_SIZEOF(type, bytes, r8)                                                                 \
    WARREN_SIZEOF(type, bytes, r9)                                                                 \
    WARREN_SIZEOF(type, bytes, r10)                                                                \
    WARREN_SIZEOF(type, bytes, r11)                                                                \
    WARREN_SIZEOF(type, bytes, r12)                                                                \
    WARREN_SIZEOF(type, bytes, r13)                                                                \
    WARREN_SIZEOF(type, bytes, r14)                                                                \
    WARREN_SIZEOF(type, bytes, r15)

WARREN_SIZEOF_ALL(character, 1)
WARREN_SIZEOF_ALL(logical, 4)
WARREN_SIZEOF_ALL(int8, 1)
WARREN_SIZEOF_ALL(int16, 2)
WARREN_SIZEOF_ALL(int32, 4)
WARREN_SIZEOF_ALL(int64, 8)
WARREN_SIZEOF_ALL(real32, 4)
WARREN_SIZEOF_ALL(real64, 8)
WARREN_SIZEOF_ALL(real128, 16)
WARREN_SIZEOF_ALL(complex32, 8)
WARREN_SIZEOF_ALL(complex64, 16)
WARREN_SIZEOF_ALL(complex128, 32)
