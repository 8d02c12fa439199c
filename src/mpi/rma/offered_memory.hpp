// OfferedMemory: memory of another process, whose target is first offered the operation (offer.hpp)
// if it may be quicker than the kernel's copies (peer_memory.hpp): with single elements of
// accumulate operations, with single words, and with writes of many pieces.
//
// Thread rule: a value of one call, under the rank's lock.
#pragma once

#include "mpi/rma/offer.hpp"
#include "mpi/rma/peer_memory.hpp"

namespace warren::rma {

class Window;

class OfferedMemory final : public TargetMemory {
  public:
    // `layout` has addresses of the target, which `peer` copies from and to.
    OfferedMemory(PeerMemory& peer, Window& window, int target, const Buffer& layout)
        : TargetMemory(layout), peer_(peer), window_(window), target_(target) {}

    Error read(void* to, MPI_Count first, MPI_Count bytes) override;
    Error write(const void* from, MPI_Count first, MPI_Count bytes) override;
    Error accumulate(const Accumulating& what, void* before, MPI_Count first,
                     MPI_Count bytes) override;
    Error compare_and_swap(const void* from, const void* compared, void* before) override;

  private:
    // The address of an element that a cell has room for; 0: it is none.
    std::uint64_t element_at(const datatype::Datatype& type, MPI_Count first,
                             MPI_Count bytes) const;
    // The address of up to 8 bytes in one piece; 0: they are more, or in several.
    std::uint64_t word_at(MPI_Count first, MPI_Count bytes) const;

    bool is_in_small_pieces(MPI_Count first, MPI_Count bytes) const;
    Error offer_part(const std::byte* data, MPI_Count first, MPI_Count bytes, MPI_Count& done);

    PeerMemory& peer_;
    Window& window_;
    const int target_;
};

} // namespace warren::rma
