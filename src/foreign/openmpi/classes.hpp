// Handles of error handlers that programs make by Open MPI's C++ classes (classes.cpp): addresses
// of objects in memory. Thread rule: any thread.
#pragma once

#include "mpi.h"

// The core's handle of such an address; an invalid one of what is none. It searches all that have
// been made.
extern "C" __attribute__((visibility("default"))) MPI_Errhandler
ompi_warren_class_handler(const void* handle);
