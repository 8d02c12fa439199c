// Intercommunicators: made from two halves of the world and from each other, who is in which group,
// messages across, merges in both orders.
#include "check.hpp"

namespace {

// Ranks of the world below `border` are the left group, in falling order when `turned`.
struct Pair {
    int border;
    bool left;
    std::vector<int> local, remote; // world ranks, in order
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm inter = MPI_COMM_NULL;

    Pair(int where, bool turned) : border(where), left(world_rank < where) {
        std::vector<int> below, above;
        for (int r = 0; r < world_size; ++r) {
            std::vector<int>& group = r < border ? below : above;
            group.insert(turned ? group.begin() : group.end(), r);
        }
        local = left ? below : above;
        remote = left ? above : below;
        MPI_Comm_split(MPI_COMM_WORLD, left ? 0 : 1, turned ? -world_rank : world_rank, &half);
        // The leaders: the last of the left, the first of the right.
        const int leader = left ? size_of(half) - 1 : 0;
        const int other = left ? above.front() : below.back();
        const bool leads = rank_in(half) == leader;
        EXPECT(MPI_Intercomm_create(half, leader, leads ? MPI_COMM_WORLD : MPI_COMM_NULL,
                                    leads ? other : -7, 12, &inter) == MPI_SUCCESS);
    }
    ~Pair() {
        MPI_Comm_free(&half);
        if (inter != MPI_COMM_NULL) {
            MPI_Comm_free(&inter);
        }
    }
};

void check(MPI_Comm inter, const std::vector<int>& local, const std::vector<int>& remote) {
    int flag, local_size, remote_size;
    MPI_Comm_test_inter(inter, &flag);
    EXPECT(flag != 0);
    MPI_Comm_size(inter, &local_size);
    MPI_Comm_remote_size(inter, &remote_size);
    EXPECT(local_size == static_cast<int>(local.size()));
    EXPECT(remote_size == static_cast<int>(remote.size()));
    EXPECT(local[static_cast<std::size_t>(rank_in(inter))] == world_rank);
    MPI_Group group;
    MPI_Comm_group(inter, &group);
    EXPECT(members_of(group) == local);
    MPI_Group_free(&group);
    MPI_Comm_remote_group(inter, &group);
    EXPECT(members_of(group) == remote);
    MPI_Group_free(&group);
    // Everybody to everybody across.
    std::vector<int> heard(remote.size(), -1);
    std::vector<MPI_Request> requests;
    for (int peer = 0; peer < remote_size; ++peer) {
        requests.emplace_back();
        MPI_Irecv(&heard[static_cast<std::size_t>(peer)], 1, MPI_INT, peer, 3, inter,
                  &requests.back());
    }
    for (int peer = 0; peer < remote_size; ++peer) {
        MPI_Send(&world_rank, 1, MPI_INT, peer, 3, inter);
    }
    MPI_Waitall(remote_size, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT(heard == remote);
    // A wildcard says the rank in the remote group.
    const int own = rank_in(inter), peer = own % remote_size;
    if (own < remote_size) {
        MPI_Request request;
        MPI_Isend(&world_rank, 1, MPI_INT, peer, 4, inter, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (own < remote_size) {
        MPI_Status status;
        int value;
        MPI_Probe(MPI_ANY_SOURCE, 4, inter, &status);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, inter, &status);
        EXPECT(status.MPI_SOURCE == own);
        EXPECT(value == remote[static_cast<std::size_t>(own)]);
    }
}

void pairs() {
    for (int border = 1; border < world_size; ++border) {
        for (const bool turned : {false, true}) {
            Pair pair(border, turned);
            check(pair.inter, pair.local, pair.remote);

            MPI_Comm twin, once_more;
            EXPECT(MPI_Comm_dup(pair.inter, &twin) == MPI_SUCCESS);
            check(twin, pair.local, pair.remote);
            int result;
            MPI_Comm_compare(twin, pair.inter, &result);
            EXPECT(result == MPI_CONGRUENT);
            MPI_Comm_compare(twin, twin, &result);
            EXPECT(result == MPI_IDENT);
            MPI_Comm_compare(twin, pair.half, &result);
            EXPECT(result == MPI_UNEQUAL);
            // Messages of the one are not the other's.
            MPI_Comm_dup(twin, &once_more);
            if (rank_in(twin) == 0) {
                int first = 1, second = 2, got = 0;
                MPI_Send(&first, 1, MPI_INT, 0, 0, twin);
                MPI_Send(&second, 1, MPI_INT, 0, 0, once_more);
                MPI_Recv(&got, 1, MPI_INT, 0, 0, once_more, MPI_STATUS_IGNORE);
                EXPECT(got == 2);
                MPI_Recv(&got, 1, MPI_INT, 0, 0, twin, MPI_STATUS_IGNORE);
                EXPECT(got == 1);
            }
            MPI_Comm_free(&once_more);
            MPI_Comm_free(&twin);

            // Merges: left first, right first, nobody says.
            for (int how = 0; how < 3; ++how) {
                MPI_Comm merged;
                const int high = how == 2 ? 1 : (pair.left ? how : 1 - how);
                EXPECT(MPI_Intercomm_merge(pair.inter, high, &merged) == MPI_SUCCESS);
                EXPECT(size_of(merged) == world_size);
                std::vector<int> expected = pair.left == (how == 0) ? pair.local : pair.remote;
                const std::vector<int>& rest = pair.left == (how == 0) ? pair.remote : pair.local;
                expected.insert(expected.end(), rest.begin(), rest.end());
                MPI_Group group;
                MPI_Comm_group(merged, &group);
                if (how < 2) {
                    EXPECT(members_of(group) == expected);
                }
                MPI_Group_free(&group);
                int sum = 0, flag;
                MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, merged);
                EXPECT(sum == world_size * (world_size - 1) / 2);
                MPI_Comm_test_inter(merged, &flag);
                EXPECT(flag == 0);
                MPI_Comm_free(&merged);
            }
        }
    }
}

// Even and odd ranks of both sides, in falling order; a colour of one side only makes nothing.
void splits() {
    for (int border = 1; border < world_size; ++border) {
        Pair pair(border, false);
        const auto of_parity = [](const std::vector<int>& ranks, int parity) {
            std::vector<int> chosen;
            for (int r : ranks) {
                if (r % 2 == parity) {
                    chosen.insert(chosen.begin(), r);
                }
            }
            return chosen;
        };
        MPI_Comm comm;
        EXPECT(MPI_Comm_split(pair.inter, world_rank % 2, -world_rank, &comm) == MPI_SUCCESS);
        const auto local = of_parity(pair.local, world_rank % 2);
        const auto remote = of_parity(pair.remote, world_rank % 2);
        EXPECT((comm == MPI_COMM_NULL) == remote.empty());
        if (comm != MPI_COMM_NULL) {
            check(comm, local, remote);
            MPI_Comm_free(&comm);
        }
        MPI_Comm_split(pair.inter, pair.left ? 5 : MPI_UNDEFINED, 0, &comm);
        EXPECT(comm == MPI_COMM_NULL);

        // The first two of each side, the other way round.
        MPI_Group whole, group;
        MPI_Comm_group(pair.inter, &whole);
        const int reversed[] = {1, 0};
        const int few = std::min<int>(2, static_cast<int>(pair.local.size()));
        MPI_Group_incl(whole, few, few == 2 ? reversed : reversed + 1, &group);
        EXPECT(MPI_Comm_create(pair.inter, group, &comm) == MPI_SUCCESS);
        EXPECT((comm == MPI_COMM_NULL) == (rank_in(pair.inter) >= few));
        if (comm != MPI_COMM_NULL) {
            const auto first_two = [](std::vector<int> ranks) {
                ranks.resize(std::min<std::size_t>(2, ranks.size()));
                std::reverse(ranks.begin(), ranks.end());
                return ranks;
            };
            check(comm, first_two(pair.local), first_two(pair.remote));
            MPI_Comm_free(&comm);
        }
        MPI_Group_free(&group);
        MPI_Group_free(&whole);
        EXPECT(MPI_Comm_create(pair.inter, MPI_GROUP_EMPTY, &comm) == MPI_SUCCESS);
        EXPECT(comm == MPI_COMM_NULL);
    }
}

void mistakes() {
    MPI_Comm comm;
    int value;
    MPI_Group group;
    EXPECT(class_of(MPI_Comm_remote_size(MPI_COMM_WORLD, &value)) == MPI_ERR_COMM);
    EXPECT(class_of(MPI_Comm_remote_group(MPI_COMM_WORLD, &group)) == MPI_ERR_COMM);
    EXPECT(class_of(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &comm)) == MPI_ERR_COMM);
    EXPECT(class_of(MPI_Intercomm_create(MPI_COMM_WORLD, world_size, MPI_COMM_WORLD, 0, 0,
                                         &comm)) == MPI_ERR_RANK);
    EXPECT(class_of(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_NULL, 0, 0, &comm)) ==
           MPI_ERR_COMM);
    EXPECT(class_of(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, world_size, 0, &comm)) ==
           MPI_ERR_RANK);
    EXPECT(class_of(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, world_rank, 0, &comm)) ==
           MPI_ERR_RANK);
    if (world_size < 2) {
        return;
    }
    Pair pair(1, false);
    MPI_Comm_set_errhandler(pair.inter, MPI_ERRORS_RETURN);
    EXPECT(class_of(MPI_Send(&value, 1, MPI_INT, static_cast<int>(pair.remote.size()), 0,
                             pair.inter)) == MPI_ERR_RANK);
    const int ndims = 0;
    EXPECT(class_of(MPI_Cart_create(pair.inter, ndims, nullptr, nullptr, 0, &comm)) ==
           MPI_ERR_COMM);
    EXPECT(class_of(MPI_Comm_create_group(pair.inter, MPI_GROUP_EMPTY, 0, &comm)) == MPI_ERR_COMM);
    // An intercommunicator over another one.
    MPI_Comm again;
    EXPECT(MPI_Intercomm_create(pair.half, 0, pair.inter, 0, 3, &again) == MPI_SUCCESS);
    check(again, pair.local, pair.remote);
    MPI_Comm_free(&again);
}

} // namespace

int main(int argc, char** argv) {
    start(&argc, &argv);
    pairs();
    splits();
    mistakes();
    return finish();
}
