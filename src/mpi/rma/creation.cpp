// How a window is made and ends. All ranks find out together whether it can be made.
//
// On each node the first of its ranks takes an extent for those of the node. Ranks of several nodes
// then tell each other where their memory is.

#include <algorithm>
#include <bit>
#include <utility>

#include "base/invariant.hpp"
#include "mpi/coll/agreement.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/rma/heap.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

// Above what any node has, and small enough for the sum of a node's ranks.
constexpr MPI_Aint largest_part = MPI_Aint{1} << 46;

// Bytes that a part occupies. A part of a page or more begins a page, because its rank commits its
// pages and thereby places them.
std::uint64_t padded(std::uint64_t size, bool contiguous) {
    if (contiguous) {
        return size;
    }
    return size >= page_bytes ? whole_pages(size)
                              : (size + node::cache_line_bytes - 1) / node::cache_line_bytes *
                                    node::cache_line_bytes;
}

std::uint64_t aligned(std::uint64_t place, std::uint64_t alignment) {
    return (place + alignment - 1) / alignment * alignment;
}

std::uint64_t begin_of_data(int ranks, std::uint64_t all_bytes) {
    const std::uint64_t control = ControlBlock::bytes(static_cast<std::uint64_t>(ranks));
    return all_bytes >= page_bytes ? whole_pages(control) : control;
}

template <typename Value>
message::Buffer bytes_of(Value& value) {
    return {.base = &value, .count = sizeof value, .type = &datatype::basic(MPI_BYTE)};
}

int flavour_attribute(Flavour flavour) {
    switch (flavour) {
    case Flavour::create:
        return MPI_WIN_FLAVOR_CREATE;
    case Flavour::allocate:
        return MPI_WIN_FLAVOR_ALLOCATE;
    case Flavour::dynamic:
        return MPI_WIN_FLAVOR_DYNAMIC;
    case Flavour::shared:
        break;
    }
    return MPI_WIN_FLAVOR_SHARED;
}

} // namespace

// The word of the first rank of a node to the others.
struct Window::Extent {
    std::uint64_t offset; // 0: none was to be had
    int error_class;
};

// The room that the ranks of this node have in the extent.
struct Window::Room {
    std::uint64_t begin = 0;  // of the data
    std::uint64_t memory = 0; // bytes that are committed
    std::uint64_t space = 0;  // bytes of addresses
    std::uint64_t alignment = page_bytes;
};

// The part of its node's extent that a rank wants, or the sum of all parts.
struct Window::Part {
    std::int64_t bytes;      // without gaps
    std::int64_t gaps;       // bytes, if parts are apart
    std::int64_t aligned;    // ranks of all nodes that want more than a cache line's alignment
    std::int64_t contiguous; // ranks that want no gaps
    std::int64_t failed;     // ranks
    std::int64_t flavours;   // 16 bits for the ranks of each
};

// (Modulo the number's size, where ranks are many.)
std::int64_t Window::ranks_of_flavour(int ranks) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(ranks)
                                     << 16 * static_cast<unsigned>(flavour_));
}

Error Window::agree(Error own) const {
    return coll::Collectives(engine_, communicator_)
        .agree(own, "another rank could not make its part of the window");
}

// The sums: of bytes for this node, and of failed ranks.
Error Window::add_up(const Part& own, Part& sum) {
    coll::Collectives collectives(engine_, communicator_);
    sum = {};
    if (!spans_nodes_) {
        return collectives.allreduce(&own, &sum, sizeof sum / sizeof sum.bytes,
                                     datatype::basic(MPI_INT64_T), coll::Op(coll::OpKind::sum));
    }
    std::vector<Part> parts(static_cast<std::size_t>(size()));
    Part mine = own;
    if (Error error = collectives.allgather(bytes_of(mine), coll::Blocks(bytes_of(parts[0])))) {
        return error;
    }
    for (int rank = 0; rank < size(); ++rank) {
        const Part& its = parts[static_cast<std::size_t>(rank)];
        const bool is_here = communicator_.endpoint(rank) < engine_.rank().size;
        sum.bytes += is_here ? its.bytes : 0;
        sum.gaps += is_here ? its.gaps : 0;
        sum.aligned += its.aligned;
        sum.contiguous += its.contiguous;
        sum.failed += its.failed;
        sum.flavours += its.flavours;
    }
    return {};
}

