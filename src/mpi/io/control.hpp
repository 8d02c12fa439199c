// Control block of an open file: what the ranks that opened it together share. It lies in the
// job's memory file, as windows do (mpi/rma/heap.hpp). Ranks of several nodes have a copy each,
// and tell each other what they write (File::tell_all).
//
// Thread rule: each member says who writes it when; "barrier" is one of the file's communicator.
// All is zero when the memory has been taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/job/segment.hpp"

namespace warren::io {

// Whether a collective access may go through the staging area; the least of all ranks' counts.
enum class Stageable : std::uint32_t { no, if_worth, always };

// A rank's deed in a collective access. Unknown: it refuses.
enum class Part : std::uint32_t { unknown, reads, writes, reads_ordered, writes_ordered };

// A rank's part of a collective access. The rank writes it before the call's first barrier, others
// read it after that barrier. A rank has two, used in turn, so it may write the next one while
// others still read this one.
struct AccessPlan {
    std::uint64_t begin; // from the first to the last byte in the file
    std::uint64_t end;
    std::uint64_t bytes;       // of an ordered access: etypes
    std::uint64_t block_bytes; // of its blocks in the file, on average
    Stageable stageable;
    std::int32_t refused; // error class: this rank can't do its part
    Part part;
    std::uint32_t unused;
};

// A rank's result of one round of a staged access; rounds use a rank's two in turn.
struct RoundNote {
    // A write stores Tiling's value before the round's barrier; a read stores where its part ended.
    std::uint64_t value;
    // A write stores its error before the next round's barrier; a read before the round's own.
    std::int32_t error_class;
    std::uint32_t unused;
};

struct RankControl {
    alignas(node::cache_line_bytes) AccessPlan plans[2];
    alignas(node::cache_line_bytes) RoundNote notes[2];
};

struct FileControl {
    // In etypes of the view, which is the same at all ranks that use it.
    alignas(node::cache_line_bytes) std::atomic<std::int64_t> shared_pointer;
    // Begin of an ordered access; rank 0 writes it between the barriers.
    alignas(node::cache_line_bytes) std::int64_t ordered_begin;
};

// Memory of a copy.
struct alignas(node::cache_line_bytes) ControlLine {
    std::byte bytes[node::cache_line_bytes];
};

class ControlBlock {
  public:
    ControlBlock() = default;
    explicit ControlBlock(std::byte* base) : base_(base) {}

    static constexpr std::uint64_t bytes(std::uint64_t ranks) {
        return sizeof(FileControl) + ranks * sizeof(RankControl);
    }
    FileControl& file() const { return *reinterpret_cast<FileControl*>(base_); }
    RankControl& rank(int rank) const {
        return reinterpret_cast<RankControl*>(base_ + sizeof(FileControl))[rank];
    }

  private:
    std::byte* base_ = nullptr;
};

} // namespace warren::io
