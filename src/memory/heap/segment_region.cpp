#include "memory/heap/memory_use.hpp"

namespace warren::memory {

namespace {

node::Extent extent_of_memory_use(const node::JobShape&) {
    return {.unit_bytes = memory_use_limit * sizeof(MemoryUse), .units = 1, .sure_units = 0};
}
WARREN_REGION(memory_use,
              {.number = memory_use.number, .name = "memory use", .extent = extent_of_memory_use});

} // namespace

} // namespace warren::memory