// Gives this node's extent to its ranks, and the first node's error that has none to all.
Error Window::share_extent(Extent& extent) const {
    coll::Collectives collectives(engine_, communicator_);
    if (!spans_nodes_) {
        return collectives.bcast(bytes_of(extent), 0);
    }
    std::vector<Extent> extents(static_cast<std::size_t>(size()));
    if (Error error = collectives.allgather(bytes_of(extent), coll::Blocks(bytes_of(extents[0])))) {
        return error;
    }
    extent = extents[static_cast<std::size_t>(leader_)];
    for (const Extent& its : extents) {
        if (its.error_class != MPI_SUCCESS) {
            extent.error_class = its.error_class;
            break;
        }
    }
    return {};
}

// Collective, if a rank wants a larger alignment than all parts have: the addresses that the parts
// of this node then take up, and the alignment of the extent's mapping. What lies between parts is
// never committed, so it is no memory.
Error Window::align_parts(const WindowPlan& plan, Room& room) const {
    struct Wish {
        std::uint64_t bytes;
        std::uint64_t alignment;
    };
    Wish own = {.bytes = owns_memory_ ? static_cast<std::uint64_t>(plan.size) : 0,
                .alignment = plan.alignment};
    std::vector<Wish> wishes(static_cast<std::size_t>(size()));
    if (Error error = coll::Collectives(engine_, communicator_)
                          .allgather(bytes_of(own), coll::Blocks(bytes_of(wishes[0])))) {
        return error;
    }
    std::uint64_t place = room.begin;
    for (int rank = 0; rank < size(); ++rank) {
        if (communicator_.endpoint(rank) >= engine_.rank().size) {
            continue;
        }
        const Wish& its = wishes[static_cast<std::size_t>(rank)];
        room.alignment = std::max(room.alignment, its.alignment);
        place = place_of_part(place, rank, its.alignment) + padded(its.bytes, contiguous_);
    }
    room.space = std::max(room.memory, place);
    return {};
}

// The first rank of the node takes memory of the heap for its ranks, which all map it.
Error Window::take_extent(const Room& room) {
    const node::Segment& segment = engine_.rank().segment;
    Extent extent = {.offset = 0, .error_class = MPI_SUCCESS};
    Error own;
    WindowHeap heap;
    if (communicator_.rank() == leader_) {
        own = WindowHeap::open(segment, engine_.rank().index, heap);
        if (!own) {
            own = heap.take(room.space, room.memory, extent.offset);
        }
        if (!own) {
            own = WindowHeap::commit(
                segment, extent.offset,
                ControlBlock::bytes(static_cast<std::uint64_t>(communicator_.size())));
            if (own) {
                heap.give_back(std::exchange(extent.offset, 0));
            }
        }
        extent.error_class = own ? own.error_class() : MPI_SUCCESS;
    }
    Error told = share_extent(extent);
    if (!own && (told || extent.error_class != MPI_SUCCESS) && extent.offset != 0 &&
        communicator_.rank() == leader_) {
        heap.give_back(extent.offset); // of another node is none
    }
    if (own) {
        told.drop();
        return own;
    }
    if (told) {
        return told;
    }
    if (extent.error_class != MPI_SUCCESS) {
        return fail(extent.error_class, "the first rank could not take memory for the window");
    }
    extent_ = extent.offset;
    Error mapped =
        SharedPart::map(segment, extent_, whole_pages(room.space), part_, room.alignment);
    if (!mapped) {
        control_ = ControlBlock(part_.base(), communicator_.size());
    }
    return mapped;
}

// Tells ranks of other nodes where this one's memory is. The first rank of the node notes theirs in
// its control block, and the others look there after they have agreed.
Error Window::exchange_places() {
    struct Whereabouts {
        std::uint64_t address;
        std::uint64_t size;
        std::int64_t displacement_unit;
    };
    const RankControl& own = control_.rank(communicator_.rank());
    Whereabouts mine = {.address = reinterpret_cast<std::uint64_t>(at(communicator_.rank())),
                        .size = own.size,
                        .displacement_unit = own.displacement_unit};
    std::vector<Whereabouts> places(static_cast<std::size_t>(size()));
    Error error = coll::Collectives(engine_, communicator_)
                      .allgather(bytes_of(mine), coll::Blocks(bytes_of(places[0])));
    for (int rank = 0; !error && communicator_.rank() == leader_ && rank < size(); ++rank) {
        if (communicator_.endpoint(rank) < engine_.rank().size) {
            continue;
        }
        const Whereabouts& its = places[static_cast<std::size_t>(rank)];
        RankControl& control = control_.rank(rank);
        control.place = its.address;
        control.whole_size = its.size;
        control.displacement_unit = its.displacement_unit;
        control.process = RankControl::of_other_node;
    }
    return agree(std::exchange(error, Error()));
}

