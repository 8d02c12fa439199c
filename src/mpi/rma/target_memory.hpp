// TargetMemory: where an operation's data is at the target, laid out there, and the ways to it:
//
//   MappedMemory   loads and stores
//   PeerMemory     the kernel's copies (peer_memory.hpp)
//   ServedMemory   messages that the target's progress serves (served_memory.hpp)
//
// Operations name bytes [first, first + bytes) of the layout's data, packed at the origin. Each is
// complete at the target when it returns. Thread rule: a value of one call, under the rank's lock.
#pragma once

#include "base/error.hpp"
#include "mpi/datatype/buffer.hpp"
#include "mpi/rma/combine.hpp"
#include "mpi/rma/shared_mutex.hpp"

namespace warren::rma {

using datatype::Buffer;

// Arguments that all parts of an accumulate operation share.
struct Accumulating {
    const coll::Op& op;
    const datatype::Datatype& basic;
    Elements& own; // the origin's operands of the part; not of MPI_NO_OP
    Elements& its; // the target's, before and after
};

class TargetMemory {
  public:
    explicit TargetMemory(const Buffer& layout) : layout_(layout) {}
    TargetMemory(const TargetMemory&) = delete;
    TargetMemory& operator=(const TargetMemory&) = delete;
    virtual ~TargetMemory() = default;

    virtual Error read(void* to, MPI_Count first, MPI_Count bytes) = 0;
    virtual Error write(const void* from, MPI_Count first, MPI_Count bytes) = 0;
    // Combines whole elements, at most accumulate_part_bytes, atomically to other accumulate
    // operations. `before` gets what was there, packed; null: nobody wants to know.
    virtual Error accumulate(const Accumulating& what, void* before, MPI_Count first,
                             MPI_Count bytes) = 0;
    // Compares and swaps the only element, atomically like accumulate().
    virtual Error compare_and_swap(const void* from, const void* compared, void* before) = 0;

  protected:
    const Buffer layout_;
};

// Memory that this rank can read and write: accumulate operations hold the accumulate mutex of the
// target.
class AccessibleMemory : public TargetMemory {
  public:
    AccessibleMemory(const Buffer& layout, SharedMutex& mutex, const MutexUser& user)
        : TargetMemory(layout), mutex_(mutex), user_(user) {}

    Error accumulate(const Accumulating& what, void* before, MPI_Count first,
                     MPI_Count bytes) override;
    Error compare_and_swap(const void* from, const void* compared, void* before) override;

  private:
    SharedMutex& mutex_;
    const MutexUser user_;
};

class MappedMemory final : public AccessibleMemory {
  public:
    using AccessibleMemory::AccessibleMemory;

    Error read(void* to, MPI_Count first, MPI_Count bytes) override {
        layout_.type->pack_part(layout_.base, layout_.count, first, bytes, to);
        return {};
    }
    Error write(const void* from, MPI_Count first, MPI_Count bytes) override {
        layout_.type->unpack_part(from, first, bytes, layout_.base, layout_.count);
        return {};
    }
};

} // namespace warren::rma
