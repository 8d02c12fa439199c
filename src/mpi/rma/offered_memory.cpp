#include "mpi/rma/offered_memory.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "mpi/rma/served_memory.hpp"
#include "mpi/rma/wait_reason.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

std::uint64_t word_of_element(const void* element, const datatype::Datatype& type) {
    std::uint64_t word = 0;
    std::memcpy(&word, element, static_cast<std::size_t>(type.size));
    return word;
}

} // namespace

// A target whose processor others need would take longer than the kernel.
bool Window::may_offer() {
    OfferBox& own = control_.rank(communicator_.rank()).offer;
    return !offering_ && spins() &&
           own.is_free([this] { return has_ended(engine_, communicator_, offered_to_); }) &&
           offers_.wants_one();
}

Error Window::offer(int target, OfferCell cell, bool& taken, std::uint64_t& before) {
    offered_to_ = target;
    // Progress gives the rank's lock back while it calls a tool's functions, and other threads then
    // make operations.
    offering_ = true;
    Error error = await_offer(target, cell, taken, before);
    offering_ = false;
    return error;
}

Error Window::await_offer(int target, OfferCell cell, bool& taken, std::uint64_t& before) {
    OfferBox& box = control_.rank(communicator_.rank()).offer;
    cell.number = server_.number_offer();
    cell.target = static_cast<std::uint32_t>(target);
    box.has_cell.store(1, std::memory_order_relaxed);
    box.state.store(OfferBox::word(cell.number, OfferState::offered), std::memory_order_release);
    engine_.tell(communicator_.endpoint(target),
                 {.kind = message::kind::window_notice,
                  .context = communicator_.context(),
                  .source = communicator_.rank(),
                  .tag = static_cast<std::int32_t>(Notice::offered)},
                 &cell, sizeof cell);
    const std::uint64_t begin = fibre::ticks();
    while (true) {
        const OfferState state = OfferBox::state_of(box.state.load(std::memory_order_acquire));
        if (state == OfferState::done || state == OfferState::declined) {
            taken = state == OfferState::done;
            before = box.before;
            break;
        }
        if (state == OfferState::offered && fibre::ticks() - begin > offer_ticks &&
            box.leave_offered(cell.number, OfferState::none)) {
            taken = false;
            break;
        }
        if (state == OfferState::claimed && has_ended(engine_, communicator_, target)) {
            return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended", target);
        }
        engine_.progress();
    }
    offers_.note(taken);
    return {};
}

std::uint64_t OfferedMemory::element_at(const datatype::Datatype& type, MPI_Count first,
                                        MPI_Count bytes) const {
    return type.contiguous && bytes == type.size ? word_at(first, bytes) : 0;
}

std::uint64_t OfferedMemory::word_at(MPI_Count first, MPI_Count bytes) const {
    iovec piece = {};
    MPI_Count covered = 0;
    if (bytes == 0 || bytes > static_cast<MPI_Count>(sizeof(OfferCell::operand)) ||
        !window_.may_offer() ||
        layout_.type->pieces(layout_.base, layout_.count, first, bytes, &piece, 1, covered) != 1 ||
        covered != bytes) {
        return 0;
    }
    return reinterpret_cast<std::uint64_t>(piece.iov_base);
}

Error OfferedMemory::accumulate(const Accumulating& what, void* before, MPI_Count first,
                                MPI_Count bytes) {
    if (const std::uint64_t address = element_at(what.basic, first, bytes)) {
        const OfferCell cell = {
            .address = address,
            .operand = changes_target(what.op) ? word_of_element(what.own.packed(), what.basic) : 0,
            .kind = OfferKind::accumulate,
            .operation = static_cast<std::uint8_t>(what.op.kind()),
            .basic = index_of(what.basic),
            .fetches = before != nullptr};
        bool taken = false;
        std::uint64_t word = 0;
        Error error = window_.offer(target_, cell, taken, word);
        if (error || taken) {
            if (before != nullptr) {
                std::memcpy(before, &word, static_cast<std::size_t>(bytes));
            }
            return error;
        }
    }
    return peer_.accumulate(what, before, first, bytes);
}

Error OfferedMemory::compare_and_swap(const void* from, const void* compared, void* before) {
    const datatype::Datatype& type = *layout_.type;
    if (const std::uint64_t address = element_at(type, 0, type.size)) {
        const OfferCell cell = {.address = address,
                                .operand = word_of_element(from, type),
                                .compared = word_of_element(compared, type),
                                .kind = OfferKind::compare_and_swap,
                                .basic = index_of(type)};
        bool taken = false;
        std::uint64_t word = 0;
        Error error = window_.offer(target_, cell, taken, word);
        if (error || taken) {
            std::memcpy(before, &word, static_cast<std::size_t>(type.size));
            return error;
        }
    }
    return peer_.compare_and_swap(from, compared, before);
}

