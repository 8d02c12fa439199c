// Neighbourhood collectives on grids (also of 1 and 2 in a periodic dimension, where both
// neighbours are one process), graphs and distributed graphs with edges that come more than once,
// in the three forms. Runs on any MPI.

#include "reference.hpp"

#include <algorithm>

using namespace reference;

namespace {

// A communicator with a topology and, for every rank, its neighbours and what arrives from them:
// number `edge` of a rank's sources is fed by number `feeding` of the peer's destinations.
struct Neighbours {
    std::string name;
    MPI_Comm comm;
    std::vector<int> sources, feeding, destinations;
};

Neighbours grid(const std::vector<int>& dims, const std::vector<int>& periods) {
    Neighbours made{"grid", MPI_COMM_NULL, {}, {}, {}};
    const int dimensions = static_cast<int>(dims.size());
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims.data(), periods.data(), 0, &made.comm);
    for (int d = 0; made.comm != MPI_COMM_NULL && d < dimensions; ++d) {
        int below, above;
        MPI_Cart_shift(made.comm, d, 1, &below, &above);
        made.sources.insert(made.sources.end(), {below, above});
        made.feeding.insert(made.feeding.end(), {2 * d + 1, 2 * d});
        made.name += " " + std::to_string(dims[static_cast<std::size_t>(d)]);
    }
    made.destinations = made.sources;
    return made;
}

// Rank r sends to r + 1 twice, to r + 2 and to itself.
std::vector<int> targets(int rank, int size) {
    return {(rank + 1) % size, (rank + 2) % size, (rank + 1) % size, rank};
}

Neighbours distributed(int rank, int size) {
    Neighbours made{"distributed graph", MPI_COMM_NULL, {}, {}, targets(rank, size)};
    // Sources in the order of ranks and, of one rank, of its edges.
    for (int r = 0; r < size; ++r) {
        const std::vector<int> theirs = targets(r, size);
        for (int i = 0; i < 4; ++i) {
            if (theirs[static_cast<std::size_t>(i)] == rank) {
                made.sources.push_back(r);
                made.feeding.push_back(i);
            }
        }
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(made.sources.size()),
                                   made.sources.data(), MPI_UNWEIGHTED, 4, made.destinations.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made.comm);
    return made;
}

// A star: rank 0 and everybody else.
Neighbours star(int rank, int size) {
    Neighbours made{"graph", MPI_COMM_NULL, {}, {}, {}};
    std::vector<int> index, edges;
    for (int r = 1; r < size; ++r) {
        edges.push_back(r);
    }
    index.push_back(size - 1);
    for (int r = 1; r < size; ++r) {
        edges.push_back(0);
        index.push_back(index.back() + 1);
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &made.comm);
    for (int r = 1; r < size; ++r) {
        if (rank == 0) {
            made.sources.push_back(r);
            made.feeding.push_back(0);
        } else if (r == rank) {
            made.sources.push_back(0);
            made.feeding.push_back(rank - 1);
        }
    }
    made.destinations = made.sources;
    return made;
}

// The operations on a neighbourhood, with blocks of so many elements.
class Blocks {
  public:
    Blocks(const Neighbours& neighbours, int elements)
        : n(neighbours),
          count(elements),
          in_degree(n.sources.size()),
          out_degree(n.destinations.size()),
          width(static_cast<std::size_t>(count) + 1),
          out(out_degree * width),
          one(width),
          in(in_degree * width) {
        MPI_Comm_rank(n.comm, &rank);
        for (std::size_t e = 0; e < in_degree; ++e) {
            places.push_back(static_cast<int>(e * width));
        }
    }

    void equal();
    void uneven();

  private:
    void fill() {
        for (std::size_t e = 0; e < out_degree; ++e) {
            for (int i = 0; i < count; ++i) {
                out[e * width + static_cast<std::size_t>(i)] = value(rank, static_cast<int>(e), i);
            }
        }
        for (int i = 0; i < count; ++i) {
            one[static_cast<std::size_t>(i)] = value(rank, 99, i);
        }
        in.assign(in.size(), gap);
    }

    // `size(e)`: how much of block e has been received.
    template <typename Size>
    void check(const char* operation, bool all_the_same, std::size_t step, Size size) {
        bool good = true;
        for (std::size_t e = 0; e < in_degree; ++e) {
            const bool nobody = n.sources[e] == MPI_PROC_NULL;
            for (std::size_t i = 0; i < step; ++i) {
                const int expected = nobody || i >= static_cast<std::size_t>(size(e))
                                         ? gap
                                         : value(n.sources[e], all_the_same ? 99 : n.feeding[e],
                                                 static_cast<long>(i));
                good = good && in[e * step + i] == expected;
            }
        }
        expect(good, operation, n.name + ", count " + std::to_string(count));
    }

