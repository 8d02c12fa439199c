#include "groups.hpp"

#include <algorithm>
#include <array>

namespace programs {

namespace {

std::string listed(const Ranks& ranks) {
    std::string text;
    for (int rank : ranks) {
        text += " " + std::to_string(rank);
    }
    return text;
}

// Where the wanted ranks are in the whole.
Ranks places(const Ranks& whole, const Ranks& wanted) {
    Ranks list;
    for (int rank : wanted) {
        list.push_back(place_of(whole, rank));
    }
    return list;
}

// First, last, stride of runs that list these ranks.
std::vector<std::array<int, 3>> ranges(Draw& draw, const Ranks& ranks) {
    std::vector<std::array<int, 3>> list;
    std::size_t i = 0;
    while (i < ranks.size()) {
        const int first = ranks[i];
        std::size_t end = i + 1;
        int stride = draw.between(1, 3);
        if (end < ranks.size() && !draw.one_in(4)) {
            stride = ranks[end] - first;
            while (end < ranks.size() && ranks[end] - ranks[end - 1] == stride) {
                ++end;
            }
        }
        list.push_back({first, ranks[end - 1], stride});
        if (end - i == 1 && draw.one_in(2)) {
            list.back()[2] = -stride;
        }
        i = end;
    }
    return list;
}

struct Known {
    MPI_Group group;
    Ranks ranks;
};

Ranks without(const Ranks& from, const Ranks& others) {
    Ranks list;
    for (int rank : from) {
        if (place_of(others, rank) < 0) {
            list.push_back(rank);
        }
    }
    return list;
}

Known combine(Program& program, const Known& a, const Known& b) {
    Draw& draw = program.own();
    Known made{MPI_GROUP_NULL, {}};
    switch (draw.below(8)) {
    case 0:
        MUST(MPI_Group_union(a.group, b.group, &made.group));
        made.ranks = without(b.ranks, a.ranks);
        made.ranks.insert(made.ranks.begin(), a.ranks.begin(), a.ranks.end());
        break;
    case 1:
        MUST(MPI_Group_intersection(a.group, b.group, &made.group));
        made.ranks = without(a.ranks, without(a.ranks, b.ranks));
        break;
    case 2:
        MUST(MPI_Group_difference(a.group, b.group, &made.group));
        made.ranks = without(a.ranks, b.ranks);
        break;
    case 3: // reversed, or every other
    case 4: {
        if (a.ranks.empty()) {
            return {MPI_GROUP_EMPTY, {}};
        }
        const int last = static_cast<int>(a.ranks.size()) - 1, stride = draw.between(1, 3);
        const bool back = draw.one_in(2);
        int range[1][3] = {{back ? last : 0, back ? 0 : last, back ? -stride : stride}};
        Ranks chosen;
        for (int i = 0; i <= last; i += stride) {
            chosen.push_back(a.ranks[static_cast<std::size_t>(back ? last - i : i)]);
        }
        if (draw.one_in(2)) {
            MUST(MPI_Group_range_incl(a.group, 1, range, &made.group));
            made.ranks = chosen;
        } else {
            MUST(MPI_Group_range_excl(a.group, 1, range, &made.group));
            made.ranks = without(a.ranks, chosen);
        }
        break;
    }
    default: {
        Ranks chosen;
        for (int place : draw.permutation(static_cast<int>(a.ranks.size()))) {
            if (draw.one_in(2)) {
                chosen.push_back(a.ranks[static_cast<std::size_t>(place)]);
            }
        }
        if (draw.one_in(2)) {
            made.group = make_group(program, a.group, a.ranks, chosen);
            made.ranks = chosen;
        } else {
            const Ranks list = places(a.ranks, chosen);
            MUST(MPI_Group_excl(a.group, static_cast<int>(list.size()), list.data(), &made.group));
            made.ranks = without(a.ranks, chosen);
        }
    }
    }
    return made;
}

void compare(const Known& a, const Known& b) {
    int result = -1;
    MUST(MPI_Group_compare(a.group, b.group, &result));
    Ranks sorted_a = a.ranks, sorted_b = b.ranks;
    std::sort(sorted_a.begin(), sorted_a.end());
    std::sort(sorted_b.begin(), sorted_b.end());
    const int expected = a.ranks == b.ranks     ? MPI_IDENT
                         : sorted_a == sorted_b ? MPI_SIMILAR
                                                : MPI_UNEQUAL;
    if (result != expected) {
        fail("MPI_Group_compare of%s and%s: expected %d, got %d", listed(a.ranks).c_str(),
             listed(b.ranks).c_str(), expected, result);
    }
}

void translate(Draw& draw, const Known& a, const Known& b) {
    Ranks asked, expected;
    for (int n = draw.below(20); n > 0 && !a.ranks.empty(); --n) {
        if (draw.one_in(8)) {
            asked.push_back(MPI_PROC_NULL);
            expected.push_back(MPI_PROC_NULL);
            continue;
        }
        asked.push_back(draw.below(static_cast<long>(a.ranks.size())));
        const int place = place_of(b.ranks, a.ranks[static_cast<std::size_t>(asked.back())]);
        expected.push_back(place < 0 ? MPI_UNDEFINED : place);
    }
    Ranks got(asked.size() + 1, -77);
    MUST(MPI_Group_translate_ranks(a.group, static_cast<int>(asked.size()), asked.data(), b.group,
                                   got.data()));
    got.pop_back();
    if (got != expected) {
        fail("MPI_Group_translate_ranks of%s, from%s to%s: expected%s, got%s",
             listed(asked).c_str(), listed(a.ranks).c_str(), listed(b.ranks).c_str(),
             listed(expected).c_str(), listed(got).c_str());
    }
}

} // namespace

void compare_group(Program& program, MPI_Group group, const Ranks& expected,
                   const std::string& what) {
    int size = -1, rank = -1;
    MUST(MPI_Group_size(group, &size));
    MUST(MPI_Group_rank(group, &rank));
    Ranks all(static_cast<std::size_t>(std::max(size, 0))), base(all.size());
    std::iota(all.begin(), all.end(), 0);
    if (size > 0) {
        MUST(MPI_Group_translate_ranks(group, size, all.data(), program.base_group(), base.data()));
    }
    const int place = place_of(expected, program.rank());
    if (base != expected || rank != (place < 0 ? MPI_UNDEFINED : place)) {
        fail("%s: expected the group%s with rank %d, got%s with rank %d", what.c_str(),
             listed(expected).c_str(), place, listed(base).c_str(), rank);
    }
    if ((size == 0) != (group == MPI_GROUP_EMPTY)) {
        fail("%s: a group of %d is%s MPI_GROUP_EMPTY", what.c_str(), size, size == 0 ? " not" : "");
    }
}

MPI_Group make_group(Program& program, MPI_Group group, const Ranks& whole, const Ranks& wanted) {
    Draw& draw = program.own();
    MPI_Group made = MPI_GROUP_NULL;
    const Ranks list = places(whole, wanted);
    const int n = static_cast<int>(list.size());
    switch (draw.below(4)) {
    case 0: {
        auto runs = ranges(draw, list);
        MUST(MPI_Group_range_incl(group, static_cast<int>(runs.size()),
                                  reinterpret_cast<int(*)[3]>(runs.data()), &made));
        break;
    }
    case 1: { // two parts
        const int cut = draw.between(0, n);
        MPI_Group first, second;
        MUST(MPI_Group_incl(group, cut, list.data(), &first));
        MUST(MPI_Group_incl(group, n - cut, list.data() + cut, &second));
        MUST(MPI_Group_union(first, second, &made));
        for (MPI_Group* part : {&first, &second}) {
            if (*part != MPI_GROUP_EMPTY) {
                MUST(MPI_Group_free(part));
            }
        }
        break;
    }
    case 2: // from another group
        MUST(MPI_Group_incl(program.base_group(), n, wanted.data(), &made));
        break;
    default:
        MUST(MPI_Group_incl(group, n, list.data(), &made));
    }
    return made;
}

void calculate_with_groups(Program& program, Draw&) {
    program.at("calculations with groups");
    if (!program.executes()) {
        return;
    }
    Draw& draw = program.own();
    std::vector<Known> known = {{MPI_GROUP_EMPTY, {}}};
    for (const CommPtr& comm : program.live) {
        if (comm->handle != MPI_COMM_NULL && known.size() < 5) {
            const View view(*comm, program.rank());
            Known made{MPI_GROUP_NULL, view.mine()};
            if (comm->inter && draw.one_in(2)) {
                made.ranks = view.others();
                MUST(MPI_Comm_remote_group(comm->handle, &made.group));
            } else {
                MUST(MPI_Comm_group(comm->handle, &made.group));
            }
            known.push_back(made);
        }
    }
    for (int round = draw.between(1, 12); round > 0; --round) {
        const Known a = draw.of(known), b = draw.of(known);
        known.push_back(combine(program, a, b));
        compare_group(program, known.back().group, known.back().ranks, "a group");
        compare(draw.of(known), draw.of(known));
        translate(draw, draw.of(known), draw.of(known));
        if (known.size() > 8) {
            const auto place =
                static_cast<std::size_t>(draw.between(1, static_cast<int>(known.size()) - 1));
            if (known[place].group != MPI_GROUP_EMPTY) {
                MUST(MPI_Group_free(&known[place].group));
            }
            known.erase(known.begin() + static_cast<std::ptrdiff_t>(place));
        }
    }
    for (Known& one : known) {
        if (one.group != MPI_GROUP_EMPTY) {
            MUST(MPI_Group_free(&one.group));
        }
    }
}

} // namespace programs
