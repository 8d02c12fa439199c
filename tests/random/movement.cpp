// Collective operations that move data: from everybody, to everybody, between neighbours.
//
// All have one model: a rank sends blocks and receives blocks, each with a key that both its ends
// know. A block has a size in units that they know too, and a datatype of each one's own.
#include "program.hpp"

#include <algorithm>

namespace programs {

namespace {

enum class Kind {
    barrier,
    bcast,
    gather,
    gatherv,
    scatter,
    scatterv,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    alltoallw,
    neighbor_allgather,
    neighbor_allgatherv,
    neighbor_alltoall,
    neighbor_alltoallv,
    neighbor_alltoallw,
};
const char* const names[] = {"barrier",
                             "bcast",
                             "gather",
                             "gatherv",
                             "scatter",
                             "scatterv",
                             "allgather",
                             "allgatherv",
                             "alltoall",
                             "alltoallv",
                             "alltoallw",
                             "neighbor_allgather",
                             "neighbor_allgatherv",
                             "neighbor_alltoall",
                             "neighbor_alltoallv",
                             "neighbor_alltoallw"};

// A block to send or to receive: its units and what is in it.
struct Piece {
    long units = 0;
    Bits key = 0;
    bool moved = true;          // no: nothing comes, all stays (no neighbour, own block)
    std::optional<Bits> before; // received in place of this
};

enum class Shape { uniform, varied, bytes }; // counts: one; a list; a list with types and bytes

// The blocks of one side of an operation, as its arguments say them.
struct Arguments {
    std::shared_ptr<Buffer> buffer = std::make_shared<Buffer>();
    std::vector<Piece> pieces;
    std::vector<Block> blocks;
    std::vector<int> counts, displacements;
    std::vector<MPI_Count> large_counts;
    std::vector<MPI_Aint> large_displacements;
    std::vector<MPI_Datatype> types;
    TypePtr shared; // by all blocks, unless each has its own

    void* data = nullptr;
    int count = 0;
    MPI_Datatype type = MPI_BYTE;

    void lay_out(Draw& draw, const Unit& unit, int quantum, Shape shape);
    void fill(Bits round, bool sending) const;
    void free_types();
};

// Each piece has a multiple of `quantum` units.
void Arguments::lay_out(Draw& draw, const Unit& unit, int quantum, Shape shape) {
    long most = 1;
    for (const Piece& piece : pieces) {
        most = std::max(most, piece.units);
    }
    const std::size_t n = pieces.size();
    const bool contiguous_order = shape == Shape::uniform || draw.one_in(3);
    std::vector<int> order = draw.permutation(static_cast<int>(n));
    if (contiguous_order) {
        std::sort(order.begin(), order.end());
    }
    const auto one_type = [&](long units) {
        const int per_element = draw.divisor(quantum);
        return make_type(draw, unit, per_element, std::max<long>(1, units / per_element));
    };
    if (shape != Shape::bytes) {
        shared = one_type(most);
        if (shared->extent() < shared->true_upper - shared->true_lower && n > 1) {
            shared = make_basic(unit.basics[0]); // interleaved: checked for one block only
            if (unit.basics.size() > 1) {
                Draw again(draw.bits());
                do {
                    shared = make_type(again, unit, 1, 1);
                } while (shared->extent() < shared->true_upper - shared->true_lower);
            }
        }
        type = shared->handle;
    }
    blocks.resize(n);
    counts.resize(n);
    displacements.resize(n);
    types.resize(n);
    Offset cursor = 0; // elements, or bytes
    for (int place : order) {
        const auto i = static_cast<std::size_t>(place);
        const TypePtr of_block = shared != nullptr ? shared : one_type(pieces[i].units);
        const long elements = pieces[i].units / of_block->units;
        if (shape == Shape::bytes) {
            const Offset start = cursor - of_block->true_lower + 64;
            const Offset aligned = (start / 16 + 1) * 16;
            displacements[i] = static_cast<int>(aligned);
            cursor = aligned + of_block->true_upper +
                     std::max<Offset>(0, elements - 1) * of_block->extent();
            blocks[i] = {of_block, elements, displacements[i]};
        } else {
            displacements[i] = static_cast<int>(cursor);
            blocks[i] = {of_block, elements, cursor * of_block->extent()};
            cursor += elements + (shape == Shape::varied ? draw.between(0, 2) : 0);
        }
        counts[i] = static_cast<int>(elements);
        types[i] = of_block->handle;
        count = counts[i];
    }
    large_counts.assign(counts.begin(), counts.end());
    large_displacements.assign(displacements.begin(), displacements.end());
    buffer->reserve(blocks);
    data = buffer->base();
    if (shape == Shape::uniform && n > 0) {
        count = counts[0];
    }
    // What is there for an address of no elements.
    counts.push_back(0);
    displacements.push_back(0);
    types.push_back(MPI_BYTE);
    large_counts.push_back(0);
    large_displacements.push_back(0);
}

void Arguments::fill(Bits round, bool sending) const {
    buffer->reset();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& piece = pieces[i];
        if (piece.before) {
            buffer->put(Buffer::held, blocks[i], hash(*piece.before, round));
        }
        if (piece.moved) {
            buffer->put(sending ? Buffer::both : Buffer::expected, blocks[i],
                        hash(piece.key, round));
        }
    }
}

void Arguments::free_types() {
    for (Block& block : blocks) {
        block.type->release();
    }
    if (shared != nullptr) {
        shared->release();
    }
}

struct Operation {
    Kind kind;
    Way way;
    int root_side = 0, root = 0;
    bool in_place = false;
    Unit unit;
    int quantum = 1, multiple = 1; // units of a block; of varied ones: at most
    bool varied = false;
    Bits key = 0;

