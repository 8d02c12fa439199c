// The short ways of one-sided operations: a few elements of one predefined type, in memory that
// this rank may load and store, as one block; and their flush. See short_messages.hpp: false means
// that nothing has been done, and every check of the long way that could fail is a reason to say
// false.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/page.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

// The largest short operation: what is copied without a call.
inline constexpr std::uint64_t short_window_elements = 64;

// The window of a handle; null: the long way.
[[gnu::always_inline]] inline rma::Window* short_window(MPI_Win win) {
    Context* context = own_context;
    if (context == nullptr || context->rank.lock.closed() || context->failed_on != nullptr)
        [[unlikely]] {
        return nullptr;
    }
    return context->windows.find(win);
}

// Bytes of an element of a type without gaps; datatype::too_long: the long way.
[[gnu::always_inline]] inline std::uint64_t short_size(MPI_Datatype datatype) {
    const std::uintptr_t index =
        reinterpret_cast<std::uintptr_t>(datatype) - datatype::predefined_first;
    return index < datatype::predefined_limit ? datatype::short_sizes[index] : datatype::too_long;
}

// MPI_BOTTOM and MPI_IN_PLACE are below the first page.
[[gnu::always_inline]] inline bool is_memory(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) >= first_address;
}

// Where the elements of a short operation are; null: the long way.
[[gnu::always_inline]] inline std::byte* short_place(const void* origin, MPI_Count count,
                                                     MPI_Datatype datatype, int target,
                                                     MPI_Aint displacement, MPI_Win win,
                                                     std::uint64_t& bytes, rma::Window*& window) {
    const std::uint64_t size = short_size(datatype);
    const auto elements = static_cast<std::uint64_t>(count);
    if (size == datatype::too_long || elements > short_window_elements || !is_memory(origin))
        [[unlikely]] {
        return nullptr;
    }
    window = short_window(win);
    if (window == nullptr) [[unlikely]] {
        return nullptr;
    }
    bytes = elements * size;
    return window->reach(target, displacement, bytes);
}

[[gnu::always_inline]] inline bool short_put(const void* origin_addr, MPI_Count origin_count,
                                             MPI_Datatype origin_datatype, int target_rank,
                                             MPI_Aint target_disp, MPI_Count target_count,
                                             MPI_Datatype target_datatype, MPI_Win win) {
    std::uint64_t bytes = 0;
    rma::Window* window = nullptr;
    if (origin_count != target_count || origin_datatype != target_datatype) [[unlikely]] {
        return false;
    }
    std::byte* place = short_place(origin_addr, origin_count, origin_datatype, target_rank,
                                   target_disp, win, bytes, window);
    if (place == nullptr) [[unlikely]] {
        return false;
    }
    window->note_store();
    rma::Window::copy_short(place, origin_addr, bytes);
    return true;
}

[[gnu::always_inline]] inline bool short_get(void* origin_addr, MPI_Count origin_count,
                                             MPI_Datatype origin_datatype, int target_rank,
                                             MPI_Aint target_disp, MPI_Count target_count,
                                             MPI_Datatype target_datatype, MPI_Win win) {
    std::uint64_t bytes = 0;
    rma::Window* window = nullptr;
    if (origin_count != target_count || origin_datatype != target_datatype) [[unlikely]] {
        return false;
    }
    const std::byte* place = short_place(origin_addr, origin_count, origin_datatype, target_rank,
                                         target_disp, win, bytes, window);
    if (place == nullptr) [[unlikely]] {
        return false;
    }
    window->order_load();
    rma::Window::copy_short(origin_addr, place, bytes);
    return true;
}

// Sums of 64-bit integers, which programs count with.
[[gnu::always_inline]] inline bool is_short_sum(MPI_Datatype datatype, MPI_Op op) {
    using datatype::Element;
    const datatype::Element element = datatype::basic(datatype).element;
    return op == MPI_SUM && (element == Element::int64 || element == Element::uint64);
}

