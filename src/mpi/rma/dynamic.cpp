// Memory that a rank attaches to a dynamic window. The window's addresses are those of the target's
// process, so that others need no list of regions; the owner keeps one to find its own mistakes.

#include <algorithm>

#include "mpi/rma/window.hpp"

namespace warren::rma {

Error Window::attach(void* base, MPI_Aint size) {
    if (flavour_ != Flavour::dynamic) {
        return fail(MPI_ERR_RMA_FLAVOR, "the window is not a dynamic one");
    }
    if (size < 0) {
        return fail(MPI_ERR_SIZE, "size = %lld is negative", static_cast<long long>(size));
    }
    if (base == nullptr && size > 0) {
        return fail(MPI_ERR_BASE, "base is a null pointer, but the region has %lld bytes",
                    static_cast<long long>(size));
    }
    if (reinterpret_cast<std::uintptr_t>(base) > UINTPTR_MAX - static_cast<std::uintptr_t>(size)) {
        return fail(MPI_ERR_SIZE, "size = %lld is beyond the end of the address space",
                    static_cast<long long>(size));
    }
    const Region region = {.base = reinterpret_cast<std::uintptr_t>(base),
                           .size = static_cast<std::uint64_t>(size)};
    for (const Region& other : regions_) {
        if (other.base == region.base ||
            (other.base < region.base + region.size && region.base < other.base + other.size)) {
            return fail(MPI_ERR_RMA_ATTACH, "memory at %p is attached already", base);
        }
    }
    regions_.push_back(region);
    return {};
}

Error Window::detach(const void* base) {
    if (flavour_ != Flavour::dynamic) {
        return fail(MPI_ERR_RMA_FLAVOR, "the window is not a dynamic one");
    }
    const auto found = std::find_if(regions_.begin(), regions_.end(), [base](const Region& region) {
        return region.base == reinterpret_cast<std::uintptr_t>(base);
    });
    if (found == regions_.end()) {
        return fail(MPI_ERR_RMA_ATTACH, "no memory at %p is attached", base);
    }
    regions_.erase(found);
    return {};
}

bool Window::is_own(const std::byte* place, std::size_t bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(place);
    const auto within = [=](std::uintptr_t base, std::uint64_t size) {
        return begin - base <= size && bytes <= size - (begin - base);
    };
    if (flavour_ != Flavour::dynamic) {
        const RankControl& own = control_.rank(communicator_.rank());
        return within(reinterpret_cast<std::uintptr_t>(at(communicator_.rank())), own.size);
    }
    return std::any_of(regions_.begin(), regions_.end(),
                       [&](const Region& region) { return within(region.base, region.size); });
}

} // namespace warren::rma
