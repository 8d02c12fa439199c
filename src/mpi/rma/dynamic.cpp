// Memory that a rank attaches to a dynamic window. The window's addresses are those of the target's
// process; others look up whether they are attached (regions.hpp).

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
    std::size_t index = 0;
    if (!regions_.find_gap(region, index)) {
        return fail(MPI_ERR_RMA_ATTACH, "memory at %p is attached already", base);
    }
    return regions_.insert(index, region, control_.rank(communicator_.rank()).regions);
}

Error Window::detach(const void* base) {
    if (flavour_ != Flavour::dynamic) {
        return fail(MPI_ERR_RMA_FLAVOR, "the window is not a dynamic one");
    }
    if (!regions_.erase(reinterpret_cast<std::uintptr_t>(base),
                        control_.rank(communicator_.rank()).regions)) {
        return fail(MPI_ERR_RMA_ATTACH, "no memory at %p is attached", base);
    }
    return {};
}

Error Window::check_attached(int target, const Buffer& layout) {
    const RegionLine& line = control_.rank(target).regions;
    const datatype::Datatype& type = *layout.type;
    iovec pieces[64];
    MPI_Count covered = 0;
    for (MPI_Count first = 0; first < layout.bytes(); first += covered) {
        const std::size_t count = type.pieces(layout.base, layout.count, first,
                                              layout.bytes() - first, pieces, 64, covered);
        for (std::size_t i = 0; i < count; ++i) {
            bool found = false;
            if (Error error = regions_.contain(communicator_.endpoint(target), line,
                                               reinterpret_cast<std::uint64_t>(pieces[i].iov_base),
                                               pieces[i].iov_len, found)) {
                return error;
            }
            if (!found) {
                return fail(MPI_ERR_RMA_RANGE,
                            "%zu bytes at %p are not within the memory that rank %d has attached",
                            pieces[i].iov_len, pieces[i].iov_base, target);
            }
        }
    }
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
    return regions_.contain(begin, bytes);
}

} // namespace warren::rma