    // Of the block from one rank to another (−1: to all), in a direction of the communicator.
    Bits key_of(int side, int from, int to) const { return hash(key, side, from, to + 1); }
    long units_of(int side, int from, int to) const {
        if (!varied) {
            return static_cast<long>(quantum) * multiple;
        }
        const bool exchanged = in_place && to >= 0; // alltoall in place: as much both ways
        const Bits number = exchanged ? hash(key, 1, std::min(from, to), std::max(from, to))
                                      : hash(key, 2, side, from, to + 1);
        return static_cast<long>(quantum) * static_cast<long>(number % (multiple + 1U));
    }
    Piece piece(int side, int from, int to) const {
        return {units_of(side, from, to), key_of(side, from, to), true, {}};
    }
};

bool is_neighbour(Kind kind) {
    return kind >= Kind::neighbor_allgather;
}
bool has_root(Kind kind) {
    return kind >= Kind::bcast && kind <= Kind::scatterv;
}
bool has_list(Kind kind) {
    switch (kind) {
    case Kind::gatherv:
    case Kind::scatterv:
    case Kind::allgatherv:
    case Kind::alltoallv:
    case Kind::alltoallw:
    case Kind::neighbor_allgatherv:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
        return true;
    default:
        return false;
    }
}
bool has_types(Kind kind) {
    return kind == Kind::alltoallw || kind == Kind::neighbor_alltoallw;
}

// How often rank was in the list before the place.
int occurrence(const Ranks& list, std::size_t place) {
    return static_cast<int>(
        std::count(list.begin(), list.begin() + static_cast<long>(place), list[place]));
}

// What the library says the neighbours are, where it chooses their order.
void ask_neighbours(const View& view, Ranks& sources, Ranks& destinations) {
    sources.push_back(0);
    destinations.push_back(0);
    MUST(MPI_Dist_graph_neighbors(view.comm, static_cast<int>(sources.size()) - 1, sources.data(),
                                  MPI_UNWEIGHTED, static_cast<int>(destinations.size()) - 1,
                                  destinations.data(), MPI_UNWEIGHTED));
    sources.pop_back();
    destinations.pop_back();
}

void neighbours(const Operation& op, const View& view, Arguments& out, Arguments& in) {
    const auto me = static_cast<std::size_t>(view.me);
    Ranks sources = view.of.sources[me], destinations = view.of.destinations[me];
    if (view.of.edges_in_any_order) {
        ask_neighbours(view, sources, destinations);
    }
    const bool grid = view.of.topology == Communicator::Topology::grid;
    const bool same = op.kind == Kind::neighbor_allgather || op.kind == Kind::neighbor_allgatherv;
    const auto edge = [&](const Ranks& list, std::size_t i, int from, int to, std::size_t number) {
        const int twin = grid ? static_cast<int>(number) : occurrence(list, i);
        return same ? op.piece(0, from, -1) : op.piece(twin + 1, from, to);
    };
    if (same) {
        out.pieces = {op.piece(0, view.me, -1)};
    }
    for (std::size_t i = 0; i < destinations.size() && !same; ++i) {
        out.pieces.push_back(edge(destinations, i, view.me, destinations[i], i));
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
        // What leaves a grid's rank downwards arrives from above.
        in.pieces.push_back(edge(sources, i, sources[i], view.me, i ^ 1U));
        in.pieces.back().moved = sources[i] != MPI_PROC_NULL;
    }
}

// What this rank sends and receives.
void pieces(const Operation& op, const View& view, Arguments& out, Arguments& in) {
    const int me = view.me, side = view.side, other = view.of.inter ? 1 - side : 0;
    const bool inter = view.of.inter;
    const bool is_root = op.root_side == side && op.root == me;
    const bool of_roots_group = inter && op.root_side == side;
    switch (op.kind) {
    case Kind::barrier:
        break;
    case Kind::bcast:
        if (is_root || !of_roots_group) {
            in.pieces = {op.piece(op.root_side, op.root, -1)};
            if (is_root) {
                in.pieces[0].before = in.pieces[0].key;
            }
        }
        break;
    case Kind::gather:
    case Kind::gatherv:
        if (!of_roots_group && !(is_root && op.in_place)) {
            out.pieces = {op.piece(side, me, -1)};
        }
        if (is_root) {
            for (int from = 0; from < view.remote_size(); ++from) {
                in.pieces.push_back(op.piece(other, from, -1));
            }
            if (op.in_place) {
                Piece& own = in.pieces[static_cast<std::size_t>(me)];
                own.before = own.key;
            }
        }
        break;
    case Kind::scatter:
    case Kind::scatterv:
        if (is_root) {
            for (int to = 0; to < view.remote_size(); ++to) {
                out.pieces.push_back(op.piece(side, op.root, to));
            }
        }
        if (!of_roots_group && !(is_root && op.in_place)) {
            in.pieces = {op.piece(op.root_side, op.root, me)};
        }
        break;
    case Kind::allgather:
    case Kind::allgatherv:
        if (!op.in_place) {
            out.pieces = {op.piece(side, me, -1)};
        }
        for (int from = 0; from < view.remote_size(); ++from) {
            in.pieces.push_back(op.piece(other, from, -1));
        }
        if (op.in_place) {
            Piece& own = in.pieces[static_cast<std::size_t>(me)];
            own.before = own.key;
        }
        break;
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
        for (int peer = 0; peer < view.remote_size(); ++peer) {
            if (!op.in_place) {
                out.pieces.push_back(op.piece(side, me, peer));
            }
            in.pieces.push_back(op.piece(other, peer, me));
            if (op.in_place) {
                in.pieces.back().before = op.key_of(side, me, peer);
            }
        }
        break;
    default:
        neighbours(op, view, out, in);
    }
}

// The count and displacement lists as the form wants them.
template <bool Large>
struct Lists {
    const Arguments& of;
    auto counts() const {
        if constexpr (Large) {
            return of.large_counts.data();
        } else {
            return of.counts.data();
        }
    }
    auto displacements() const {
        if constexpr (Large) {
            return of.large_displacements.data();
        } else {
            return of.displacements.data();
        }
    }
};

template <bool Large>
void call(Program& program, const Operation& op, const View& view, const ActivityPtr& activity,
          Arguments& out, Arguments& in) {
    const bool is_root = op.root_side == view.side && op.root == view.me;
    const int root = view.of.inter && op.root_side == view.side
                         ? (op.root == view.me ? MPI_ROOT : MPI_PROC_NULL)
                         : op.root;
    void* from = out.data;
    void* to = in.data;
    if (op.in_place) {
        if (op.kind == Kind::scatter || op.kind == Kind::scatterv) {
            to = is_root ? MPI_IN_PLACE : to;
        } else if (!has_root(op.kind) || is_root) {
            from = MPI_IN_PLACE;
        }
    }
    const Form form = op.way.form;
    const MPI_Comm comm = view.comm;
    const Lists<Large> sent{out}, received{in};
    // Neighbourhood's displacements in bytes are addresses in both forms.
    const MPI_Aint* far_out = out.large_displacements.data();
    const MPI_Aint* far_in = in.large_displacements.data();
#define CALL(Name, name, ...)                                                                      \
    if constexpr (Large) {                                                                         \
        perform(program, form, activity, LARGE_FORMS(Name, name), __VA_ARGS__);                    \
    } else {                                                                                       \
        perform(program, form, activity, FORMS(Name, name), __VA_ARGS__);                          \
    }                                                                                              \
    break
    switch (op.kind) {
    case Kind::barrier:
        perform(program, form, activity, FORMS(Barrier, barrier), comm);
        break;
    case Kind::bcast:
        CALL(Bcast, bcast, to, in.count, in.type, root, comm);
    case Kind::gather:
        CALL(Gather, gather, from, out.count, out.type, to, in.count, in.type, root, comm);
    case Kind::gatherv:
        CALL(Gatherv, gatherv, from, out.count, out.type, to, received.counts(),
             received.displacements(), in.type, root, comm);
    case Kind::scatter:
        CALL(Scatter, scatter, from, out.count, out.type, to, in.count, in.type, root, comm);
    case Kind::scatterv:
        CALL(Scatterv, scatterv, from, sent.counts(), sent.displacements(), out.type, to, in.count,
             in.type, root, comm);
    case Kind::allgather:
        CALL(Allgather, allgather, from, out.count, out.type, to, in.count, in.type, comm);
    case Kind::allgatherv:
        CALL(Allgatherv, allgatherv, from, out.count, out.type, to, received.counts(),
             received.displacements(), in.type, comm);
    case Kind::alltoall:
        CALL(Alltoall, alltoall, from, out.count, out.type, to, in.count, in.type, comm);
    case Kind::alltoallv:
        CALL(Alltoallv, alltoallv, from, sent.counts(), sent.displacements(), out.type, to,
             received.counts(), received.displacements(), in.type, comm);
    case Kind::alltoallw:
        CALL(Alltoallw, alltoallw, from, sent.counts(), sent.displacements(), out.types.data(), to,
             received.counts(), received.displacements(), in.types.data(), comm);
    case Kind::neighbor_allgather:
        CALL(Neighbor_allgather, neighbor_allgather, from, out.count, out.type, to, in.count,
             in.type, comm);
    case Kind::neighbor_allgatherv:
        CALL(Neighbor_allgatherv, neighbor_allgatherv, from, out.count, out.type, to,
             received.counts(), received.displacements(), in.type, comm);
    case Kind::neighbor_alltoall:
        CALL(Neighbor_alltoall, neighbor_alltoall, from, out.count, out.type, to, in.count, in.type,
             comm);
    case Kind::neighbor_alltoallv:
        CALL(Neighbor_alltoallv, neighbor_alltoallv, from, sent.counts(), sent.displacements(),
             out.type, to, received.counts(), received.displacements(), in.type, comm);
    case Kind::neighbor_alltoallw:
        CALL(Neighbor_alltoallw, neighbor_alltoallw, from, sent.counts(), far_out, out.types.data(),
             to, received.counts(), far_in, in.types.data(), comm);
    }
#undef CALL
}

Operation draw_operation(Program& program, Draw& draw, const Communicator& comm) {
    Operation op;
    const bool topology = comm.topology != Communicator::Topology::none;
    op.kind = static_cast<Kind>(topology && draw.one_in(2)
                                    ? draw.between(static_cast<int>(Kind::neighbor_allgather), 15)
                                    : draw.below(11));
    op.way = {static_cast<Form>(draw.below(3)), draw.one_in(4)};
    if (op.way.form == Form::persistent && draw.one_in(2)) {
        op.way.form = Form::nonblocking;
    }
    op.root_side = comm.inter ? draw.below(2) : 0;
    op.root = draw.below(static_cast<long>(comm.groups[op.root_side].size()));
    op.in_place = !comm.inter && !is_neighbour(op.kind) && op.kind != Kind::bcast &&
                  op.kind != Kind::barrier && draw.one_in(4);
    op.unit = draw_unit(draw);
    op.varied = has_list(op.kind);
    op.key = program.key();
    // Blocks that a rank has: as many as there are ranks.
    const long all = std::max<long>(1, comm.total());
    const bool many = op.kind != Kind::bcast && op.kind != Kind::barrier;
    const int units = draw_units(draw, op.unit, program.options().bytes / (many ? all : 1));
    op.multiple = op.varied ? draw.between(1, 5) : std::max(1, units / draw.between(1, 24));
    op.quantum = std::min(std::max(1, units / op.multiple), 20000);
    if (units == 0) {
        op.multiple = 0;
    }
    return op;
}

} // namespace