Error Window::offer_blocks(int target, std::uint64_t first, const OfferedBlocks& blocks,
                           bool& taken) {
    control_.rank(communicator_.rank()).offer.blocks = blocks;
    std::uint64_t nothing = 0;
    return offer(target, {.address = first, .kind = OfferKind::write_blocks}, taken, nothing);
}

// Whether the data is in so many and so small pieces that the target is quicker.
bool OfferedMemory::is_in_small_pieces(MPI_Count first, MPI_Count bytes) const {
    iovec pieces[least_offered_pieces];
    MPI_Count covered = 0;
    return layout_.type->pieces(layout_.base, layout_.count, first, bytes, pieces,
                                least_offered_pieces, covered) == least_offered_pieces &&
           covered <= largest_offered_piece * least_offered_pieces;
}

// Offers as much as one offer has room for, from the first byte on; `done`: what has been written.
Error OfferedMemory::offer_part(const std::byte* data, MPI_Count first, MPI_Count bytes,
                                MPI_Count& done) {
    bool taken = false;
    Error error;
    const datatype::EvenBlocks blocks = datatype::even_blocks(layout_);
    const bool are_even = blocks.count > 0 && blocks.bytes <= largest_offered_piece &&
                          may_be_offered(blocks.stride) && first % blocks.bytes == 0 &&
                          bytes >= blocks.bytes;
    if (are_even) {
        const MPI_Count count = std::min(bytes, data_bytes_per_request) / blocks.bytes;
        const auto place = reinterpret_cast<std::uint64_t>(blocks.first) +
                           static_cast<std::uint64_t>(first / blocks.bytes * blocks.stride);
        done = count * blocks.bytes;
        error = window_.offer_blocks(target_, place,
                                     {.data = reinterpret_cast<std::uint64_t>(data),
                                      .stride = blocks.stride,
                                      .count = static_cast<std::uint32_t>(count),
                                      .bytes = static_cast<std::uint32_t>(blocks.bytes)},
                                     taken);
    } else {
        ServedHead head = {.kind = ServedKind::write};
        const std::vector<std::byte> request =
            served_request(layout_, head, first, bytes, 1, data, nullptr, done);
        const OfferCell cell = {.address = reinterpret_cast<std::uint64_t>(request.data()),
                                .operand = request.size(),
                                .kind = OfferKind::write};
        std::uint64_t nothing = 0;
        error = window_.offer(target_, cell, taken, nothing);
    }
    done = taken ? done : 0;
    return error;
}

Error OfferedMemory::read(void* to, MPI_Count first, MPI_Count bytes) {
    if (const std::uint64_t address = word_at(first, bytes)) {
        bool taken = false;
        std::uint64_t word = 0;
        Error error = window_.offer(target_,
                                    {.address = address,
                                     .kind = OfferKind::read_word,
                                     .basic = static_cast<std::uint8_t>(bytes)},
                                    taken, word);
        if (error || taken) {
            std::memcpy(to, &word, static_cast<std::size_t>(bytes));
            return error;
        }
    }
    return peer_.read(to, first, bytes);
}

Error OfferedMemory::write(const void* from, MPI_Count first, MPI_Count bytes) {
    const auto* data = static_cast<const std::byte*>(from);
    if (const std::uint64_t address = word_at(first, bytes)) {
        OfferCell cell = {.address = address,
                          .kind = OfferKind::write_word,
                          .basic = static_cast<std::uint8_t>(bytes)};
        std::memcpy(&cell.operand, data, static_cast<std::size_t>(bytes));
        bool taken = false;
        std::uint64_t nothing = 0;
        Error error = window_.offer(target_, cell, taken, nothing);
        if (error || taken) {
            return error;
        }
    }
    while (!layout_.type->contiguous && is_in_small_pieces(first, bytes) && window_.may_offer()) {
        MPI_Count done = 0;
        if (Error error = offer_part(data, first, bytes, done)) {
            return error;
        }
        if (done == 0) {
            break;
        }
        data += done;
        first += done;
        bytes -= done;
    }
    return bytes > 0 ? peer_.write(data, first, bytes) : Error();
}

} // namespace warren::rma
