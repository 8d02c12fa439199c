// Blocks: a buffer that holds one block per rank of a communicator, as gathers and scatters know
// it.
//
// Regular: block i begins at base + i · count · extent. Listed: each block on its own, which serves
// the variants with counts, displacements and datatypes per rank.
// Thread rule: a view, valid during the call.
#pragma once

#include "mpi/message/request.hpp"

namespace warren::coll {

class Blocks {
  public:
    Blocks() = default;
    explicit Blocks(const message::Buffer& first) : first_(first) {}
    explicit Blocks(const message::Buffer* list) : list_(list) {}

    message::Buffer operator[](int rank) const {
        if (list_ != nullptr) {
            return list_[rank];
        }
        return {static_cast<std::byte*>(first_.base) + rank * first_.count * first_.type->extent,
                first_.count, first_.type};
    }
    bool regular() const { return list_ == nullptr; }
    // Begin of blocks without gaps, one behind the other. `bytes`: of one block.
    bool solid(MPI_Count bytes) const {
        return list_ == nullptr && first_.type->contiguous && first_.bytes() == bytes;
    }
    std::byte* begin() const { return static_cast<std::byte*>(first_.base); }
    // All of `ranks` regular blocks as one buffer.
    message::Buffer all(int ranks) const {
        return {first_.base, first_.count * ranks, first_.type};
    }

  private:
    message::Buffer first_;
    const message::Buffer* list_ = nullptr;
};

} // namespace warren::coll
