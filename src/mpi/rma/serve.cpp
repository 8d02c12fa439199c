// A window's operations on this rank's memory that others ask for by messages.

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

#include "mpi/rma/heap.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

// A request as it has come. Its parts are copied out: they are not aligned.
class ServedRequest {
  public:
    explicit ServedRequest(const std::vector<std::byte>& memory) : memory_(memory) {
        std::memcpy(&head_, memory.data(), sizeof head_);
    }
    const ServedHead& head() const { return head_; }
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
    const std::vector<std::byte>& memory_;
    ServedHead head_;
};

// Whether the process still has memory there: programs may unmap what they have given to a window.
bool is_mapped(const std::byte* place, std::size_t bytes) {
    constexpr std::size_t pages_per_call = 256;
    unsigned char resident[pages_per_call];
    const auto end = reinterpret_cast<std::uintptr_t>(place) + bytes;
    auto at = reinterpret_cast<std::uintptr_t>(place) / page_bytes * page_bytes;
    for (; at < end; at += pages_per_call * page_bytes) {
        const std::size_t now = std::min<std::size_t>(end - at, pages_per_call * page_bytes);
        if (mincore(reinterpret_cast<void*>(at), now, resident) != 0) {
            return false;
        }
    }
    return true;
}

void combine_pieces(const ServedRequest& request, std::byte* result) {
    const ServedHead& head = request.head();
    const datatype::Datatype& basic = datatype::predefined_table[head.basic];
    const coll::Op op(static_cast<coll::OpKind>(head.operation));
    const auto bytes = static_cast<MPI_Count>(head.bytes);
    Elements its(basic, bytes);
    Elements own(basic, bytes);
    request.gather(its.packed());
    if (result != nullptr) {
        std::memcpy(result, its.packed(), head.bytes);
    }
    if (!changes_target(op)) {
        return;
    }
    std::memcpy(own.packed(), request.data(), head.bytes);
    own.unpack(bytes);
    its.unpack(bytes);
    combine(op, basic, its.native(), own.native(), its.native(), bytes / basic.size);
    its.pack(bytes);
    request.scatter(its.packed());
}

void swap_pieces(const ServedRequest& request, std::byte* result) {
    request.gather(result);
    const std::size_t bytes = request.head().bytes;
    if (std::memcmp(result, request.data() + bytes, bytes) == 0) {
        request.scatter(request.data());
    }
}

} // namespace

void Window::serve(const std::vector<std::byte>& memory, std::vector<std::byte>& answer) {
    const ServedRequest request(memory);
    const ServedHead& head = request.head();
    const int self = communicator_.rank();
    ServedAnswer its = {.error_class = MPI_SUCCESS};
    request.each([&](const std::byte* place, std::uint64_t, std::size_t bytes) {
        if (!is_own(place, bytes) || !is_mapped(place, bytes)) {
            its.error_class = MPI_ERR_RMA_RANGE;
        }
    });
    const bool returns = head.kind == ServedKind::read || head.fetches != 0 ||
                         head.kind == ServedKind::compare_and_swap;
    answer.resize(sizeof its + (returns ? head.bytes : 0));
    std::memcpy(answer.data(), &its, sizeof its);
    if (its.error_class != MPI_SUCCESS) {
        return;
    }
    std::byte* result = returns ? answer.data() + sizeof its : nullptr;
    if (head.kind == ServedKind::read) {
        request.gather(result);
    } else if (head.kind == ServedKind::write) {
        request.scatter(request.data());
    } else {
        const SharedLock lock(control_.rank(self).accumulate_mutex, mutex_user());
        head.kind == ServedKind::accumulate ? combine_pieces(request, result)
                                            : swap_pieces(request, result);
    }
    synchronise();
}

} // namespace warren::rma