// Where a rank's part begins whose lower neighbour's ends at `end`. Only the first of the parts
// without gaps can be aligned.
std::uint64_t Window::place_of_part(std::uint64_t end, int rank, std::uint64_t alignment) const {
    return rank == 0 || !contiguous_ ? aligned(end, alignment) : end;
}

// Where this rank's memory begins in the extent: behind that of the lower ranks of the node. (Those
// of other nodes have no size yet.)
void Window::settle_place(const WindowPlan& plan, const Room& room) {
    std::uint64_t place = room.begin;
    for (int rank = 0; rank <= communicator_.rank(); ++rank) {
        const RankControl& part = control_.rank(rank);
        place = place_of_part(place, rank, std::uint64_t{1} << part.alignment_shift);
        place += rank < communicator_.rank() ? padded(part.size, contiguous_) : 0;
    }
    WARREN_INVARIANT(place + static_cast<std::uint64_t>(plan.size) <= room.space,
                     "a part lies within the extent");
    control_.rank(communicator_.rank()).place = place;
}

// Processes of other worlds have endpoints behind those of this one.
bool Window::spans_worlds() const {
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        if (communicator_.endpoint(rank) >= engine_.rank().world_size) {
            return true;
        }
    }
    return false;
}

Error Window::create(WindowPlan& plan) {
    flavour_ = plan.flavour;
    owns_memory_ = flavour_ == Flavour::allocate || flavour_ == Flavour::shared;
    spans_nodes_ = coll::spans_nodes(engine_.rank(), communicator_.map());
    while (communicator_.endpoint(leader_) >= engine_.rank().size) {
        ++leader_;
    }
    if (!plan.error && plan.size > largest_part) {
        plan.error = fail(MPI_ERR_NO_MEM, "size = %lld is more than a node has",
                          static_cast<long long>(plan.size));
    }
    if (!plan.error && plan.alignment > largest_part) {
        plan.error = fail(MPI_ERR_NO_MEM, "an alignment of %llu bytes is more than a node has",
                          static_cast<unsigned long long>(plan.alignment));
    }
    if (!owns_memory_ || plan.size <= 0 || plan.error) {
        plan.alignment = node::cache_line_bytes;
    }
    if (spans_nodes_ && flavour_ == Flavour::shared && !plan.error) {
        plan.error =
            fail(MPI_ERR_RMA_SHARED,
                 "comm has %s, which share no memory "
                 "(MPI_Comm_split_type with MPI_COMM_TYPE_SHARED makes communicators of "
                 "those that do)",
                 spans_worlds() ? "processes of several worlds" : "ranks on several nodes");
    }
    if (spans_nodes_ && !plan.error && spans_worlds()) {
        plan.error = fail(MPI_ERR_UNSUPPORTED_OPERATION,
                          "comm has processes of several worlds: windows of this version of Warren "
                          "are for processes of one (MPI_COMM_WORLD's)");
    }
    const bool failed = static_cast<bool>(plan.error);
    const std::uint64_t bytes = failed || !owns_memory_ ? 0 : static_cast<std::uint64_t>(plan.size);
    const Part own = {.bytes = static_cast<std::int64_t>(bytes),
                      .gaps = static_cast<std::int64_t>(padded(bytes, false) - bytes),
                      .aligned = plan.alignment > node::cache_line_bytes ? 1 : 0,
                      .contiguous = plan.contiguous ? 1 : 0,
                      .failed = failed ? 1 : 0,
                      .flavours = ranks_of_flavour(1)};
    Part sum;
    if (Error error = add_up(own, sum)) {
        plan.error.drop();
        return error;
    }
    if (sum.failed > 0) {
        return agree(std::exchange(plan.error, Error()));
    }
    if (sum.flavours != ranks_of_flavour(size())) {
        return fail(MPI_ERR_NOT_SAME,
                    "another rank makes a window of another kind (MPI_Win_create, "
                    "…_allocate, …_allocate_shared, …_create_dynamic)");
    }
    contiguous_ = sum.contiguous > 0; // gaps only if all ranks allow them
    const auto data = static_cast<std::uint64_t>(sum.bytes + (contiguous_ ? 0 : sum.gaps));
    Room room;
    room.begin = begin_of_data(size(), data);
    room.memory = room.space = room.begin + data;
    if (sum.aligned > 0) {
        if (Error error = align_parts(plan, room)) {
            return error;
        }
    }
    return create_by(plan, room);
}

