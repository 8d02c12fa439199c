// Collective reductions: predefined operations on predefined types with values for which every
// order of evaluation gives the same result, and own operations (also ones that don't commute) on
// any datatypes.
#include "program.hpp"
#include "reducibles.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <mutex>

namespace programs {

namespace {

// --- Own operations: an element is any number of pairs of unsigned, wherever its datatype has
// them.

const Basic unsigned_basic = {"unsigned", MPI_UNSIGNED, 4, 4, 4};
const Unit pair_unit = {{&unsigned_basic, &unsigned_basic}};

// Which datatype a handle is, for the functions of own operations.
class KnownTypes {
  public:
    void add(const TypePtr& type) {
        const std::lock_guard lock(mutex_);
        types_[type->handle] = type;
    }
    TypePtr find(MPI_Datatype handle) {
        const std::lock_guard lock(mutex_);
        const auto found = types_.find(handle);
        return found == types_.end() ? nullptr : found->second.lock();
    }

  private:
    std::mutex mutex_;
    std::map<MPI_Datatype, std::weak_ptr<Type>> types_;
};
// Handles are numbers of a rank's own, and a process may have several ranks.
std::array<KnownTypes, process_rank_limit> known_types_of_ranks;
KnownTypes& known_types() {
    return known_types_of_ranks[static_cast<std::size_t>(process_rank)];
}

struct Pair {
    unsigned slope, shift;
};
// x → slope · x + shift; the left one first. Does not commute.
Pair compose(Pair left, Pair right) {
    return {left.slope * right.slope, right.slope * left.shift + right.shift};
}
Pair add(Pair left, Pair right) {
    return {left.slope + right.slope, left.shift ^ right.shift};
}

template <Pair (*Combine)(Pair, Pair)>
void apply(void* in, void* inout, long count, MPI_Datatype handle) {
    const TypePtr type = known_types().find(handle);
    if (type == nullptr) {
        fail("the function of an own operation was given an unknown datatype");
    }
    for (long i = 0; i < count; ++i) {
        for (std::size_t leaf = 0; leaf + 1 < type->leaves.size(); leaf += 2) {
            const Offset a = i * type->extent() + type->leaves[leaf].offset;
            const Offset b = i * type->extent() + type->leaves[leaf + 1].offset;
            const auto* left = static_cast<unsigned char*>(in);
            auto* right = static_cast<unsigned char*>(inout);
            const Pair result = Combine({load<unsigned>(left + a), load<unsigned>(left + b)},
                                        {load<unsigned>(right + a), load<unsigned>(right + b)});
            store(right + a, result.slope);
            store(right + b, result.shift);
        }
    }
}
template <Pair (*Combine)(Pair, Pair)>
void function(void* in, void* inout, int* count, MPI_Datatype* type) {
    apply<Combine>(in, inout, *count, *type);
}
template <Pair (*Combine)(Pair, Pair)>
void large_function(void* in, void* inout, MPI_Count* count, MPI_Datatype* type) {
    apply<Combine>(in, inout, *count, *type);
}

// --- An operation

enum class Kind { allreduce, reduce, reduce_scatter, reduce_scatter_block, scan, exscan };
const char* const names[] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block",
                             "scan",      "exscan"};

// What is combined: elements of a predefined type, or own ones of several pairs.
struct Values {
    const Reducible* predefined = nullptr; // null: own ones
    bool commutes = true;
    int pairs = 1; // of an element

    int bytes() const { return predefined != nullptr ? predefined->basic.size : 8 * pairs; }
    long per_element() const { return predefined != nullptr ? 1 : pairs; }

    // A contribution's value number `index`: of a predefined type or a pair.
    void draw(Bits key, long index, unsigned char* out) const {
        const Bits bits = mix(key + static_cast<Bits>(index));
        if (predefined != nullptr) {
            predefined->draw(bits, out);
        } else {
            std::memcpy(out, &bits, sizeof bits);
        }
    }
    void combine(const unsigned char* left, unsigned char* right) const {
        if (predefined != nullptr) {
            predefined->combine(left, right);
        } else {
            store(right, commutes ? add(load<Pair>(left), load<Pair>(right))
                                  : compose(load<Pair>(left), load<Pair>(right)));
        }
    }
};

// Puts value number `first` + i into the block's leaves; write(bytes, i).
void put(Buffer& buffer, Buffer::Part part, const Values& values, const Block& block,
         const std::function<void(unsigned char*, long)>& write) {
    if (values.predefined != nullptr) {
        buffer.put(part, block, write);
        return;
    }
    unsigned char pair[8];
    buffer.put(part, block, [&](unsigned char* to, long leaf) {
        if (leaf % 2 == 0) {
            write(pair, leaf / 2);
        }
        std::memcpy(to, pair + leaf % 2 * 4, 4);
    });
}

struct Operation {
    Kind kind;
    Way way;
    Values values;
    int root_side = 0, root = 0;
    bool in_place = false;
    Bits key = 0;
    long block = 0; // elements of all but reduce_scatter; there: at most

