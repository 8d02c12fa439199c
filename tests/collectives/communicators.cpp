// Groups and communicators: who is in what is made, in which order, what comparing says, and more
// duplicates alive and freed than the node has collective slots. Runs on any MPI.

#include "reference.hpp"

#include <cstring>

using namespace reference;

namespace {

int world_rank, world_size;

// The members of a communicator as ranks of the world.
std::vector<int> members_of(MPI_Comm comm) {
    MPI_Group group, world;
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int size;
    MPI_Group_size(group, &size);
    std::vector<int> ranks, members(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r) {
        ranks.push_back(r);
    }
    MPI_Group_translate_ranks(group, size, ranks.data(), world, members.data());
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return members;
}

// Every member's view agrees, and messages and sums stay inside.
void check_communicator(MPI_Comm comm, const std::vector<int>& expected, const char* what) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    expect(members_of(comm) == expected, what, "members");
    expect(expected[static_cast<std::size_t>(rank)] == world_rank, what, "own rank");
    long sum = 0, own = 1L << (world_rank % 48), all = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, comm);
    for (int member : expected) {
        all += 1L << (member % 48);
    }
    expect(sum == all, what, "sum over the members");
}

void splits() {
    MPI_Comm comm;
    // Three colours, keys in reverse, all equal keys for the last colour.
    const int color = world_rank % 3;
    MPI_Comm_split(MPI_COMM_WORLD, color, color == 2 ? 5 : -world_rank, &comm);
    std::vector<int> expected;
    for (int r = 0; r < world_size; ++r) {
        if (r % 3 == color) {
            expected.insert(color == 2 ? expected.end() : expected.begin(), r);
        }
    }
    check_communicator(comm, expected, "MPI_Comm_split");
    // A split of a split.
    MPI_Comm half;
    int rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_split(comm, rank % 2 == 0 ? 0 : MPI_UNDEFINED, rank, &half);
    expect((half == MPI_COMM_NULL) == (rank % 2 != 0), "MPI_Comm_split", "undefined colour");
    if (half != MPI_COMM_NULL) {
        std::vector<int> even;
        for (std::size_t r = 0; r < expected.size(); r += 2) {
            even.push_back(expected[r]);
        }
        check_communicator(half, even, "MPI_Comm_split of a split");
        MPI_Comm_free(&half);
        expect(half == MPI_COMM_NULL, "MPI_Comm_free", "the handle is not null");
    }
    MPI_Comm_free(&comm);

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &comm);
    int result;
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    expect(result == MPI_CONGRUENT, "MPI_Comm_split_type", "one node has one shared memory");
    MPI_Comm_free(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm);
    expect(comm == MPI_COMM_NULL, "MPI_Comm_split_type", "undefined");
}

void comparisons() {
    MPI_Comm duplicate, reversed;
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    int result;
    MPI_Comm_compare(duplicate, duplicate, &result);
    expect(result == MPI_IDENT, "MPI_Comm_compare", "itself");
    MPI_Comm_compare(MPI_COMM_WORLD, duplicate, &result);
    expect(result == MPI_CONGRUENT, "MPI_Comm_compare", "duplicate");
    MPI_Comm_compare(MPI_COMM_WORLD, reversed, &result);
    expect(result == (world_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR), "MPI_Comm_compare",
           "reversed");
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
    expect(result == (world_size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL), "MPI_Comm_compare", "self");
    int inter = 1;
    MPI_Comm_test_inter(duplicate, &inter);
    expect(inter == 0, "MPI_Comm_test_inter", "an intracommunicator");

    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    expect(std::strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14, "MPI_Comm_get_name", name);
    MPI_Comm_set_name(duplicate, "second");
    MPI_Comm_get_name(duplicate, name, &length);
    expect(std::strcmp(name, "second") == 0 && length == 6, "MPI_Comm_set_name", name);
    MPI_Comm_free(&duplicate);
    MPI_Comm_free(&reversed);
}

// Disjoint groups at once, and groups that only their members know of.
void groups() {
    MPI_Group world, halves, empty;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int middle = (world_size + 1) / 2;
    const bool low = world_rank < middle;
    if (low) {
        int range[1][3] = {{0, middle - 1, 1}};
        MPI_Group_range_incl(world, 1, range, &halves);
    } else {
        int range[1][3] = {{0, middle - 1, 1}};
        MPI_Group_range_excl(world, 1, range, &halves);
    }
    std::vector<int> expected;
    for (int r = low ? 0 : middle; r < (low ? middle : world_size); ++r) {
        expected.push_back(r);
    }
    MPI_Comm comm;
    MPI_Comm_create(MPI_COMM_WORLD, halves, &comm);
    check_communicator(comm, expected, "MPI_Comm_create");
    MPI_Comm_free(&comm);
    MPI_Comm_create_group(MPI_COMM_WORLD, halves, 77, &comm);
    check_communicator(comm, expected, "MPI_Comm_create_group");
    MPI_Comm_free(&comm);
    MPI_Group_difference(world, world, &empty);
    expect(empty == MPI_GROUP_EMPTY, "MPI_Group_difference", "of a group and itself");
    MPI_Comm_create(MPI_COMM_WORLD, low ? MPI_GROUP_EMPTY : halves, &comm);
    expect((comm == MPI_COMM_NULL) == low, "MPI_Comm_create", "with the empty group");
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&halves);
    MPI_Group_free(&world);
}

// More than there are collective slots, all alive and used; then a long row of short-lived ones.
void many() {
    std::vector<MPI_Comm> alive(300);
    long expected = 0;
    for (int r = 0; r < world_size; ++r) {
        expected += r;
    }
    for (MPI_Comm& comm : alive) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    for (MPI_Comm comm : alive) {
        long own = world_rank, sum = 0;
        MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, comm);
        expect(sum == expected, "MPI_Allreduce", "on one of 300 duplicates");
    }
    for (MPI_Comm& comm : alive) {
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < 1000; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        long own = world_rank, sum = 0;
        MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, comm);
        expect(sum == expected, "MPI_Allreduce", "on a short-lived duplicate");
        MPI_Comm_free(&comm);
    }
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    splits();
    comparisons();
    if (world_size > 1) {
        groups();
    }
    many();
    return finish("communicators");
}
