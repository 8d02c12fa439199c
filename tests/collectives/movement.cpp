// Broadcast, gather, scatter, allgather and all-to-all in all variants: every root, sizes from
// nothing to large, datatypes with gaps and different ones at the two ends, MPI_IN_PLACE, on
// communicators of many shapes. Runs on any MPI.

#include "reference.hpp"

using namespace reference;

namespace {

struct Case {
    MPI_Comm comm;
    int rank, size;
    int count; // elements of the layout
    const Layout& layout;
    const Layout& plain; // MPI_INT: the other end of the message
    std::string text;

    int ints() const { return count * layout.ints(); }
    void check(bool good, const char* operation) const { expect(good, operation, text); }
};

void bcast(const Case& c, int root) {
    // The root has the layout, odd ranks plain ints of the same number.
    const bool plain = c.rank != root && c.rank % 2 == 1;
    Buffer buffer(plain ? c.plain : c.layout, 1, plain ? c.ints() : c.count);
    if (c.rank == root) {
        buffer.fill(0, root, 0);
    }
    call(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, buffer.data(), plain ? c.ints() : c.count,
         buffer.type(), root, c.comm);
    c.check(buffer.take(0, root, 0) && buffer.untouched(), "MPI_Bcast");
}

void gather(const Case& c, int root, bool in_place) {
    Buffer out(c.plain, 1, c.ints());
    Buffer in(c.layout, c.rank == root ? c.size : 0, c.count);
    out.fill(0, c.rank, root);
    if (in_place && c.rank == root) {
        in.fill(root, root, root);
    }
    call(MPI_Gather, MPI_Igather, MPI_Gather_init,
         in_place && c.rank == root ? MPI_IN_PLACE : out.data(), c.ints(), MPI_INT, in.data(),
         c.count, in.type(), root, c.comm);
    bool good = true;
    for (int r = 0; c.rank == root && r < c.size; ++r) {
        good = in.take(r, r, root) && good;
    }
    c.check(good && in.untouched(), in_place ? "MPI_Gather in place" : "MPI_Gather");
}

void scatter(const Case& c, int root, bool in_place) {
    Buffer out(c.layout, c.rank == root ? c.size : 0, c.count);
    Buffer in(c.plain, 1, c.ints());
    for (int r = 0; c.rank == root && r < c.size; ++r) {
        out.fill(r, root, r);
    }
    const bool here = in_place && c.rank == root;
    call(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, out.data(), c.count, out.type(),
         here ? MPI_IN_PLACE : in.data(), c.ints(), MPI_INT, root, c.comm);
    c.check((here || in.take(0, root, c.rank)) && in.untouched(),
            in_place ? "MPI_Scatter in place" : "MPI_Scatter");
}

// Variants with counts: rank r has count + r % 3 elements, a gap of one element after each.
struct Uneven {
    std::vector<int> counts, displacements;

    Uneven(int size, int count, int factor = 1) {
        int at = 0;
        for (int r = 0; r < size; ++r) {
            const int own = count == 0 && r % 2 == 0 ? 0 : count + r % 3;
            counts.push_back(own * factor);
            displacements.push_back(at * factor);
            at += count + 3;
        }
    }
};

// A buffer of uneven blocks is one of even ones, of which the ends stay gaps.
struct UnevenBuffer {
    Buffer buffer;
    const std::vector<int>& counts;
    int ints_per_element;

    UnevenBuffer(const Layout& layout, int blocks, int count, const std::vector<int>& sizes)
        : buffer(layout, blocks, count + 3), counts(sizes), ints_per_element(layout.ints()) {}