    Bits key_of(int side, int rank, Bits round) const { return hash(key, side, rank, round); }
};

struct Arguments {
    std::shared_ptr<Buffer> out = std::make_shared<Buffer>(), in = std::make_shared<Buffer>();
    TypePtr type;
    Block sent, received;
    std::vector<int> counts;
    std::vector<MPI_Count> large_counts;
    MPI_Op op = MPI_OP_NULL;
};

// Drawn alike by all ranks: a reduction is called with the same datatype everywhere. Elements are
// not in each other's gaps (a count of 1), where they could not be combined in other memory.
TypePtr type_of(Draw draw, const Values& values) {
    if (values.predefined != nullptr) {
        return make_basic(&values.predefined->basic);
    }
    TypePtr type = make_type(draw, pair_unit, values.pairs, 1);
    known_types().add(type);
    return type;
}

MPI_Op op_of(Draw& draw, const Values& values) {
    if (values.predefined != nullptr) {
        return values.predefined->op;
    }
    MPI_Op op;
    const int commutes = values.commutes ? 1 : 0;
    if (draw.one_in(3)) {
        MUST(MPI_Op_create_c(values.commutes ? large_function<add> : large_function<compose>,
                             commutes, &op));
    } else {
        MUST(MPI_Op_create(values.commutes ? function<add> : function<compose>, commutes, &op));
    }
    return op;
}

Values draw_values(Draw& draw) {
    Values values;
    if (draw.one_in(3)) {
        values.commutes = draw.one_in(3);
        values.pairs = draw.one_in(2) ? 1 : draw.between(1, 6);
    } else {
        values.predefined = &draw.of(predefined_reductions());
    }
    return values;
}

Operation draw_operation(Program& program, Draw& draw, const Communicator& comm) {
    Operation op;
    op.kind = static_cast<Kind>(draw.below(comm.inter ? 4 : 6));
    op.way = {static_cast<Form>(draw.below(3)), draw.one_in(4)};
    if (op.way.form == Form::persistent && draw.one_in(2)) {
        op.way.form = Form::nonblocking;
    }
    op.values = draw_values(draw);
    op.root_side = comm.inter ? draw.below(2) : 0;
    op.root = draw.below(static_cast<long>(comm.groups[op.root_side].size()));
    op.in_place = !comm.inter && draw.one_in(4);
    op.key = program.key();
    Unit bytes;
    const Basic byte = {"byte", MPI_BYTE, 1, 1, 1};
    bytes.basics = {&byte};
    const int wanted = draw_units(draw, bytes, program.options().bytes / (comm.inter ? 4 : 2));
    op.block = wanted / op.values.bytes();
    const bool scatters = op.kind == Kind::reduce_scatter || op.kind == Kind::reduce_scatter_block;
    if (scatters) {
        op.block = (op.block + comm.total() - 1) / comm.total();
    }
    return op;
}

// How many elements each rank of a side gets from a reduce_scatter: as many in all on both sides.
std::vector<int> parts(const Operation& op, const View& view, int side) {
    const long sizes[2] = {static_cast<long>(view.of.groups[0].size()),
                           static_cast<long>(view.of.groups[view.of.inter ? 1 : 0].size())};
    std::vector<int> counts;
    if (op.kind == Kind::reduce_scatter_block) {
        const long other = view.of.inter ? sizes[1 - side] : 1;
        counts.assign(static_cast<std::size_t>(sizes[side]), static_cast<int>(op.block * other));
        return counts;
    }
    long rest = op.block * (view.of.inter ? std::min(sizes[0], sizes[1]) : sizes[0]);
    for (long rank = 0; rank < sizes[side]; ++rank) {
        const long share =
            rank + 1 == sizes[side]
                ? rest
                : static_cast<long>(hash(op.key, side, rank) % static_cast<Bits>(2 * op.block + 1));
        counts.push_back(static_cast<int>(std::min(rest, share)));
        rest -= counts.back();
    }
    return counts;
}

// The combination of the contributions of `ranks` ranks of a side, from value `first` on.
std::vector<unsigned char> fold(const Operation& op, int side, int ranks, long first, long values,
                                Bits round) {
    const Values& of = op.values;
    const auto size = static_cast<std::size_t>(of.predefined != nullptr ? of.bytes() : 8);
    std::vector<unsigned char> result(static_cast<std::size_t>(values) * size, 0xA5);
    unsigned char right[32];
    for (int rank = 0; rank < ranks; ++rank) {
        const Bits key = op.key_of(side, rank, round);
        for (long i = 0; i < values; ++i) {
            unsigned char* left = &result[static_cast<std::size_t>(i) * size];
            if (rank == 0) {
                of.draw(key, first + i, left);
            } else {
                std::memset(right, 0xA5, sizeof right);
                of.draw(key, first + i, right);
                of.combine(left, right);
                std::memcpy(left, right, size);
            }
        }
    }
    return result;
}

// Copies what is a value, not its padding.
void copy_value(const Values& values, unsigned char* to, const unsigned char* from) {
    if (values.predefined == nullptr) {
        std::memcpy(to, from, 8);
    } else {
        std::memcpy(to, from, static_cast<std::size_t>(values.predefined->basic.size));
    }
}

void fill(const Operation& op, const View& view, Arguments& a, Bits round) {
    a.out->reset();
    a.in->reset();
    const Values& values = op.values;
    const Bits mine = op.key_of(view.side, view.me, round);
    const auto contribute = [&](Buffer& buffer, Buffer::Part part, const Block& block) {
        put(buffer, part, values, block,
            [&](unsigned char* to, long i) { values.draw(mine, i, to); });
    };
    const bool is_root = op.root_side == view.side && op.root == view.me;
    const int other = view.of.inter ? 1 - view.side : 0;
    if (op.in_place && (op.kind != Kind::reduce || is_root)) {
        contribute(*a.in, Buffer::held, a.sent);
        contribute(*a.in, Buffer::expected, a.sent); // the result overwrites a part of it
    } else if (a.sent.count > 0) {
        contribute(*a.out, Buffer::both, a.sent);
    }
    long first = 0;
    int ranks = view.remote_size();
    if (op.kind == Kind::scan || op.kind == Kind::exscan) {
        ranks = view.me + (op.kind == Kind::scan ? 1 : 0);
    } else if (op.kind == Kind::reduce_scatter || op.kind == Kind::reduce_scatter_block) {
        for (int rank = 0; rank < view.me; ++rank) {
            first += a.counts[static_cast<std::size_t>(rank)];
        }
    }
    if (a.received.count > 0 && ranks > 0 && (op.kind != Kind::reduce || is_root)) {
        const long per_element = values.per_element();
        const auto result =
            fold(op, other, ranks, first * per_element, a.received.count * per_element, round);
        const std::size_t size =
            values.predefined != nullptr ? static_cast<std::size_t>(values.bytes()) : 8;
        put(*a.in, Buffer::expected, values, a.received, [&](unsigned char* to, long i) {
            copy_value(values, to, &result[static_cast<std::size_t>(i) * size]);
        });
    }
}

template <bool Large>
void call(Program& program, const Operation& op, const View& view, const ActivityPtr& activity,
          Arguments& a) {
    const bool is_root = op.root_side == view.side && op.root == view.me;
    const bool in_roots_group = view.of.inter && op.root_side == view.side;
    const int root = in_roots_group ? (is_root ? MPI_ROOT : MPI_PROC_NULL) : op.root;
    void* from = a.out->base();
    void* to = a.in->base();
    if (op.in_place && (op.kind != Kind::reduce || is_root)) {
        from = MPI_IN_PLACE;
    }
    const Form form = op.way.form;
    const MPI_Datatype type = a.type->handle;
    const int count = static_cast<int>(std::max(a.sent.count, a.received.count));
    const auto counts = [&] {
        if constexpr (Large) {
            return static_cast<const MPI_Count*>(a.large_counts.data());
        } else {
            return static_cast<const int*>(a.counts.data());
        }
    }();
#define CALL(Name, name, ...)                                                                      \
    if constexpr (Large) {                                                                         \
        perform(program, form, activity, LARGE_FORMS(Name, name), __VA_ARGS__);                    \
    } else {                                                                                       \
        perform(program, form, activity, FORMS(Name, name), __VA_ARGS__);                          \
    }                                                                                              \
    break
    switch (op.kind) {
    case Kind::allreduce:
        CALL(Allreduce, allreduce, from, to, count, type, a.op, view.comm);
    case Kind::reduce:
        CALL(Reduce, reduce, from, to, count, type, a.op, root, view.comm);
    case Kind::reduce_scatter:
        CALL(Reduce_scatter, reduce_scatter, from, to, counts, type, a.op, view.comm);
    case Kind::reduce_scatter_block:
        CALL(Reduce_scatter_block, reduce_scatter_block, from, to, a.counts[0], type, a.op,
             view.comm);
    case Kind::scan:
        CALL(Scan, scan, from, to, count, type, a.op, view.comm);
    case Kind::exscan:
        CALL(Exscan, exscan, from, to, count, type, a.op, view.comm);
    }
#undef CALL
}

// Sizes of what is sent and received.
void lay_out(const Operation& op, const View& view, Arguments& a) {
    const bool is_root = op.root_side == view.side && op.root == view.me;
    const bool in_roots_group = view.of.inter && op.root_side == view.side;
    long sent = op.block, received = op.block;
    if (op.kind == Kind::reduce_scatter || op.kind == Kind::reduce_scatter_block) {
        a.counts = parts(op, view, view.side);
        sent = std::accumulate(a.counts.begin(), a.counts.end(), 0L);
        received = a.counts[static_cast<std::size_t>(view.me)];
        a.large_counts.assign(a.counts.begin(), a.counts.end());
    } else if (op.kind == Kind::reduce) {
        sent = in_roots_group ? 0 : sent;
        received = is_root ? received : 0;
    }
    a.type = type_of(Draw(hash(op.key, 5)), op.values);
    a.sent = {a.type, sent, 0};
    a.received = {a.type, received, 0};
    a.out->reserve({a.sent});
    a.in->reserve({a.sent, a.received});
    if (op.kind == Kind::exscan && view.me == 0) {
        a.in->ignore(a.received);
    }
    if (op.in_place && sent > received) {
        a.in->ignore(a.sent);
        a.in->ignore(a.received, false);
    }
}

} // namespace

