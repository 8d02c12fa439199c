// ServedMemory: memory of a target that serves operations by messages (window_server.hpp).
//
// An operation goes in parts of bounded size, each a request with an answer. Thread rule: a value
// of one call, under the rank's lock, which waits release.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/rma/target_memory.hpp"
#include "mpi/rma/window_server.hpp"

namespace warren::rma {

// The request for an operation on the first of these bytes of a layout of the target's, as many as
// fit, whole units of `unit` bytes; `done`: how many. `data`: of the origin, as many bytes as are
// asked for, null: none; `tail` follows them. `head` gets the number of pieces and bytes.
std::vector<std::byte> served_request(const Buffer& layout, ServedHead& head, MPI_Count first,
                                      MPI_Count bytes, MPI_Count unit, const void* data,
                                      const void* tail, MPI_Count& done);
// Predefined types as requests name them.
std::uint8_t index_of(const datatype::Datatype& basic);

class ServedMemory final : public TargetMemory {
  public:
    // `layout` has addresses of the target.
    ServedMemory(WindowServer& server, const Window& window, int target, const Buffer& layout)
        : TargetMemory(layout), server_(server), window_(window), target_(target) {}

    Error read(void* to, MPI_Count first, MPI_Count bytes) override;
    Error write(const void* from, MPI_Count first, MPI_Count bytes) override;
    Error accumulate(const Accumulating& what, void* before, MPI_Count first,
                     MPI_Count bytes) override;
    Error compare_and_swap(const void* from, const void* compared, void* before) override;

  private:
    // Sends such a request. `answer` gets as many bytes as are asked for; null: none.
    Error ask(ServedHead head, MPI_Count first, MPI_Count bytes, MPI_Count unit, const void* data,
              const void* tail, void* answer, MPI_Count& done);

    WindowServer& server_;
    const Window& window_;
    const int target_;
};

} // namespace warren::rma