    long ints(int block) const {
        return static_cast<long>(counts[static_cast<std::size_t>(block)]) * ints_per_element;
    }
    void fill(int block, int from, int to) {
        for (long i = 0; i < ints(block); ++i) {
            buffer.at(block, i) = value(from, to, i);
        }
    }
    bool take(int block, int from, int to) {
        bool good = true;
        for (long i = 0; i < ints(block); ++i) {
            good = good && buffer.at(block, i) == value(from, to, i);
            buffer.at(block, i) = gap;
        }
        return good;
    }
};

void gatherv_scatterv(const Case& c, int root, bool in_place) {
    const Uneven uneven(c.size, c.count);
    const auto own = static_cast<std::size_t>(c.rank);
    const int own_ints = uneven.counts[own] * c.layout.ints();
    const bool here = in_place && c.rank == root;
    {
        Buffer out(c.plain, 1, own_ints);
        out.fill(0, c.rank, root);
        UnevenBuffer in(c.layout, c.rank == root ? c.size : 0, c.count, uneven.counts);
        if (here) {
            in.fill(root, root, root);
        }
        call(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, here ? MPI_IN_PLACE : out.data(),
             own_ints, MPI_INT, in.buffer.data(), uneven.counts.data(), uneven.displacements.data(),
             c.layout.type, root, c.comm);
        bool good = true;
        for (int r = 0; c.rank == root && r < c.size; ++r) {
            good = in.take(r, r, root) && good;
        }
        c.check(good && in.buffer.untouched(), in_place ? "MPI_Gatherv in place" : "MPI_Gatherv");
    }
    UnevenBuffer out(c.layout, c.rank == root ? c.size : 0, c.count, uneven.counts);
    for (int r = 0; c.rank == root && r < c.size; ++r) {
        out.fill(r, root, r);
    }
    Buffer in(c.plain, 1, own_ints);
    call(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, out.buffer.data(), uneven.counts.data(),
         uneven.displacements.data(), c.layout.type, here ? MPI_IN_PLACE : in.data(), own_ints,
         MPI_INT, root, c.comm);
    c.check((here || in.take(0, root, c.rank)) && in.untouched(),
            in_place ? "MPI_Scatterv in place" : "MPI_Scatterv");
}

void allgather(const Case& c, bool in_place) {
    Buffer out(c.plain, 1, c.ints());
    out.fill(0, c.rank, 0);
    Buffer in(c.layout, c.size, c.count);
    if (in_place) {
        in.fill(c.rank, c.rank, 0);
    }
    call(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, in_place ? MPI_IN_PLACE : out.data(),
         c.ints(), MPI_INT, in.data(), c.count, in.type(), c.comm);
    bool good = true;
    for (int r = 0; r < c.size; ++r) {
        good = in.take(r, r, 0) && good;
    }
    c.check(good && in.untouched(), in_place ? "MPI_Allgather in place" : "MPI_Allgather");
}

void allgatherv(const Case& c, bool in_place) {
    const Uneven uneven(c.size, c.count);
    const int own_ints = uneven.counts[static_cast<std::size_t>(c.rank)] * c.layout.ints();
    Buffer out(c.plain, 1, own_ints);
    out.fill(0, c.rank, 0);
    UnevenBuffer in(c.layout, c.size, c.count, uneven.counts);
    if (in_place) {
        in.fill(c.rank, c.rank, 0);
    }
    call(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, in_place ? MPI_IN_PLACE : out.data(),
         own_ints, MPI_INT, in.buffer.data(), uneven.counts.data(), uneven.displacements.data(),
         c.layout.type, c.comm);
    bool good = true;
    for (int r = 0; r < c.size; ++r) {
        good = in.take(r, r, 0) && good;
    }
    c.check(good && in.buffer.untouched(), in_place ? "MPI_Allgatherv in place" : "MPI_Allgatherv");
}

void alltoall(const Case& c, bool in_place) {
    Buffer out(c.plain, c.size, c.ints());
    Buffer in(c.layout, c.size, c.count);
    for (int r = 0; r < c.size; ++r) {
        (in_place ? in : out).fill(r, c.rank, r);
    }
    call(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, in_place ? MPI_IN_PLACE : out.data(),
         c.ints(), MPI_INT, in.data(), c.count, in.type(), c.comm);
    bool good = true;
    for (int r = 0; r < c.size; ++r) {
        good = in.take(r, r, c.rank) && good;
    }
    c.check(good && in.untouched(), in_place ? "MPI_Alltoall in place" : "MPI_Alltoall");
}

// What rank a sends to b depends on both, the same in both directions (for MPI_IN_PLACE).
int pair_count(const Case& c, int a, int b) {
    return c.count == 0 ? 0 : (a + b) % 4 == 3 ? 0 : c.count + (a + b) % 3;
}

void alltoallv_alltoallw(const Case& c, bool in_place) {
    std::vector<int> counts, displacements, int_counts, int_displacements, bytes, int_bytes;
    std::vector<MPI_Datatype> types, int_types;
    for (int r = 0; r < c.size; ++r) {
        counts.push_back(pair_count(c, c.rank, r));
        displacements.push_back(r * (c.count + 3));
        int_counts.push_back(counts.back() * c.layout.ints());
        int_displacements.push_back(displacements.back() * c.layout.ints());
        bytes.push_back(displacements.back() * c.layout.extent * static_cast<int>(sizeof(int)));
        int_bytes.push_back(int_displacements.back() * static_cast<int>(sizeof(int)));
        types.push_back(c.layout.type);
        int_types.push_back(MPI_INT);
    }
    for (bool typed : {false, true}) {
        UnevenBuffer out(c.plain, c.size, (c.count + 3) * c.layout.ints() - 3, int_counts);
        UnevenBuffer in(c.layout, c.size, c.count, counts);
        for (int r = 0; r < c.size; ++r) {
            (in_place ? in : out).fill(r, c.rank, r);
        }
        void* from = in_place ? MPI_IN_PLACE : out.buffer.data();
        if (typed) {
            call(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, from, int_counts.data(),
                 int_bytes.data(), int_types.data(), in.buffer.data(), counts.data(), bytes.data(),
                 types.data(), c.comm);
        } else {
            call(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, from, int_counts.data(),
                 int_displacements.data(), MPI_INT, in.buffer.data(), counts.data(),
                 displacements.data(), c.layout.type, c.comm);
        }
        bool good = true;
        for (int r = 0; r < c.size; ++r) {
            good = in.take(r, r, c.rank) && good;
        }
        c.check(good && in.buffer.untouched(),
                std::string(typed ? "MPI_Alltoallw" : "MPI_Alltoallv")
                    .append(in_place ? " in place" : "")
                    .c_str());
    }
}

// Bytes that one rank may hold for one operation: keeps large sizes to few ranks.
constexpr long buffer_limit_bytes = 4'000'000;

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    choose_form(argc, argv);
    std::vector<Named> communicators = make_communicators();
    std::vector<Layout> layouts = make_layouts();
    for (const Named& named : communicators) {
        int rank, size;
        MPI_Comm_rank(named.comm, &rank);
        MPI_Comm_size(named.comm, &size);
        for (const Layout& layout : layouts) {
            for (int count : {0, 1, 7, 1000, 100'000}) {
                const long bytes = static_cast<long>(size) * count * layout.extent * 4;
                if (count > 1 && bytes > buffer_limit_bytes) {
                    continue;
                }
                const Case c{named.comm,
                             rank,
                             size,
                             count,
                             layout,
                             layouts[0],
                             named.name + ", " + layout.name + ", count " + std::to_string(count)};
                for (bool in_place : {false, true}) {
                    // All roots of small communicators, some of large ones.
                    for (int root = 0; root<size; root += size> 8 ? size / 2 : 1) {
                        if (!in_place) {
                            bcast(c, root);
                        }
                        gather(c, root, in_place);
                        scatter(c, root, in_place);
                        gatherv_scatterv(c, root, in_place);
                    }
                    allgather(c, in_place);
                    allgatherv(c, in_place);
                    alltoall(c, in_place);
                    alltoallv_alltoallw(c, in_place);
                }
                MPI_Barrier(named.comm);
            }
        }
    }
    free_layouts(layouts);
    free_communicators(communicators);
    return finish("movement");
}
