// Collective operations in random order and of random sizes, around those where their way through
// shared memory changes, with random roots, datatypes and MPI_IN_PLACE, on communicators of many
// shapes that come and go. Runs on any MPI.
//
// Arguments: how many operations per communicator, and the seed.

#include "reference.hpp"

#include <algorithm>
#include <cstdint>

using namespace reference;

namespace {

struct Random {
    std::uint32_t state;
    int operator()(int below) {
        state = state * 1664525U + 1013904223U;
        return static_cast<int>((state >> 8) % static_cast<std::uint32_t>(below));
    }
};

// Ints per rank or pair: about lines, areas of few and many ranks, and their pieces.
int draw_count(Random& random, int size) {
    const int borders[] = {0, 2, 14, 16, 128, 1024, 1040, 2048, 4096, 16384, 16400, 50000};
    const int border = borders[random(size > 16 ? 7 : (size > 4 ? 10 : 12))];
    return std::max(border + random(5) - 2, 0);
}

void first_of_two(void* in, void* inout, int* count, MPI_Datatype*) {
    // Takes the left operand: the first rank's wins.
    std::copy_n(static_cast<int*>(in), *count, static_cast<int*>(inout));
}

struct Run {
    MPI_Comm comm;
    const std::vector<Layout>& layouts;
    MPI_Op first;
    int rank, size;

    // One operation, as drawn.
    struct Drawn {
        int root;
        const Layout& layout; // of this rank
        const Layout& plain;
        int elements; // of layout
        int ints;     // the same in ints
        bool in_place;
        bool here; // in place, at the root
        std::string text;
    };

    void operation(Random& random) const {
        const int kind = random(11);
        const int root = random(size);
        // The layout of most ranks, and of the odd ones; both have the same ints.
        const Layout& ours = layouts[static_cast<std::size_t>(random(3))];
        const Layout& plain = layouts[0];
        const bool in_place = random(4) == 0;
        const bool summed = random(3) != 0;
        int count = draw_count(random, size) / ours.ints();
        if (kind == 4 || kind == 9 || kind == 10) {
            count /= size > 4 ? size : 1; // each rank has this for each
        }
        const bool is_plain = rank % 2 == 1;
        const Layout& layout = is_plain ? plain : ours;
        const int elements = is_plain ? count * ours.ints() : count;
        const int ints = count * ours.ints();
        const MPI_Op op = summed ? MPI_SUM : first;
        const bool here = in_place && rank == root;
        const std::string text = std::to_string(ints) + " ints as " + ours.name + ", root " +
                                 std::to_string(root) + " of " + std::to_string(size) +
                                 (in_place ? ", in place" : "");
        const Drawn drawn{root, layout, plain, elements, ints, in_place, here, text};
        switch (kind) {
        case 0:
            return bcast(drawn);
        case 1:
            return gather(drawn);
        case 2:
            return scatter(drawn);
        case 3:
            return allgather(drawn);
        case 4:
            return alltoall(drawn);
        case 5:
            return allgatherv(drawn);
        default:
            return reduction(kind, ints, op, root, in_place, summed, text);
        }
    }

    void bcast(const Drawn& d) const {
        Buffer buffer(d.layout, 1, d.elements);
        if (rank == d.root) {
            buffer.fill(0, d.root, 0);
        }
        MPI_Bcast(buffer.data(), d.elements, d.layout.type, d.root, comm);
        expect(buffer.take(0, d.root, 0) && buffer.untouched(), "MPI_Bcast", d.text);
    }

    void gather(const Drawn& d) const {
        bool good = true;
        Buffer out(d.plain, 1, d.ints);
        Buffer in(d.layout, rank == d.root ? size : 0, d.elements);
        out.fill(0, rank, d.root);
        if (d.here) {
            in.fill(d.root, d.root, d.root);
        }
        MPI_Gather(d.here ? MPI_IN_PLACE : out.data(), d.ints, MPI_INT, in.data(), d.elements,
                   d.layout.type, d.root, comm);
        for (int r = 0; r < size && rank == d.root; ++r) {
            good = in.take(r, r, d.root) && good;
        }
        expect(good && in.untouched(), "MPI_Gather", d.text);
    }

    void scatter(const Drawn& d) const {
        Buffer out(d.layout, rank == d.root ? size : 0, d.elements);
        Buffer in(d.plain, 1, d.ints);
        for (int r = 0; r < size && rank == d.root; ++r) {
            out.fill(r, d.root, r);
        }
        MPI_Scatter(out.data(), d.elements, d.layout.type, d.here ? MPI_IN_PLACE : in.data(),
                    d.ints, MPI_INT, d.root, comm);
        expect((d.here || in.take(0, d.root, rank)) && in.untouched(), "MPI_Scatter", d.text);
    }

    void allgather(const Drawn& d) const {
        bool good = true;
        Buffer out(d.plain, 1, d.ints);
        Buffer in(d.layout, size, d.elements);
        out.fill(0, rank, 0);
        if (d.in_place) {
            in.fill(rank, rank, 0);
        }
        MPI_Allgather(d.in_place ? MPI_IN_PLACE : out.data(), d.ints, MPI_INT, in.data(),
                      d.elements, d.layout.type, comm);
        for (int r = 0; r < size; ++r) {
            good = in.take(r, r, 0) && good;
        }
        expect(good && in.untouched(), "MPI_Allgather", d.text);
    }