int draw_units(Draw& draw, const Unit& unit, long bytes) {
    static const int limits[] = {0,    8,     16,    32,    64,     256,    1024,   4096,
                                 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1 << 20};
    int per_unit = 0;
    for (const Basic* basic : unit.basics) {
        per_unit += basic->size;
    }
    long wanted = 0;
    switch (draw.below(6)) {
    case 0:
        wanted = draw.below(100);
        break;
    case 1:
        wanted = draw.below(3000);
        break;
    case 2:
        wanted = limits[draw.below(16)] + draw.between(-1, 1) * per_unit;
        break;
    case 3:
        wanted = draw.one_in(4) ? draw.below(100000) : draw.below(10000);
        break;
    default:
        wanted = limits[draw.below(9)] + draw.between(-1, 1) * per_unit;
    }
    wanted = std::min(std::max(0L, wanted), bytes);
    return static_cast<int>(wanted / per_unit);
}

void move_data(Program& program, Draw& draw) {
    const CommPtr comm = program.any_communicator(draw);
    const Operation op = draw_operation(program, draw, *comm);
    static const char* const forms[] = {"", " nonblocking", " persistent"};
    const std::string what = std::string(names[static_cast<int>(op.kind)]) +
                             forms[static_cast<int>(op.way.form)] + (op.way.large ? " large" : "") +
                             (op.in_place ? " in place" : "");
    program.at(what, comm.get());
    ActivityPtr activity;
    if (program.executes() && comm->handle != MPI_COMM_NULL) {
        const View view(*comm, program.rank());
        auto out = std::make_shared<Arguments>(), in = std::make_shared<Arguments>();
        pieces(op, view, *out, *in);
        const auto shape = [&](const Arguments& side) {
            // One block is said without lists, and scatter's and gather's one is.
            const bool list =
                &side == out.get()
                    ? (op.kind == Kind::scatterv || op.kind == Kind::alltoallv ||
                       op.kind == Kind::alltoallw || op.kind == Kind::neighbor_alltoallv ||
                       op.kind == Kind::neighbor_alltoallw)
                    : (has_list(op.kind) && op.kind != Kind::scatterv);
            return !list ? Shape::uniform : has_types(op.kind) ? Shape::bytes : Shape::varied;
        };
        Draw& own = program.own();
        out->lay_out(own, op.unit, op.quantum, shape(*out));
        in->lay_out(own, op.unit, op.quantum, shape(*in));
        for (Arguments* side : {out.get(), in.get()}) {
            const bool ignored = op.in_place || (has_root(op.kind) && op.kind != Kind::bcast);
            if (ignored && side->pieces.empty() && own.one_in(2)) {
                side->data = nullptr;
                side->count = -1;
                side->type = MPI_DATATYPE_NULL;
            }
        }
        activity = program.begin(what, comm);
        activity->kept = {out, in};
        activity->buffers = {{"send buffer", out->buffer}, {"receive buffer", in->buffer}};
        Arguments* const raw_out = out.get();
        Arguments* const raw_in = in.get();
        activity->refill = [raw_out, raw_in](Bits round) {
            raw_out->fill(round, true);
            raw_in->fill(round, false);
        };
        activity->refill(0);
        if (op.way.large) {
            call<true>(program, op, view, activity, *out, *in);
        } else {
            call<false>(program, op, view, activity, *out, *in);
        }
        if (own.one_in(3)) {
            out->free_types(); // MPI keeps what it needs
            in->free_types();
        }
    }
    if (op.way.form == Form::persistent) {
        program.persistents.push_back({comm, activity, nullptr});
    }
}

} // namespace programs