    const Neighbours& n;
    int count;
    int rank = 0;
    std::size_t in_degree, out_degree;
    std::size_t width; // with a gap after each block
    std::vector<int> out, one, in;
    std::vector<int> places;
};

void Blocks::equal() {
    const auto whole = [&](std::size_t) { return count; };
    const auto dense = static_cast<std::size_t>(count);

    fill();
    call(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, MPI_Neighbor_allgather_init, one.data(),
         count, MPI_INT, in.data(), count, MPI_INT, n.comm);
    check("MPI_Neighbor_allgather", true, dense, whole);

    const std::vector<int> counts(in_degree, count);
    fill();
    call(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, MPI_Neighbor_allgatherv_init,
         one.data(), count, MPI_INT, in.data(), counts.data(), places.data(), MPI_INT, n.comm);
    check("MPI_Neighbor_allgatherv", true, width, whole);

    fill();
    std::vector<int> packed;
    for (std::size_t e = 0; e < out_degree; ++e) {
        packed.insert(packed.end(), out.begin() + static_cast<long>(e * width),
                      out.begin() + static_cast<long>(e * width) + count);
    }
    call(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, MPI_Neighbor_alltoall_init, packed.data(),
         count, MPI_INT, in.data(), count, MPI_INT, n.comm);
    check("MPI_Neighbor_alltoall", false, dense, whole);
}

// Counts that differ by edge: edge e of a rank's destinations has count - e elements, or none.
void Blocks::uneven() {
    std::vector<int> counts(in_degree), out_counts, out_places;
    std::vector<MPI_Aint> out_bytes, in_bytes;
    std::vector<MPI_Datatype> out_types(out_degree, MPI_INT), in_types(in_degree, MPI_INT);
    const auto elements = [&](int edge) { return std::max(0, count - edge); };
    for (std::size_t e = 0; e < out_degree; ++e) {
        out_counts.push_back(elements(static_cast<int>(e)));
        out_places.push_back(static_cast<int>(e * width));
        out_bytes.push_back(static_cast<MPI_Aint>(e * width * sizeof(int)));
    }
    for (std::size_t e = 0; e < in_degree; ++e) {
        counts[e] = elements(n.feeding[e]);
        in_bytes.push_back(static_cast<MPI_Aint>(e * width * sizeof(int)));
    }
    const auto received = [&](std::size_t e) { return counts[e]; };
    fill();
    call(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, MPI_Neighbor_alltoallv_init, out.data(),
         out_counts.data(), out_places.data(), MPI_INT, in.data(), counts.data(), places.data(),
         MPI_INT, n.comm);
    check("MPI_Neighbor_alltoallv", false, width, received);
    fill();
    call(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, MPI_Neighbor_alltoallw_init, out.data(),
         out_counts.data(), out_bytes.data(), out_types.data(), in.data(), counts.data(),
         in_bytes.data(), in_types.data(), n.comm);
    check("MPI_Neighbor_alltoallw", false, width, received);
}

void test(const Neighbours& n, int count) {
    Blocks blocks(n, count);
    blocks.equal();
    blocks.uneven();
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    choose_form(argc, argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<Neighbours> all;
    all.push_back(grid({size}, {1}));
    all.push_back(grid({size}, {0}));
    all.push_back(grid({1, size, 1}, {1, 1, 0}));
    if (size % 2 == 0) {
        all.push_back(grid({2, size / 2}, {1, 0}));
        all.push_back(grid({size / 2, 2}, {0, 1}));
    }
    if (size > 2) {
        all.push_back(grid({2}, {1})); // not for all ranks
    }
    all.push_back(distributed(rank, size));
    all.push_back(star(rank, size));
    for (Neighbours& n : all) {
        if (n.comm != MPI_COMM_NULL) {
            for (int count : {0, 1, 5, 3000, 100'000}) {
                test(n, count);
            }
            MPI_Comm_free(&n.comm);
        }
    }
    MPI_Comm plain;
    MPI_Comm_dup(MPI_COMM_WORLD, &plain);
    MPI_Comm_set_errhandler(plain, MPI_ERRORS_RETURN);
    int code = MPI_Neighbor_allgather(&rank, 1, MPI_INT, &size, 1, MPI_INT, plain);
    MPI_Error_class(code, &code);
    expect(code == MPI_ERR_TOPOLOGY, "MPI_Neighbor_allgather", "without a topology");
    MPI_Comm_free(&plain);
    const int always = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &always, 0, &plain);
    MPI_Comm_set_errhandler(plain, MPI_ERRORS_RETURN);
    code = MPI_Neighbor_alltoall(nullptr, 1, MPI_INT, &rank, 1, MPI_INT, plain);
    MPI_Error_class(code, &code);
    expect(code == MPI_ERR_BUFFER, "MPI_Neighbor_alltoall", "from nowhere");
    MPI_Comm_free(&plain);
    return finish("neighbours");
}
