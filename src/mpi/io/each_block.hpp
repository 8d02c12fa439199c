// EachBlock: an action of datatype::Walk that hands on the blocks of a view one by one; those that
// touch each other in the file, and follow each other in the data, as one. After the walk, flush()
// hands on the last. Thread rule: a value of one call.
#pragma once

#include <cstdint>

#include "mpi.h"

namespace warren::io {

// call(offset, at, bytes): `at` says which byte of the data comes first; false stops.
template <typename Call>
class EachBlock {
  public:
    static constexpr bool in_order = true;
    explicit EachBlock(Call& call) : call_(call) {}

    bool enough() const { return stopped_; }

    void block(std::uint64_t offset, MPI_Count at, MPI_Count bytes) {
        if (stopped_) {
            return;
        }
        if (bytes_ > 0 && offset == offset_ + static_cast<std::uint64_t>(bytes_)) {
            bytes_ += bytes;
            return;
        }
        flush();
        offset_ = offset;
        at_ = at;
        bytes_ = bytes;
    }
    void blocks(std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count, MPI_Count count,
                MPI_Count bytes) {
        for (MPI_Count i = 0; i < count && !stopped_; ++i) {
            block(offset + static_cast<std::uint64_t>(i * stride), at + i * bytes, bytes);
        }
    }
    void scattered(std::uint64_t base, const MPI_Count* places, MPI_Count at, MPI_Count count,
                   MPI_Count bytes) {
        for (MPI_Count i = 0; i < count && !stopped_; ++i) {
            block(base + static_cast<std::uint64_t>(places[i]), at + i * bytes, bytes);
        }
    }
    void flush() {
        if (bytes_ > 0 && !stopped_) {
            stopped_ = !call_(offset_, at_, bytes_);
        }
        bytes_ = 0;
    }

  private:
    Call& call_;
    bool stopped_ = false;
    std::uint64_t offset_ = 0;
    MPI_Count at_ = 0;
    MPI_Count bytes_ = 0;
};

} // namespace warren::io
