// View: which bytes of a file a rank sees, and in which order (MPI 5.0, 14.3). The data of a view
// is the file's bytes that its filetype names, tile after tile from the displacement on; its bytes
// are numbered from 0. A file's offsets are addresses of the filetype's layout.
//
// Thread rule: immutable once made. Made and dropped under the rank's lock, since its datatypes
// are kept until then. Invariant: of an ordered view, a later byte of the data has a higher offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "mpi/datatype/construct.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/walk.hpp"
#include "mpi/io/representation.hpp"

namespace warren::io {

struct ByteRange {
    std::uint64_t begin;
    std::uint64_t end;

    std::uint64_t bytes() const { return end - begin; }
};

class View {
  public:
    // MPI_ERR_TYPE, and MPI_ERR_IO for displacements that no view may have, as in other libraries.
    // `writable`: the file is open for writing, so no byte may be named twice.
    static Error make(std::uint64_t displacement, const datatype::Datatype& etype,
                      const datatype::Datatype& filetype, const Representation& representation,
                      bool writable, RankLock& lock, std::shared_ptr<const View>& made);
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View();

    std::uint64_t displacement() const { return displacement_; }
    const datatype::Datatype& etype() const { return etype_; }
    const datatype::Datatype& filetype() const { return filetype_; }
    const Representation& representation() const { return representation_; }

    // Bytes of an etype in the file.
    MPI_Count etype_bytes() const { return etype_bytes_; }
    // The filetype names no byte.
    bool empty() const { return layout_->size == 0; }
    // The data is one block of the file.
    bool contiguous() const { return layout_->contiguous; }
    bool ordered() const { return ordered_; }
    // Whether offsets in the file of the first `bytes` of the data stay below largest_offset.
    bool holds(MPI_Count bytes) const;
    // On average: bytes of a block, and from one block to the next.
    MPI_Count block_bytes() const { return block_bytes_; }
    MPI_Count block_stride() const { return block_stride_; }

    // The offset in the file of a byte of the data.
    std::uint64_t place(MPI_Count byte) const;
    // From the first to the last of some bytes, of an ordered view.
    ByteRange range(MPI_Count first, MPI_Count bytes) const {
        return {place(first), place(first + bytes - 1) + 1};
    }
    // The number of bytes of the data that lie before an offset, of an ordered view.
    MPI_Count bytes_before(std::uint64_t offset) const;

    // Hands the blocks of bytes [first, first + bytes) of the data to an action of datatype::Walk,
    // whose memory is the file.
    template <typename Action>
    void walk(MPI_Count first, MPI_Count bytes, Action& action) const {
        constexpr MPI_Count several = 2; // elements: the walk does not look at the number
        datatype::Walk<Action>(action).part(*layout_, reinterpret_cast<const void*>(displacement_),
                                            several, first, bytes);
    }

  private:
    View(std::uint64_t displacement, const datatype::Datatype& etype,
         const datatype::Datatype& filetype, const Representation& representation);

    const std::uint64_t displacement_;
    const datatype::Datatype& etype_;
    const datatype::Datatype& filetype_;
    const Representation& representation_;
    datatype::Draft file_form_;        // of the filetype, where the file has other sizes
    const datatype::Datatype* layout_; // the filetype in the file
    MPI_Count etype_bytes_;
    bool ordered_ = true;
    MPI_Count block_bytes_ = 0;
    MPI_Count block_stride_ = 0;
};

// An action of datatype::Walk that goes over blocks up to an offset, of an ordered view, and hands
// them on: copy(offset, stride, at, count, bytes) for evenly spaced blocks of data that is
// contiguous from `at` on.
template <typename Copy>
class BlocksBefore {
  public:
    static constexpr bool in_order = true;

    BlocksBefore(std::uint64_t end, Copy& copy) : end_(end), copy_(copy) {}

    bool enough() const { return full_; }
    // Bytes of the data that have been handed on.
    MPI_Count covered() const { return covered_; }
    // Where the last block ends.
    std::uint64_t reached() const { return reached_; }

    void block(std::uint64_t offset, MPI_Count at, MPI_Count bytes) {
        if (full_ || offset >= end_) {
            full_ = true;
            return;
        }
        if (static_cast<std::uint64_t>(bytes) > end_ - offset) {
            bytes = static_cast<MPI_Count>(end_ - offset);
            full_ = true;
        }
        hand_on(offset, bytes, at, 1, bytes);
    }
    void blocks(std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count, MPI_Count count,
                MPI_Count bytes) {
        if (full_ || offset >= end_) {
            full_ = true;
            return;
        }
        // Those that end before the limit.
        const std::uint64_t room = end_ - offset;
        MPI_Count whole = count;
        if (count > 1 &&
            static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(count) > room) {
            whole = room < static_cast<std::uint64_t>(bytes)
                        ? 0
                        : std::min(count, (static_cast<MPI_Count>(room) - bytes) / stride + 1);
        } else if (count == 1 && static_cast<std::uint64_t>(bytes) > room) {
            whole = 0;
        }
        if (whole > 0) {
            hand_on(offset, stride, at, whole, bytes);
        }
        if (whole < count) {
            block(offset + static_cast<std::uint64_t>(stride * whole), at + bytes * whole, bytes);
        }
    }
    void scattered(std::uint64_t base, const MPI_Count* places, MPI_Count at, MPI_Count count,
                   MPI_Count bytes) {
        for (MPI_Count i = 0; i < count && !full_; ++i) {
            block(base + static_cast<std::uint64_t>(places[i]), at + i * bytes, bytes);
        }
    }

  private:
    void hand_on(std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count count,
                 MPI_Count bytes) {
        copy_(offset, stride, at, count, bytes);
        covered_ = at + count * bytes;
        reached_ = offset + static_cast<std::uint64_t>(stride * (count - 1) + bytes);
    }

    const std::uint64_t end_;
    Copy& copy_;
    bool full_ = false;
    MPI_Count covered_ = 0;
    std::uint64_t reached_ = 0;
};

} // namespace warren::io