Error Window::create_by(WindowPlan& plan, const Room& room) {
    Error mapped = take_extent(room);
    if (extent_ == 0) {
        return mapped; // all ranks know
    }
    if (!mapped) {
        RankControl& own = control_.rank(communicator_.rank());
        own.place = flavour_ == Flavour::dynamic ? 0 : reinterpret_cast<std::uint64_t>(plan.base);
        // Nothing of a dynamic window is within the bounds that all windows have: see regions.hpp.
        own.size = own.whole_size = static_cast<std::uint64_t>(plan.size);
        own.displacement_unit = plan.displacement_unit;
        own.process = process_;
        own.alignment_shift = static_cast<std::uint32_t>(std::countr_zero(plan.alignment));
        server_.add(communicator_.context(), *this);
    }
    Error error = agree(std::exchange(mapped, Error()));
    if (!error && owns_memory_) {
        settle_place(plan, room);
        error = agree(commit_own(plan));
    }
    if (!error && spans_nodes_) {
        error = exchange_places();
    }
    if (error) {
        give_extent_back();
        return error;
    }
    values = {.base = flavour_ == Flavour::dynamic ? MPI_BOTTOM : at(communicator_.rank()),
              .size = plan.size,
              .displacement_unit = static_cast<int>(plan.displacement_unit),
              .flavour = flavour_attribute(flavour_)};
    return {};
}

namespace {

// The whole pages among these bytes.
struct Pages {
    Pages(std::byte* place, std::uint64_t size)
        : begin(reinterpret_cast<std::byte*>(whole_pages(reinterpret_cast<std::uint64_t>(place)))) {
        const auto before = static_cast<std::uint64_t>(begin - place);
        bytes = size > before ? (size - before) / page_bytes * page_bytes : 0;
    }
    std::byte* begin;
    std::uint64_t bytes;
};

} // namespace

// This rank's part of the extent: the kernel places its pages now, by criteria, or near the rank.
Error Window::commit_own(const WindowPlan& plan) const {
    const auto bytes = static_cast<std::uint64_t>(plan.size);
    const std::uint64_t place = control_.rank(communicator_.rank()).place;
    const auto commit = [&] {
        return WindowHeap::commit(engine_.rank().segment, extent_ + place, bytes);
    };
    if (plan.criteria == nullptr) {
        return commit();
    }
    const Pages pages(at(communicator_.rank()), bytes);
    if (Error error = plan.placing->bind(plan.criteria, pages.begin, pages.bytes)) {
        return error;
    }
    Error error = commit();
    // The pages have their places. The file would keep the policy, for the next window there.
    plan.placing->unbind(pages.begin, pages.bytes);
    return error;
}

// The other ranks may be later: the extent may be another window's before they come here.
void Window::give_extent_back() {
    part_.drop();
    if (communicator_.rank() != leader_) {
        return;
    }
    WindowHeap heap;
    Error error = WindowHeap::open(engine_.rank().segment, engine_.rank().index, heap);
    if (!error) {
        heap.give_back(extent_);
    }
    error.drop(); // the extent stays taken, which does no harm
}

Error Window::check_end() const {
    if (!epochs_.none_open()) {
        return fail(MPI_ERR_RMA_SYNC, "an epoch of the window is open: %s",
                    epochs_.passive()       ? "a lock is held"
                    : epochs_.has_started() ? "MPI_Win_complete has not been called"
                                            : "MPI_Win_wait has not been called");
    }
    return {};
}

Error Window::end() {
    if (Error error = complete_collected()) {
        return error;
    }
    // Nobody accesses the memory any more.
    if (Error error = coll::Collectives(engine_, communicator_).barrier()) {
        return error;
    }
    regions_.give_back();
    give_extent_back();
    return {};
}

} // namespace warren::rma
