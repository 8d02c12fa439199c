// SharedPart: a mapped part of the file behind the node segment.
//
// The ranks of a process have one mapping of a part, however many they are: a job of 1,024 fibres
// would else need more mappings than the kernel allows a process. Thread rule: make and drop from
// any thread. Invariant: a part is unmapped when its last holder in the process drops it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/page.hpp"
#include "mpi/job/segment.hpp"

namespace warren::rma {

class SharedPart {
  public:
    SharedPart() = default;
    SharedPart(SharedPart&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
    SharedPart& operator=(SharedPart&& other) noexcept {
        std::swap(record_, other.record_);
        return *this;
    }
    SharedPart(const SharedPart&) = delete;
    SharedPart& operator=(const SharedPart&) = delete;
    ~SharedPart() { drop(); }

    // `offset` and `bytes` are whole pages; `made` is empty. `alignment` is the mapping's, a power
    // of two. A mapping that there is serves if it happens to have it.
    static Error map(const node::Segment& segment, std::uint64_t offset, std::uint64_t bytes,
                     SharedPart& made, std::uint64_t alignment = page_bytes);
    void drop();

    explicit operator bool() const { return record_ != nullptr; }
    std::byte* base() const { return record_ != nullptr ? record_->base : nullptr; }

  private:
    // The process's, in a list.
    struct Record {
        const node::SegmentHeader* segment;
        std::uint64_t offset;
        std::uint64_t bytes;
        std::byte* base;
        std::uint32_t holders;
        Record* next;
    };
    struct Records;

    Record* record_ = nullptr;
};

} // namespace warren::rma