void reduce_data(Program& program, Draw& draw) {
    const CommPtr comm = program.any_communicator(draw);
    const Operation op = draw_operation(program, draw, *comm);
    static const char* const forms[] = {"", " nonblocking", " persistent"};
    const Values& values = op.values;
    const std::string what = std::string(names[static_cast<int>(op.kind)]) +
                             forms[static_cast<int>(op.way.form)] + (op.way.large ? " large" : "") +
                             (op.in_place ? " in place" : "") + " " +
                             (values.predefined != nullptr
                                  ? values.predefined->name + " of " + values.predefined->basic.name
                                  : std::string(values.commutes ? "own sum" : "own composition"));
    program.at(what, comm.get());
    ActivityPtr activity;
    if (program.executes() && comm->handle != MPI_COMM_NULL) {
        const View view(*comm, program.rank());
        Draw& own = program.own();
        auto a = std::make_shared<Arguments>();
        lay_out(op, view, *a);
        a->op = op_of(own, values);
        activity = program.begin(what, comm);
        activity->kept = {a};
        activity->buffers = {{"send buffer", a->out}, {"receive buffer", a->in}};
        Arguments* const raw = a.get();
        const int rank = program.rank();
        activity->refill = [op, raw, comm, rank](Bits round) {
            fill(op, View(*comm, rank), *raw, round);
        };
        activity->refill(0);
        if (op.way.large) {
            call<true>(program, op, view, activity, *a);
        } else {
            call<false>(program, op, view, activity, *a);
        }
        if (values.predefined == nullptr) {
            MUST(MPI_Op_free(&a->op)); // MPI keeps what it needs
        }
    }
    if (op.way.form == Form::persistent) {
        program.persistents.push_back({comm, activity, nullptr});
    }
}

