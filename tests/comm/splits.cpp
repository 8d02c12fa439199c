// MPI_Comm_split and MPI_Comm_create with random colours and keys, against a model: of the world,
// of its children, and of communicators beyond those that the node has collective slots for.
#include "check.hpp"

#include <random>

namespace {

struct Choice {
    int colour;
    int key;
};

// All members of `comm` draw the same.
std::vector<Choice> draw(MPI_Comm comm, std::mt19937& random) {
    std::vector<Choice> choices(static_cast<std::size_t>(size_of(comm)));
    const int colours = static_cast<int>(random() % 4);
    for (Choice& choice : choices) {
        const int colour = static_cast<int>(random() % 5);
        choice = {colour <= colours ? colour * 1000 : MPI_UNDEFINED,
                  static_cast<int>(random() % 7) - 3};
    }
    return choices;
}

// Ranks of `comm` with the caller's colour, in the order of their keys.
std::vector<int> model(const std::vector<Choice>& choices, int rank) {
    std::vector<int> members;
    const int colour = choices[static_cast<std::size_t>(rank)].colour;
    for (int other = 0; other < static_cast<int>(choices.size()); ++other) {
        if (colour != MPI_UNDEFINED && choices[static_cast<std::size_t>(other)].colour == colour) {
            members.push_back(other);
        }
    }
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
        return choices[static_cast<std::size_t>(a)].key < choices[static_cast<std::size_t>(b)].key;
    });
    return members;
}

std::vector<int> members_in(MPI_Comm comm, MPI_Comm parent) {
    MPI_Group group, of_parent;
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(parent, &of_parent);
    std::vector<int> ranks(static_cast<std::size_t>(size_of(comm))), found(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        ranks[i] = static_cast<int>(i);
    }
    MPI_Group_translate_ranks(group, size_of(comm), ranks.data(), of_parent, found.data());
    MPI_Group_free(&group);
    MPI_Group_free(&of_parent);
    return found;
}

// The members are the expected ones, and can talk.
void examine(MPI_Comm made, MPI_Comm parent, const std::vector<int>& expected) {
    EXPECT((made == MPI_COMM_NULL) == expected.empty());
    if (made == MPI_COMM_NULL) {
        return;
    }
    EXPECT(members_in(made, parent) == expected);
    EXPECT(expected[static_cast<std::size_t>(rank_in(made))] == rank_in(parent));
    int sum = 0, own = rank_in(parent), model_sum = 0;
    for (const int member : expected) {
        model_sum += member;
    }
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, made);
    EXPECT(sum == model_sum);
}

void split_and_create(MPI_Comm parent, std::mt19937& random, int generations) {
    const std::vector<Choice> choices = draw(parent, random);
    const auto seed = static_cast<unsigned>(random());
    const int rank = rank_in(parent);
    const std::vector<int> expected = model(choices, rank);
    const Choice own = choices[static_cast<std::size_t>(rank)];
    MPI_Comm made = MPI_COMM_SELF;
    EXPECT(MPI_Comm_split(parent, own.colour, own.key, &made) == MPI_SUCCESS);
    examine(made, parent, expected);
    if (made != MPI_COMM_NULL) {
        if (generations > 0) {
            std::mt19937 of_colour(seed + static_cast<unsigned>(own.colour));
            split_and_create(made, of_colour, generations - 1);
        }
        MPI_Comm_free(&made);
    }
    // The same processes by their groups; who is in none gives the empty one.
    MPI_Group all, group;
    MPI_Comm_group(parent, &all);
    MPI_Group_incl(all, static_cast<int>(expected.size()), expected.data(), &group);
    EXPECT(MPI_Comm_create(parent, group, &made) == MPI_SUCCESS);
    examine(made, parent, expected);
    if (made != MPI_COMM_NULL) {
        MPI_Comm_free(&made);
    }
    if (!expected.empty()) {
        EXPECT(MPI_Comm_create_group(parent, group, 3, &made) == MPI_SUCCESS);
        examine(made, parent, expected);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&all);
}

// One rank's mistake: the others go on.
void mistakes() {
    MPI_Comm made = MPI_COMM_SELF;
    const bool wrong = world_rank == world_size - 1;
    const int code = MPI_Comm_split(MPI_COMM_WORLD, wrong ? -5 : 1, 0, &made);
    EXPECT(class_of(code) == (wrong ? MPI_ERR_ARG : MPI_SUCCESS));
    EXPECT(wrong ? made == MPI_COMM_NULL : size_of(made) == world_size - 1);
    if (made != MPI_COMM_NULL) {
        MPI_Comm_free(&made);
    }
    if (world_size > 1) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? 0 : 1, 0, &half);
        MPI_Group world, own;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Comm_group(half, &own);
        // Of another's processes.
        const bool strange = world_rank == 1;
        const int result = MPI_Comm_create(half, strange ? world : own, &made);
        EXPECT(class_of(result) == (strange ? MPI_ERR_GROUP : MPI_SUCCESS));
        EXPECT((made == MPI_COMM_NULL) == strange);
        if (made != MPI_COMM_NULL) {
            // (Without the one that was wrong, if it was one of these.)
            MPI_Comm_free(&made);
        }
        MPI_Group_free(&world);
        MPI_Group_free(&own);
        MPI_Comm_free(&half);
    }
}

} // namespace

int main(int argc, char** argv) {
    start(&argc, &argv);
    std::mt19937 random(20);
    for (int round = 0; round < 30; ++round) {
        split_and_create(MPI_COMM_WORLD, random, 3);
    }
    mistakes();
    // More communicators than collective slots, all in use.
    std::vector<MPI_Comm> many(300);
    for (MPI_Comm& comm : many) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        EXPECT(sum == world_size);
    }
    for (const MPI_Comm comm : {many.front(), many.back()}) {
        for (int round = 0; round < 5; ++round) {
            split_and_create(comm, random, 2);
        }
    }
    for (MPI_Comm& comm : many) {
        MPI_Barrier(comm);
        MPI_Comm_free(&comm);
    }
    split_and_create(MPI_COMM_WORLD, random, 3);
    return finish();
}
