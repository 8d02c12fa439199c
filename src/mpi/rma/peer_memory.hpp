// PeerMemory: memory of another process of the node, which the kernel copies from and to
// (process_vm_readv and its like).
//
// Thread rule: a value of one call. Failures: MPI_ERR_UNSUPPORTED_OPERATION if the kernel refuses,
// MPI_ERR_RMA_RANGE if there is no memory, or not all of it.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "mpi/datatype/buffer.hpp"
#include "mpi/job/segment.hpp"

namespace warren::rma {

class PeerMemory {
  public:
    // `layout` has addresses of the peer.
    PeerMemory(const node::Segment& segment, std::uint32_t peer, const datatype::Buffer& layout)
        : pid_(segment.slot(peer).pid.load(std::memory_order_relaxed)),
          peer_(peer),
          layout_(layout) {}

    // Copies bytes [first, first + bytes) of the layout's data from or to contiguous memory.
    Error read(void* to, MPI_Count first, MPI_Count bytes) const {
        return copy(to, first, bytes, false);
    }
    Error write(const void* from, MPI_Count first, MPI_Count bytes) const {
        return copy(const_cast<void*>(from), first, bytes, true);
    }

  private:
    Error copy(void* own, MPI_Count first, MPI_Count bytes, bool writes) const;
    Error failed(int reason) const;

    const int pid_;
    const std::uint32_t peer_;
    const datatype::Buffer layout_;
};

} // namespace warren::rma