void reduce_here(Program& program, Draw&) {
    program.at("reduce_local");
    if (!program.executes()) {
        return;
    }
    Draw& own = program.own();
    Operation op{};
    op.values = draw_values(own);
    op.key = own.bits();
    op.block = own.below(own.one_in(4) ? 3000 : 60);
    Arguments a;
    a.type = type_of(own, op.values);
    a.op = op_of(own, op.values);
    const Block block = {a.type, op.block, 0};
    const Values& values = op.values;
    for (int side = 0; side < 2; ++side) {
        Buffer& buffer = side == 0 ? *a.out : *a.in;
        buffer.reserve({block});
        const Bits key = op.key_of(0, side, 0);
        put(buffer, Buffer::both, values, block,
            [&](unsigned char* to, long i) { values.draw(key, i, to); });
    }
    const long per_element = values.per_element();
    const auto result = fold(op, 0, 2, 0, op.block * per_element, 0);
    const std::size_t size =
        values.predefined != nullptr ? static_cast<std::size_t>(values.bytes()) : 8;
    put(*a.in, Buffer::expected, values, block, [&](unsigned char* to, long i) {
        copy_value(values, to, &result[static_cast<std::size_t>(i) * size]);
    });
    if (own.one_in(3)) {
        MUST(MPI_Reduce_local_c(a.out->base(), a.in->base(), op.block, a.type->handle, a.op));
    } else {
        MUST(MPI_Reduce_local(a.out->base(), a.in->base(), static_cast<int>(op.block),
                              a.type->handle, a.op));
    }
    a.out->check("what is combined");
    a.in->check("result");
    if (values.predefined == nullptr) {
        MUST(MPI_Op_free(&a.op));
    }
}

} // namespace programs
