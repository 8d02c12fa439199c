// Random nested datatypes on every way that data takes: from one layout into a different one with
// the same signature, by all kinds of sends, to the rank itself, into receives that are larger, by
// collectives, packed and unpacked in parts. A naive list of what lies where says what must arrive,
// and that nothing else is touched. Every type is also built once more from what
// MPI_Type_get_contents tells of it.
//
//   layouts [ROUNDS [SEED]]
#include <algorithm>
#include <cstdlib>
#include <vector>

#include <mpi.h>

#include "../environment/expect.hpp"
#include "random_layouts.hpp"

namespace {

using namespace layouts;

struct World {
    int rank = 0;
    int size = 1;
    int next() const { return (rank + 1) % size; }
    int before() const { return (rank + size - 1) % size; }
};

void check_received(const Memory& got, const Layout& layout, unsigned seed, std::size_t entries,
                    MPI_Status& status) {
    Memory expected(layout, got.count());
    expected.fill(seed, entries);
    EXPECT(got == expected);
    int elements = -1;
    int count = -1;
    MPI_Get_elements(&status, layout.type, &elements);
    MPI_Get_count(&status, layout.type, &count);
    EXPECT(elements == static_cast<int>(entries));
    EXPECT(count == (entries % layout.map.size() == 0
                         ? static_cast<int>(entries / layout.map.size())
                         : MPI_UNDEFINED));
}

enum class Mode { blocking, early, late, synchronous, buffered, persistent, probed, modes };

unsigned seed_of(int rank) {
    return static_cast<unsigned>(rank) * 1000003U + 17U;
}

MPI_Status send_buffered(const World& world, Memory& out, Memory& in) {
    MPI_Status status;
    int bytes = 0;
    MPI_Pack_size(out.count(), out.type(), MPI_COMM_WORLD, &bytes);
    std::vector<std::byte> room(static_cast<std::size_t>(bytes) + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
    MPI_Bsend(out.base(), out.count(), out.type(), world.next(), 5, MPI_COMM_WORLD);
    out.fill(0, out.entries()); // it may be written again at once
    MPI_Recv(in.base(), in.count(), in.type(), world.before(), 5, MPI_COMM_WORLD, &status);
    void* detached = nullptr;
    MPI_Buffer_detach(static_cast<void*>(&detached), &bytes);
    return status;
}

MPI_Status send_persistently(const World& world, Memory& out, Memory& in) {
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Recv_init(in.base(), in.count(), in.type(), world.before(), 5, MPI_COMM_WORLD,
                  &requests[0]);
    MPI_Ssend_init(out.base(), out.count(), out.type(), world.next(), 5, MPI_COMM_WORLD,
                   &requests[1]);
    for (int turn = 0; turn < 3; ++turn) {
        out.fill(turn == 2 ? seed_of(world.rank) : static_cast<unsigned>(turn), out.entries());
        MPI_Status both[2];
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, both);
        status = both[0];
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    return status;
}

// Every rank sends to the next one, which has a layout of its own and some room more.
void messages(const World& world, Mode mode, const Layout& from, const Layout& to, int count) {
    Memory out(from, count);
    out.fill(seed_of(world.rank), out.entries());
    const std::size_t entries = out.entries();
    Memory in(to, static_cast<int>((entries + to.map.size() - 1) / to.map.size()) + 1);
    MPI_Status status;
    MPI_Request requests[2];
    const auto receive = [&](MPI_Request* request) {
        MPI_Irecv(in.base(), in.count(), in.type(), world.before(), 5, MPI_COMM_WORLD, request);
    };
    switch (mode) {
    case Mode::blocking:
        MPI_Sendrecv(out.base(), count, from.type, world.next(), 5, in.base(), in.count(), to.type,
                     world.before(), 5, MPI_COMM_WORLD, &status);
        break;
    case Mode::early: {
        receive(&requests[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(out.base(), count, from.type, world.next(), 5, MPI_COMM_WORLD, &requests[1]);
        MPI_Status both[2];
        MPI_Waitall(2, requests, both);
        status = both[0];
        break;
    }
    case Mode::late:
        MPI_Isend(out.base(), count, from.type, world.next(), 5, MPI_COMM_WORLD, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(in.base(), in.count(), to.type, world.before(), 5, MPI_COMM_WORLD, &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        break;
    case Mode::synchronous:
        MPI_Issend(out.base(), count, from.type, world.next(), 5, MPI_COMM_WORLD, &requests[1]);
        receive(&requests[0]);
        MPI_Wait(&requests[0], &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        break;
    case Mode::buffered:
        status = send_buffered(world, out, in);
        break;
    case Mode::persistent:
        status = send_persistently(world, out, in);
        break;
    default: {
        MPI_Message message;
        MPI_Isend(out.base(), count, from.type, world.next(), 5, MPI_COMM_WORLD, &requests[1]);
        MPI_Mprobe(world.before(), 5, MPI_COMM_WORLD, &message, &status);
        int elements = -1;
        MPI_Get_elements(&status, to.type, &elements);
        EXPECT(elements == static_cast<int>(entries));
        MPI_Mrecv(in.base(), in.count(), to.type, &message, &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    }
    check_received(in, to, seed_of(world.before()), entries, status);
}

// The same data between all ranks: `many` and `count` elements are equal amounts.
void collectives(const World& world, const Layout& from, int count, const Layout& to, int many) {
    const std::size_t entries = from.map.size() * static_cast<std::size_t>(count);
    const auto all = static_cast<std::size_t>(world.size);
    const int root = world.size / 2;
    const bool is_root = world.rank == root;
    const auto seed = [](std::size_t sender, std::size_t receiver) {
        return static_cast<unsigned>(sender * 131 + receiver * 7 + 3);
    };
    const auto me = static_cast<std::size_t>(world.rank);

    Memory one(is_root ? from : to, is_root ? count : many);
    if (is_root) {
        one.fill(9, entries);
    }
    MPI_Bcast(one.base(), one.count(), one.type(), root, MPI_COMM_WORLD);
    Memory same(is_root ? from : to, one.count());
    same.fill(9, entries);
    EXPECT(one == same);

    Memory out(from, count * world.size); // a part for everybody
    for (std::size_t i = 0; i < all; ++i) {
        out.fill(seed(me, i), entries, i * entries);
    }
    Memory in(to, many * world.size);
    Memory expected(to, many * world.size);
    for (std::size_t i = 0; i < all; ++i) {
        expected.fill(seed(i, me), entries, i * entries);
    }
    MPI_Alltoall(out.base(), count, from.type, in.base(), many, to.type, MPI_COMM_WORLD);
    EXPECT(in == expected);

    // Each rank's part for rank 0, to everybody, and to the root.
    Memory gathered(to, many * world.size);
    Memory parts(to, many * world.size);
    for (std::size_t i = 0; i < all; ++i) {
        parts.fill(seed(i, 0), entries, i * entries);
    }
    MPI_Allgather(out.base(), count, from.type, gathered.base(), many, to.type, MPI_COMM_WORLD);
    EXPECT(gathered == parts);
    Memory at_root(to, many * world.size);
    MPI_Gather(out.base(), count, from.type, at_root.base(), many, to.type, root, MPI_COMM_WORLD);
    EXPECT(!is_root || at_root == parts);
    Memory part(to, many);
    Memory mine(to, many);
    mine.fill(seed(static_cast<std::size_t>(root), me), entries);
    MPI_Scatter(out.base(), count, from.type, part.base(), many, to.type, root, MPI_COMM_WORLD);
    EXPECT(part == mine);
}

// Packs elements one by one, unpacks them into another layout in parts of their own.
void packing(Random& random, const Layout& from, int count, const Layout& to, int many) {
    Memory out(from, count);
    out.fill(4, out.entries());
    int bytes = 0;
    MPI_Pack_size(count, from.type, MPI_COMM_WORLD, &bytes);
    std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
    int position = 0;
    for (int done = 0; done < count;) {
        const int now = std::min(count - done, random.number(1, 3));
        MPI_Pack(out.base() + done * from.extent(), now, from.type, packed.data(), bytes, &position,
                 MPI_COMM_WORLD);
        done += now;
    }
    Memory in(to, many);
    const int end = position;
    position = 0;
    for (int done = 0; done < many;) {
        const int now = std::min(many - done, random.number(1, 3));
        MPI_Unpack(packed.data(), end, &position, in.base() + done * to.extent(), now, to.type,
                   MPI_COMM_WORLD);
        done += now;
    }
    EXPECT(position == end);
    Memory expected(to, many);
    expected.fill(4, out.entries());
    EXPECT(in == expected);

    MPI_Aint portable_bytes = 0;
    MPI_Pack_external_size("external32", count, from.type, &portable_bytes);
    std::vector<std::byte> portable(static_cast<std::size_t>(portable_bytes));
    MPI_Aint at = 0;
    MPI_Pack_external("external32", out.base(), count, from.type, portable.data(), portable_bytes,
                      &at);
    EXPECT(at == portable_bytes);
    Memory back(to, many);
    at = 0;
    MPI_Unpack_external("external32", portable.data(), portable_bytes, &at, back.base(), many,
                        to.type);
    EXPECT(back == expected);
}

// The constructor that a combiner names, with these contents, of which the first integer is 0 when
// there is none.
MPI_Datatype construct(int combiner, const std::vector<int>& ints,
                       const std::vector<MPI_Aint>& places, std::vector<MPI_Datatype>& again) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const int n = ints[0];
    const int* const i = ints.data();
    switch (combiner) {
    case MPI_COMBINER_DUP:
        MPI_Type_dup(again[0], &made);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        MPI_Type_contiguous(n, again[0], &made);
        break;
    case MPI_COMBINER_VECTOR:
        MPI_Type_vector(n, i[1], i[2], again[0], &made);
        break;
    case MPI_COMBINER_HVECTOR:
        MPI_Type_create_hvector(n, i[1], places[0], again[0], &made);
        break;
    case MPI_COMBINER_INDEXED:
        MPI_Type_indexed(n, i + 1, i + 1 + n, again[0], &made);
        break;
    case MPI_COMBINER_HINDEXED:
        MPI_Type_create_hindexed(n, i + 1, places.data(), again[0], &made);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        MPI_Type_create_indexed_block(n, i[1], i + 2, again[0], &made);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block(n, i[1], places.data(), again[0], &made);
        break;
    case MPI_COMBINER_STRUCT:
        MPI_Type_create_struct(n, i + 1, places.data(), again.data(), &made);
        break;
    case MPI_COMBINER_RESIZED:
        MPI_Type_create_resized(again[0], places[0], places[1], &made);
        break;
    case MPI_COMBINER_SUBARRAY:
        MPI_Type_create_subarray(n, i + 1, i + 1 + n, i + 1 + 2 * n, i[1 + 3 * n], again[0], &made);
        break;
    case MPI_COMBINER_DARRAY: {
        const int d = i[2];
        MPI_Type_create_darray(n, i[1], d, i + 3, i + 3 + d, i + 3 + 2 * d, i + 3 + 3 * d,
                               i[3 + 4 * d], again[0], &made);
        break;
    }
    default:
        EXPECT(combiner == MPI_COMBINER_NAMED);
    }
    return made;
}

// The type that MPI_Type_get_contents describes.
MPI_Datatype rebuild(MPI_Datatype type) {
    int integers = 0;
    int addresses = 0;
    int types = 0;
    int combiner = 0;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    if (combiner == MPI_COMBINER_NAMED) {
        MPI_Type_dup(type, &made);
        return made;
    }
    std::vector<int> ints(static_cast<std::size_t>(integers) + 1);
    std::vector<MPI_Aint> places(static_cast<std::size_t>(addresses) + 1);
    std::vector<MPI_Datatype> olds(static_cast<std::size_t>(types) + 1);
    MPI_Type_get_contents(type, integers, addresses, types, ints.data(), places.data(),
                          olds.data());
    std::vector<MPI_Datatype> again(olds.size());
    for (int i = 0; i < types; ++i) {
        int a = 0;
        int b = 0;
        int c = 0;
        int kind = 0;
        const auto at = static_cast<std::size_t>(i);
        MPI_Type_get_envelope(olds[at], &a, &b, &c, &kind);
        again[at] = rebuild(olds[at]);
        if (kind != MPI_COMBINER_NAMED) {
            MPI_Type_free(&olds[at]);
        }
    }
    made = construct(combiner, ints, places, again);
    for (int t = 0; t < types; ++t) {
        MPI_Type_free(&again[static_cast<std::size_t>(t)]);
    }
    return made;
}

void contents(const Layout& layout) {
    Layout again{rebuild(layout.type), layout.map};
    MPI_Type_commit(&again.type);
    MPI_Aint bounds[8];
    int sizes[2];
    MPI_Type_get_extent(layout.type, &bounds[0], &bounds[1]);
    MPI_Type_get_extent(again.type, &bounds[2], &bounds[3]);
    MPI_Type_get_true_extent(layout.type, &bounds[4], &bounds[5]);
    MPI_Type_get_true_extent(again.type, &bounds[6], &bounds[7]);
    MPI_Type_size(layout.type, &sizes[0]);
    MPI_Type_size(again.type, &sizes[1]);
    EXPECT(bounds[0] == bounds[2] && bounds[1] == bounds[3]);
    EXPECT(bounds[4] == bounds[6] && bounds[5] == bounds[7]);
    EXPECT(sizes[0] == sizes[1]);
    Memory memory(layout, 2);
    memory.fill(1, memory.entries());
    std::vector<std::byte> first(2 * static_cast<std::size_t>(sizes[0]));
    std::vector<std::byte> second(first.size());
    const int bytes = 2 * sizes[0];
    int position = 0;
    MPI_Pack(memory.base(), 2, layout.type, first.data(), bytes, &position, MPI_COMM_WORLD);
    position = 0;
    MPI_Pack(memory.base(), 2, again.type, second.data(), bytes, &position, MPI_COMM_WORLD);
    EXPECT(first == second);
    MPI_Type_free(&again.type);
}

void play(const World& world, unsigned seed) {
    Random random(seed);
    const bool pairs = random.chance(40);
    // About so many entries, for all protocols.
    const int amounts[] = {8, 60, 1000, 5000, 30000, random.chance(20) ? 300000 : 2000};
    const auto amount = static_cast<std::size_t>(amounts[random.number(0, 5)]);
    Layout from = make(random, pairs, static_cast<int>(amount) + 1);
    const int count = static_cast<int>(amount / from.map.size()) + 1;
    const std::size_t entries = from.map.size() * static_cast<std::size_t>(count);
    Layout to = make(random, pairs, static_cast<int>(entries) + 4000);
    for (int mode = 0; mode < static_cast<int>(Mode::modes); ++mode) {
        if (entries < 20000 || random.chance(40)) {
            messages(world, static_cast<Mode>(mode), from, to, count);
        }
    }
    // Equal amounts on both sides, where that is not too much.
    const std::size_t common = std::lcm(from.map.size(), to.map.size());
    const std::size_t repeats =
        std::max<std::size_t>(std::min<std::size_t>(entries, 5000) / common, 1);
    const int from_count = static_cast<int>(common * repeats / from.map.size());
    const int to_count = static_cast<int>(common * repeats / to.map.size());
    if (common * repeats <= 20000 && disjoint(from, from_count * world.size) &&
        disjoint(to, to_count * world.size)) {
        collectives(world, from, from_count, to, to_count);
        packing(random, from, from_count, to, to_count);
    }
    contents(from);
    contents(to);
    MPI_Type_free(&from.type);
    MPI_Type_free(&to.type);
}

Layout rows(int count, int length, int stride) {
    Layout made;
    MPI_Type_vector(count, length, stride, MPI_INT, &made.type);
    MPI_Type_commit(&made.type);
    for (int i = 0; i < count; ++i) {
        for (int j = 0; j < length; ++j) {
            made.map.push_back({MPI_Aint{4} * (i * stride + j), sizeof(int)});
        }
    }
    return made;
}

// Blocks that the kernel may copy one by one, more of them than it takes at a time, from and to
// larger, smaller and single ones.
void large_blocks(const World& world) {
    Layout made[] = {rows(700, 260, 300), rows(350, 520, 521), rows(91000, 2, 3),
                     rows(7, 26000, 30000), rows(1, 182000, 1)};
    for (const Layout& from : made) {
        for (const Layout& to : made) {
            messages(world, Mode::early, from, to, 1);
            messages(world, Mode::synchronous, from, to, 1);
        }
    }
    messages(world, Mode::late, made[0], made[1], 3);
    messages(world, Mode::persistent, made[1], made[0], 2);
    for (Layout& layout : made) {
        MPI_Type_free(&layout.type);
    }
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    World world;
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    large_blocks(world);
    int rounds = argc > 1 ? std::atoi(argv[1]) : 60;
    constexpr int many = 8; // each sends to all others: the work grows with the square of the ranks
    if (world.size > many) {
        rounds = std::max(4, rounds * (many * many) / (world.size * world.size));
    }
    const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
    for (int round = 0; round < rounds; ++round) {
        play(world, seed + static_cast<unsigned>(round));
    }
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
