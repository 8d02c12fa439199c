// Scratch: memory of one collective operation for intermediate data.
//
// Either plain bytes (packed data), or `count` elements of a datatype with its gaps, as reduction
// operations need them. Thread rule: a value of one call.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/error.hpp"
#include "mpi/message/request.hpp"

namespace warren::coll {

class Scratch {
  public:
    Scratch() = default;

    // Error: MPI_ERR_NO_MEM.
    Error allocate(MPI_Count bytes);
    // Room for `count` elements of the type, and a buffer of them.
    Error allocate(MPI_Count count, const datatype::Datatype& type);

    std::byte* data() const { return memory_.get(); }
    // Begin of element 0 of the datatype, which may lie outside of the memory.
    void* base() const { return base_; }
    message::Buffer buffer() const { return {base_, count_, type_}; }
    // Elements [first, first + count).
    message::Buffer part(MPI_Count first, MPI_Count count) const {
        return {static_cast<std::byte*>(base_) + first * type_->extent, count, type_};
    }

  private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };

    std::unique_ptr<std::byte, Free> memory_;
    void* base_ = nullptr;
    MPI_Count count_ = 0;
    const datatype::Datatype* type_ = nullptr;
};

// Elements [first, first + count) of a buffer.
inline message::Buffer part_of(const message::Buffer& buffer, MPI_Count first, MPI_Count count) {
    return {static_cast<std::byte*>(buffer.base) + first * buffer.type->extent, count, buffer.type};
}

// Copies a buffer's data to another of at least as many bytes, whose datatype may be another.
void copy(const message::Buffer& from, const message::Buffer& to);

} // namespace warren::coll
