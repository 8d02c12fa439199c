// The objects of Open MPI's ABI whose addresses are the predefined handles. Programs copy them
// (COPY relocations), so their sizes are the ABI's, and their addresses are known when the program
// is loaded. Nobody reads them. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numbers.hpp"

namespace warren::foreign {

template <std::size_t bytes>
struct alignas(64) PredefinedObject {
    char unused[bytes];
};

} // namespace warren::foreign

#pragma GCC visibility push(default)
extern "C" {
#define WARREN_DECLARE_OBJECT(name, handle, bytes)                                                 \
    extern warren::foreign::PredefinedObject<bytes> name;
WARREN_OPENMPI_OBJECTS(WARREN_DECLARE_OBJECT)
#undef WARREN_DECLARE_OBJECT
}
#pragma GCC visibility pop
