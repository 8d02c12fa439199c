// A window's operations on this rank's memory, and on its lock, that others ask for by messages.

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

#include "mpi/rma/heap.hpp"
#include "mpi/rma/lock.hpp"
#include "mpi/rma/served_request.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

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

// Whether all memory of a request is there. Pieces are mostly close together, and one question to
// the kernel is enough.
bool is_mapped(const ServedRequest& request) {
    constexpr std::uintptr_t largest = std::uintptr_t{1} << 20;
    std::uintptr_t begin = UINTPTR_MAX;
    std::uintptr_t end = 0;
    request.each([&](const std::byte* place, std::uint64_t, std::size_t bytes) {
        begin = std::min(begin, reinterpret_cast<std::uintptr_t>(place));
        end = std::max(end, reinterpret_cast<std::uintptr_t>(place) + bytes);
    });
    if (begin < end && end - begin <= largest &&
        is_mapped(reinterpret_cast<const std::byte*>(begin), end - begin)) {
        return true;
    }
    bool all = true;
    request.each([&](const std::byte* place, std::uint64_t, std::size_t bytes) {
        all = all && is_mapped(place, bytes);
    });
    return all;
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

bool Window::serve(int origin, const std::vector<std::byte>& memory, bool& queued,
                   std::vector<std::byte>& answer) {
    const ServedRequest request(memory);
    const ServedHead& head = request.head();
    const int self = communicator_.rank();
    ServedAnswer its = {.error_class = MPI_SUCCESS, .taken = 0};
    if (origin < 0 || origin >= size() || !request.is_sound()) {
        its.error_class = MPI_ERR_INTERN;
    } else if (request.is_of_lock()) {
        if (!serve_lock(head, origin, queued, its)) {
            return false;
        }
    } else {
        request.each([&](const std::byte* place, std::uint64_t, std::size_t bytes) {
            if (!is_own(place, bytes)) {
                its.error_class = MPI_ERR_RMA_RANGE;
            }
        });
        if (its.error_class == MPI_SUCCESS && !is_mapped(request)) {
            its.error_class = MPI_ERR_RMA_RANGE;
        }
    }
    const bool returns = head.kind == ServedKind::read || head.fetches != 0 ||
                         head.kind == ServedKind::compare_and_swap;
    const bool refused = its.error_class != MPI_SUCCESS;
    answer.resize(sizeof its + (returns && !refused ? head.bytes : 0));
    std::memcpy(answer.data(), &its, sizeof its);
    if (refused || request.is_of_lock()) {
        return true;
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
    return true;
}

// The lock of this rank's memory, for a rank of another node. False: it waits in the queue.
// The lock's word and queue are shared with ranks of this node: they change only for an origin that
// asks for what it has not, or gives back what it has.
bool Window::serve_lock(const ServedHead& head, int origin, bool& queued, ServedAnswer& answer) {
    WindowLock lock(engine_, communicator_, control_, communicator_.rank(), origin);
    const bool exclusive = head.exclusive != 0;
    const Lent held = exclusive ? Lent::exclusive : Lent::shared;
    lent_.resize(static_cast<std::size_t>(size()), Lent::none);
    Lent& lent = lent_[static_cast<std::size_t>(origin)];
    const Lent expected = head.kind == ServedKind::unlock ? held
                          : queued                        ? Lent::awaited
                                                          : Lent::none;
    if (!control_.rank(origin).is_remote() || lent != expected) {
        answer.error_class = MPI_ERR_RMA_SYNC;
        return true;
    }
    if (head.kind == ServedKind::unlock) {
        lock.give_back(exclusive);
        lent = Lent::none;
        return true;
    }
    if (head.kind == ServedKind::try_lock) {
        answer.taken = lock.try_take(exclusive) ? 1 : 0;
        lent = answer.taken != 0 ? held : Lent::none;
        return true;
    }
    Error error;
    lent = Lent::awaited;
    if (!lock.take_for_user(exclusive, queued, error)) {
        return false;
    }
    answer.taken = 1;
    lent = held;
    if (error) {
        lent = Lent::none;
        answer.error_class = error.error_class();
        error.drop();
    }
    return true;
}

// An origin of this node offers what its epoch and the bounds allow. Nothing is done of what this
// rank can't, and the kernel then tells the origin why.
void Window::take_offer(int origin, const OfferCell& cell) {
    OfferBox& box = control_.rank(origin).offer;
    box.has_cell.store(0, std::memory_order_relaxed);
    if (cell.target != static_cast<std::uint32_t>(communicator_.rank()) ||
        !box.leave_offered(cell.number, OfferState::claimed)) {
        return;
    }
    const bool done = cell.kind == OfferKind::write ? write_offered(origin, cell)
                                                    : change_offered(cell, box.before);
    box.state.store(OfferBox::word(cell.number, done ? OfferState::done : OfferState::declined),
                    std::memory_order_release);
}

bool Window::change_offered(const OfferCell& cell, std::uint64_t& before) {
    const datatype::Datatype& type = datatype::predefined_table[cell.basic];
    const auto bytes = static_cast<std::size_t>(type.size);
    auto* const place = reinterpret_cast<std::byte*>(cell.address);
    if (!type.predefined || !type.contiguous || bytes > sizeof cell.operand ||
        !is_own(place, bytes) || !is_mapped(place, bytes)) {
        return false;
    }
    const int self = communicator_.rank();
    if (cell.kind == OfferKind::compare_and_swap) {
        return swap_one(self, place, type, &cell.operand, &cell.compared, &before);
    }
    const auto kind = static_cast<coll::OpKind>(cell.operation);
    if (cell.kind != OfferKind::accumulate || kind == coll::OpKind::null ||
        kind >= coll::OpKind::user) {
        return false;
    }
    const coll::Op op(kind);
    return combine_one(self, place, op, type, &cell.operand, cell.fetches != 0 ? &before : nullptr);
}

bool Window::write_offered(int origin, const OfferCell& cell) {
    if (cell.operand < sizeof(ServedHead) || cell.operand > largest_request) {
        return false;
    }
    std::vector<std::byte> request(cell.operand);
    const Buffer source = {.base = reinterpret_cast<void*>(cell.address),
                           .count = static_cast<MPI_Count>(cell.operand),
                           .type = &datatype::basic(MPI_BYTE)};
    PeerMemory memory(communicator_.endpoint(origin), source,
                      control_.rank(origin).accumulate_mutex, mutex_user());
    if (Error error = memory.read(request.data(), 0, source.count)) {
        error.drop();
        return false;
    }
    ServedHead head;
    std::memcpy(&head, request.data(), sizeof head);
    bool queued = false;
    std::vector<std::byte> answer;
    ServedAnswer its = {.error_class = MPI_ERR_INTERN, .taken = 0};
    if (head.kind == ServedKind::write && serve(origin, request, queued, answer)) {
        std::memcpy(&its, answer.data(), sizeof its);
    }
    return its.error_class == MPI_SUCCESS;
}

// Notes what a rank of another node has done.
void Window::note(int rank, Notice notice) {
    switch (notice) {
    case Notice::posted:
        set_posted(rank, communicator_.rank());
        break;
    case Notice::completed:
        set_completed(rank, communicator_.rank());
        break;
    case Notice::offered: // has data: see take_offer()
        break;
    }
}

} // namespace warren::rma