    void alltoall(const Drawn& d) const {
        bool good = true;
        Buffer out(d.plain, size, d.ints);
        Buffer in(d.layout, size, d.elements);
        for (int r = 0; r < size; ++r) {
            (d.in_place ? in : out).fill(r, rank, r);
        }
        MPI_Alltoall(d.in_place ? MPI_IN_PLACE : out.data(), d.ints, MPI_INT, in.data(), d.elements,
                     d.layout.type, comm);
        for (int r = 0; r < size; ++r) {
            good = in.take(r, r, rank) && good;
        }
        expect(good && in.untouched(), "MPI_Alltoall", d.text);
    }

    void allgatherv(const Drawn& d) const {
        bool good = true;
        // Each rank r has its block r % 3 times.
        std::vector<int> counts, places;
        for (int r = 0; r < size; ++r) {
            counts.push_back(r % 3 == 0 ? d.ints : d.ints / 2);
            places.push_back(r * d.ints);
        }
        Buffer all(d.plain, size, d.ints);
        const int own = counts[static_cast<std::size_t>(rank)];
        for (int i = 0; i < own; ++i) {
            all.at(rank, i) = value(rank, 0, i);
        }
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, all.data(), counts.data(), places.data(), MPI_INT,
                       comm);
        for (int r = 0; r < size; ++r) {
            for (int i = 0; i < counts[static_cast<std::size_t>(r)]; ++i) {
                good = good && all.at(r, i) == value(r, 0, i);
                all.at(r, i) = gap;
            }
        }
        expect(good && all.untouched(), "MPI_Allgatherv", d.text);
    }

    // Values small enough for sums.
    static int operand(int from, int index) { return value(from, 0, index) & 0xffff; }

    // Whether elements [begin, begin + ints) are combined at the start of `out`.
    static bool combined(const std::vector<int>& out, int begin, int ints, int ranks, bool summed) {
        for (int i = 0; i < ints; ++i) {
            int expected = 0;
            for (int r = 0; r < (summed ? ranks : 1); ++r) {
                expected += operand(r, begin + i);
            }
            if (out[static_cast<std::size_t>(i)] != expected) {
                return false;
            }
        }
        return true;
    }

    void reduction(int kind, int ints, MPI_Op op, int root, bool in_place, bool summed,
                   const std::string& text) const {
        const int total = kind >= 9 ? ints * size : ints;
        std::vector<int> in(static_cast<std::size_t>(total) + 1);
        for (int i = 0; i < total; ++i) {
            in[static_cast<std::size_t>(i)] = operand(rank, i);
        }
        std::vector<int> out = in_place ? in : std::vector<int>(in.size());
        void* from = in_place ? MPI_IN_PLACE : in.data();
        if (kind == 6) {
            MPI_Reduce(rank == root ? from : in.data(), rank == root ? out.data() : nullptr, ints,
                       MPI_INT, op, root, comm);
            expect(rank != root || combined(out, 0, ints, size, summed), "MPI_Reduce", text);
        } else if (kind == 7) {
            MPI_Allreduce(from, out.data(), ints, MPI_INT, op, comm);
            expect(combined(out, 0, ints, size, summed), "MPI_Allreduce", text);
        } else if (kind == 8) {
            MPI_Scan(from, out.data(), ints, MPI_INT, op, comm);
            expect(combined(out, 0, ints, rank + 1, summed), "MPI_Scan", text);
        } else {
            MPI_Reduce_scatter_block(from, out.data(), ints, MPI_INT, op, comm);
            expect(combined(out, rank * ints, ints, size, summed), "MPI_Reduce_scatter_block",
                   text);
        }
    }
};

void run(MPI_Comm comm, const std::vector<Layout>& layouts, MPI_Op first, int operations,
         std::uint32_t seed) {
    Run run{comm, layouts, first, 0, 0};
    MPI_Comm_rank(comm, &run.rank);
    MPI_Comm_size(comm, &run.size);
    Random random{seed};
    for (int i = 0; i < operations; ++i) {
        run.operation(random);
    }
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int operations = argc > 1 ? std::atoi(argv[1]) : 100;
    const std::uint32_t seed = argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 1;
    std::vector<Layout> layouts = make_layouts();
    MPI_Op first;
    MPI_Op_create(first_of_two, 0, &first);
    run(MPI_COMM_WORLD, layouts, first, operations, seed);
    std::vector<Named> communicators = make_communicators();
    for (std::size_t i = 0; i < communicators.size(); ++i) {
        int size;
        MPI_Comm_size(communicators[i].comm, &size);
        run(communicators[i].comm, layouts, first, size > 16 ? operations / 4 : operations,
            seed + static_cast<std::uint32_t>(size));
    }
    free_communicators(communicators);
    // Areas come and go.
    for (int i = 0; i < 20; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        run(comm, layouts, first, 3, seed + static_cast<std::uint32_t>(i));
        MPI_Comm_free(&comm);
    }
    MPI_Op_free(&first);
    free_layouts(layouts);
    return finish("sizes");
}
