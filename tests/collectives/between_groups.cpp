// Collective operations of intercommunicators against references, for groups of all sizes that a
// small world can be split into, all roots of both groups, in the three forms. Runs on any MPI.

#include "reference.hpp"

#include <algorithm>

using namespace reference;

namespace {

struct Inter {
    MPI_Comm comm;
    int rank, size, remote; // the own group's size, and the other's
    bool low;               // the group that holds world rank 0

    // A process's number, for values: the same in both groups' eyes.
    int own() const { return low ? rank : 1000 + rank; }
    int other(int peer) const { return low ? 1000 + peer : peer; }
};

int sum(const Inter& c, long index) {
    int total = 0;
    for (int peer = 0; peer < c.remote; ++peer) {
        total += value(c.other(peer), 0, index) & 0xffff;
    }
    return total;
}

std::vector<int> make(int from, int to, long count) {
    std::vector<int> made;
    for (long i = 0; i < count; ++i) {
        made.push_back(value(from, to, i));
    }
    return made;
}

std::vector<int> small(const Inter& c, long count) {
    std::vector<int> made = make(c.own(), 0, count);
    for (int& i : made) {
        i &= 0xffff;
    }
    return made;
}

// Operations with a root, which is number `root` of the low or the other group.
void rooted(const Inter& c, int count, bool root_is_low, int root) {
    const bool here = c.low == root_is_low;
    const bool is_root = here && c.rank == root;
    const int argument = !here ? root : is_root ? MPI_ROOT : MPI_PROC_NULL;
    const int root_number = root_is_low ? root : 1000 + root;
    const std::string text = "count " + std::to_string(count) + ", groups " +
                             std::to_string(c.size) + " and " + std::to_string(c.remote);

    std::vector<int> data = is_root ? make(root_number, 1, count) : make(gap, gap, count);
    call(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, data.data(), count, MPI_INT, argument, c.comm);
    expect(here || data == make(root_number, 1, count), "MPI_Bcast", text);

    std::vector<int> own = make(c.own(), 2, count);
    std::vector<int> all(is_root ? static_cast<std::size_t>(count * c.remote) : 0);
    call(MPI_Gather, MPI_Igather, MPI_Gather_init, own.data(), count, MPI_INT, all.data(), count,
         MPI_INT, argument, c.comm);
    std::vector<int> expected, counts, places;
    for (int peer = 0; peer < c.remote; ++peer) {
        const std::vector<int> block = make(c.other(peer), 2, count);
        expected.insert(expected.end(), block.begin(), block.end());
        counts.push_back(count);
        places.push_back(peer * count);
    }
    expect(!is_root || all == expected, "MPI_Gather", text);
    all.assign(all.size(), gap);
    call(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, own.data(), count, MPI_INT, all.data(),
         counts.data(), places.data(), MPI_INT, argument, c.comm);
    expect(!is_root || all == expected, "MPI_Gatherv", text);

    for (int peer = 0; is_root && peer < c.remote; ++peer) {
        const std::vector<int> block = make(root_number, c.other(peer), count);
        std::copy(block.begin(), block.end(), all.begin() + static_cast<long>(peer) * count);
    }
    own.assign(own.size(), gap);
    call(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, all.data(), count, MPI_INT, own.data(), count,
         MPI_INT, argument, c.comm);
    expect(here || own == make(root_number, c.own(), count), "MPI_Scatter", text);
    own.assign(own.size(), gap);
    call(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, all.data(), counts.data(), places.data(),
         MPI_INT, own.data(), count, MPI_INT, argument, c.comm);
    expect(here || own == make(root_number, c.own(), count), "MPI_Scatterv", text);

    const std::vector<int> mine = small(c, count);
    std::vector<int> total(static_cast<std::size_t>(count), gap);
    // Beside the root nothing means anything: there is no sum of bytes.
    const MPI_Datatype type = argument == MPI_PROC_NULL ? MPI_BYTE : MPI_INT;
    call(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, mine.data(), total.data(), count, type, MPI_SUM,
         argument, c.comm);
    for (int i = 0; i < count; ++i) {
        expect(total[static_cast<std::size_t>(i)] == (is_root ? sum(c, i) : gap), "MPI_Reduce",
               text);
    }
}

void unrooted(const Inter& c, int count) {
    const std::string text = "count " + std::to_string(count) + ", groups " +
                             std::to_string(c.size) + " and " + std::to_string(c.remote);
    call(MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, c.comm);

    std::vector<int> own = make(c.own(), 3, count);
    std::vector<int> expected, to_all, from_all, counts, places, bytes;
    for (int peer = 0; peer < c.remote; ++peer) {
        std::vector<int> block = make(c.other(peer), 3, count);
        expected.insert(expected.end(), block.begin(), block.end());
        block = make(c.own(), c.other(peer), count);
        to_all.insert(to_all.end(), block.begin(), block.end());
        block = make(c.other(peer), c.own(), count);
        from_all.insert(from_all.end(), block.begin(), block.end());
        counts.push_back(count);
        places.push_back(peer * count);
        bytes.push_back(places.back() * static_cast<int>(sizeof(int)));
    }
    const std::vector<MPI_Datatype> types(static_cast<std::size_t>(c.remote), MPI_INT);
    std::vector<int> in(expected.size(), gap);
    call(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, own.data(), count, MPI_INT, in.data(),
         count, MPI_INT, c.comm);
    expect(in == expected, "MPI_Allgather", text);
    in.assign(in.size(), gap);
    call(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, own.data(), count, MPI_INT,
         in.data(), counts.data(), places.data(), MPI_INT, c.comm);
    expect(in == expected, "MPI_Allgatherv", text);
    in.assign(in.size(), gap);
    call(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, to_all.data(), count, MPI_INT, in.data(),
         count, MPI_INT, c.comm);
    expect(in == from_all, "MPI_Alltoall", text);
    in.assign(in.size(), gap);
    call(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, to_all.data(), counts.data(),
         places.data(), MPI_INT, in.data(), counts.data(), places.data(), MPI_INT, c.comm);
    expect(in == from_all, "MPI_Alltoallv", text);
    in.assign(in.size(), gap);
    call(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, to_all.data(), counts.data(),
         bytes.data(), types.data(), in.data(), counts.data(), bytes.data(), types.data(), c.comm);
    expect(in == from_all, "MPI_Alltoallw", text);

    std::vector<int> mine = small(c, count);
    std::vector<int> total(static_cast<std::size_t>(count), gap);
    call(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, mine.data(), total.data(), count,
         MPI_INT, MPI_SUM, c.comm);
    for (int i = 0; i < count; ++i) {
        expect(total[static_cast<std::size_t>(i)] == sum(c, i), "MPI_Allreduce", text);
    }

    // Both groups have vectors of size · remote · count elements.
    const int block = c.remote * count;
    mine = small(c, static_cast<long>(block) * c.size);
    total.assign(static_cast<std::size_t>(block), gap);
    call(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init,
         mine.data(), total.data(), block, MPI_INT, MPI_SUM, c.comm);
    for (int i = 0; i<block; i += block> 500 ? 13 : 1) {
        expect(total[static_cast<std::size_t>(i)] == sum(c, static_cast<long>(c.rank) * block + i),
               "MPI_Reduce_scatter_block", text);
    }
    // All of it to the first rank of each group.
    const int whole = block * c.size;
    std::vector<int> parts(static_cast<std::size_t>(c.size));
    parts[0] = whole;
    const int part = parts[static_cast<std::size_t>(c.rank)];
    total.assign(static_cast<std::size_t>(part), gap);
    call(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, mine.data(),
         total.data(), parts.data(), MPI_INT, MPI_SUM, c.comm);
    for (int i = 0; i<part; i += part> 500 ? 13 : 1) {
        expect(total[static_cast<std::size_t>(i)] == sum(c, i), "MPI_Reduce_scatter", text);
    }
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    choose_form(argc, argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // All of it takes time in proportion to the fourth power of the ranks: of many, some splits and
    // roots.
    const bool are_many = size > 16;
    const int split_step = are_many ? (size - 2) / 2 : 1;
    const int root_step = are_many ? (size - 1) / 3 : 1;
    for (int low = 1; low < size; low += split_step) {
        MPI_Comm group;
        MPI_Comm_split(MPI_COMM_WORLD, rank < low ? 0 : 1, 0, &group);
        Inter c{};
        MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank < low ? low : 0, 7, &c.comm);
        MPI_Comm_rank(c.comm, &c.rank);
        MPI_Comm_size(c.comm, &c.size);
        MPI_Comm_remote_size(c.comm, &c.remote);
        c.low = rank < low;
        for (int count : {0, 1, 50, are_many ? 300 : 3000}) {
            for (int root = 0; root < size; root += root_step) {
                rooted(c, count, root < low, root < low ? root : root - low);
            }
            unrooted(c, count);
        }
        MPI_Comm_set_errhandler(c.comm, MPI_ERRORS_RETURN);
        int in = 1, out = 1;
        expect(MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, c.comm) != MPI_SUCCESS, "MPI_Scan",
               "is there between groups");
        MPI_Comm_free(&c.comm);
        MPI_Comm_free(&group);
    }
    return finish("between groups");
}
