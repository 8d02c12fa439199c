// A window's operations on this rank's memory, and on its lock, that others ask for by messages.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/rma/lock.hpp"
#include "mpi/rma/own_memory.hpp"
#include "mpi/rma/served_request.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

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
        if (its.error_class == MPI_SUCCESS && !has_memory(request)) {
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
    bool done = false;
    switch (cell.kind) {
    case OfferKind::write:
        done = write_offered(origin, cell);
        break;
    case OfferKind::write_blocks:
        done = write_blocks_offered(origin, cell, box.blocks);
        break;
    case OfferKind::read_word:
    case OfferKind::write_word:
        done = move_offered(cell, box.before);
        break;
    case OfferKind::accumulate:
    case OfferKind::compare_and_swap:
        done = change_offered(cell, box.before);
        break;
    }
    box.state.store(OfferBox::word(cell.number, done ? OfferState::done : OfferState::declined),
                    std::memory_order_release);
}

// The thread that waits unmaps nothing meanwhile, so the kernel is asked once a wait for a page.
// Other threads could, but a program must not (docs/internals/windows.md).
bool Window::may_touch(const std::byte* place, std::size_t bytes, MemoryUse use) {
    const auto first = reinterpret_cast<std::uintptr_t>(place);
    const std::uintptr_t page = first / page_bytes;
    const std::uint64_t wait = engine_.rank().wait_number();
    const bool is_one_page = (first + bytes - 1) / page_bytes == page;
    if (is_one_page && wait != 0 && touched_.wait == wait && touched_.page == page &&
        touched_.use >= use) {
        return true;
    }
    if (!has_memory_surely(place, bytes, use)) {
        return false;
    }
    if (is_one_page) {
        touched_ = {.wait = wait, .page = page, .use = use};
    }
    return true;
}

bool Window::move_offered(const OfferCell& cell, std::uint64_t& before) {
    const std::size_t bytes = cell.basic;
    const bool reads = cell.kind == OfferKind::read_word;
    auto* const place = reinterpret_cast<std::byte*>(cell.address);
    if (bytes == 0 || bytes > sizeof cell.operand || !is_own(place, bytes) ||
        !may_touch(place, bytes, reads ? MemoryUse::reads : MemoryUse::writes)) {
        return false;
    }
    std::memcpy(reads ? static_cast<void*>(&before) : place,
                reads ? place : static_cast<const void*>(&cell.operand), bytes);
    return true;
}

bool Window::change_offered(const OfferCell& cell, std::uint64_t& before) {
    const datatype::Datatype& type = datatype::predefined_table[cell.basic];
    const auto bytes = static_cast<std::size_t>(type.size);
    auto* const place = reinterpret_cast<std::byte*>(cell.address);
    if (!type.predefined || !type.contiguous || bytes > sizeof cell.operand ||
        !is_own(place, bytes) || !may_touch(place, bytes, MemoryUse::writes)) {
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

// Copies what an origin of this node has in its memory.
Error Window::read_of_origin(int origin, std::uint64_t address, void* to, std::uint64_t bytes) {
    const Buffer source = {.base = reinterpret_cast<void*>(address),
                           .count = static_cast<MPI_Count>(bytes),
                           .type = &datatype::basic(MPI_BYTE)};
    return PeerMemory(communicator_.endpoint(origin), source,
                      control_.rank(origin).accumulate_mutex, mutex_user())
        .read(to, 0, source.count);
}

bool Window::write_offered(int origin, const OfferCell& cell) {
    if (cell.operand < sizeof(ServedHead) || cell.operand > largest_request) {
        return false;
    }
    std::vector<std::byte> request(cell.operand);
    if (Error error = read_of_origin(origin, cell.address, request.data(), cell.operand)) {
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

bool Window::write_blocks_offered(int origin, const OfferCell& cell, OfferedBlocks blocks) {
    const std::uint64_t bytes = std::uint64_t{blocks.count} * blocks.bytes;
    if (bytes == 0 || bytes > static_cast<std::uint64_t>(data_bytes_per_request) ||
        !may_be_offered(blocks.stride)) {
        return false;
    }
    const std::int64_t to_last = blocks.stride * (std::int64_t{blocks.count} - 1);
    auto* const first = reinterpret_cast<std::byte*>(cell.address);
    const auto* const lowest = reinterpret_cast<const std::byte*>(
        cell.address + static_cast<std::uint64_t>(std::min<std::int64_t>(to_last, 0)));
    const auto span = static_cast<std::size_t>(std::abs(to_last)) + blocks.bytes;
    if (!is_own(lowest, span) || !has_memory_surely(lowest, span, MemoryUse::writes)) {
        return false;
    }
    const std::unique_ptr<std::byte[]> data(new std::byte[bytes]);
    if (Error error = read_of_origin(origin, blocks.data, data.get(), bytes)) {
        error.drop();
        return false;
    }
    datatype::copy_blocks(first, blocks.stride, data.get(), blocks.bytes, blocks.count,
                          blocks.bytes);
    return true;
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
