// ServedRequest: a request that has come for this rank's memory of a window (window_server.hpp).
// Its parts are copied out: they are not aligned. Thread rule: a view, valid as long as its memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "mpi/datatype/datatype.hpp"
#include "mpi/op/op.hpp"
#include "mpi/rma/window_server.hpp"

namespace warren::rma {

class ServedRequest {
  public:
    explicit ServedRequest(const std::vector<std::byte>& memory) : memory_(memory) {
        if (!memory.empty()) {
            std::memcpy(&head_, memory.data(), std::min(memory.size(), sizeof head_));
        }
    }
    const ServedHead& head() const { return head_; }
    // Whether it is what an origin may send: its lengths agree, and its type and operation exist.
    bool is_sound() const;
    bool is_of_lock() const { return head_.kind >= ServedKind::lock; }
    ServedPiece piece(std::uint32_t index) const {
        ServedPiece piece;
        std::memcpy(&piece, memory_.data() + sizeof head_ + index * sizeof piece, sizeof piece);
        return piece;
    }
    const std::byte* data() const {
        return memory_.data() + sizeof head_ + head_.pieces * sizeof(ServedPiece);
    }

    // Calls use(memory, offset in the data, bytes) for each piece.
    template <typename Use>
    void each(Use use) const {
        std::uint64_t offset = 0;
        for (std::uint32_t i = 0; i < head_.pieces; ++i) {
            const ServedPiece its = piece(i);
            use(reinterpret_cast<std::byte*>(its.address), offset,
                static_cast<std::size_t>(its.bytes));
            offset += its.bytes;
        }
    }
    void gather(std::byte* to) const {
        each([to](const std::byte* memory, std::uint64_t offset, std::size_t bytes) {
            std::memcpy(to + offset, memory, bytes);
        });
    }
    void scatter(const std::byte* from) const {
        each([from](std::byte* memory, std::uint64_t offset, std::size_t bytes) {
            std::memcpy(memory, from + offset, bytes);
        });
    }

  private:
    std::uint64_t data_bytes() const;
    coll::Op op() const { return coll::Op(static_cast<coll::OpKind>(head_.operation)); }
    bool combines() const;

    const std::vector<std::byte>& memory_;
    ServedHead head_;
};

} // namespace warren::rma