// Any other predefined operation on one element; false: it is none.
[[gnu::always_inline]] inline bool short_combine(const void* origin, void* result,
                                                 MPI_Datatype datatype, int target,
                                                 std::byte* place, MPI_Op op, rma::Window& window) {
    const coll::Op* its = own_context->operations.find(op);
    return its != nullptr &&
           window.combine_one(target, place, *its, datatype::basic(datatype), origin, result);
}

[[gnu::always_inline]] inline bool short_accumulate(const void* origin_addr, MPI_Count origin_count,
                                                    MPI_Datatype origin_datatype, int target_rank,
                                                    MPI_Aint target_disp, MPI_Count target_count,
                                                    MPI_Datatype target_datatype, MPI_Op op,
                                                    MPI_Win win) {
    std::uint64_t bytes = 0;
    rma::Window* window = nullptr;
    if (origin_count != 1 || target_count != 1 || origin_datatype != target_datatype) [[unlikely]] {
        return false;
    }
    std::byte* place =
        short_place(origin_addr, 1, origin_datatype, target_rank, target_disp, win, bytes, window);
    if (place == nullptr) [[unlikely]] {
        return false;
    }
    if (!is_short_sum(origin_datatype, op)) {
        return short_combine(origin_addr, nullptr, origin_datatype, target_rank, place, op,
                             *window);
    }
    window->add(target_rank, place, origin_addr, nullptr);
    return true;
}

[[gnu::always_inline]] inline bool short_fetch_and_op(const void* origin_addr, void* result_addr,
                                                      MPI_Datatype datatype, int target_rank,
                                                      MPI_Aint target_disp, MPI_Op op,
                                                      MPI_Win win) {
    std::uint64_t bytes = 0;
    rma::Window* window = nullptr;
    // (Programs that only fetch give any address as origin.)
    const void* origin = op == MPI_NO_OP ? result_addr : origin_addr;
    std::byte* place =
        short_place(origin, 1, datatype, target_rank, target_disp, win, bytes, window);
    if (place == nullptr || !is_memory(result_addr)) [[unlikely]] {
        return false;
    }
    if (!is_short_sum(datatype, op)) {
        return short_combine(origin, result_addr, datatype, target_rank, place, op, *window);
    }
    window->add(target_rank, place, origin, result_addr);
    return true;
}

[[gnu::always_inline]] inline bool
short_compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                       MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win) {
    using datatype::Element;
    std::uint64_t bytes = 0;
    rma::Window* window = nullptr;
    std::byte* place =
        short_place(origin_addr, 1, datatype, target_rank, target_disp, win, bytes, window);
    if (place == nullptr || !is_memory(compare_addr) || !is_memory(result_addr)) [[unlikely]] {
        return false;
    }
    // Words of 4 and 8 bytes, which programs lock and link with.
    const datatype::Datatype& type = datatype::basic(datatype);
    switch (type.element) {
    case Element::int64:
    case Element::uint64:
        window->swap<std::uint64_t>(target_rank, place, origin_addr, compare_addr, result_addr);
        return true;
    case Element::int32:
    case Element::uint32:
        window->swap<std::uint32_t>(target_rank, place, origin_addr, compare_addr, result_addr);
        return true;
    default:
        return window->swap_one(target_rank, place, type, origin_addr, compare_addr, result_addr);
    }
}

[[gnu::always_inline]] inline bool short_win_lock(int lock_type, int rank, int assertions,
                                                  MPI_Win win) {
    rma::Window* window = short_window(win);
    return window != nullptr && assertions == 0 && window->lock_at_once(lock_type, rank);
}

[[gnu::always_inline]] inline bool short_win_unlock(int rank, MPI_Win win) {
    rma::Window* window = short_window(win);
    return window != nullptr && window->unlock_at_once(rank);
}

[[gnu::always_inline]] inline bool short_win_flush(int rank, MPI_Win win) {
    rma::Window* window = short_window(win);
    if (window == nullptr || static_cast<unsigned>(rank) >= static_cast<unsigned>(window->size()) ||
        !window->epochs().passive(rank)) [[unlikely]] {
        return false;
    }
    if (!window->complete_operations()) [[unlikely]] {
        return false;
    }
    window->poll();
    return true;
}

} // namespace warren::mpi
