// Steps that make communicators and free them. The model says who becomes a member where; each new
// communicator's group is compared with it.
#include "creation.hpp"
#include "groups.hpp"

#include <algorithm>

namespace programs {

std::string Communicator::describe() const {
    std::string list = text + " {";
    for (const Ranks& group : groups) {
        for (std::size_t i = 0; i < group.size(); ++i) {
            list += (i == 0 ? "" : " ") + std::to_string(group[i]);
            if (i == 15 && group.size() > 17) {
                list += " …";
                break;
            }
        }
        list += inter && &group == &groups[0] ? " | " : "";
    }
    return list + "}";
}

int place_of(const Ranks& ranks, int rank) {
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

View::View(const Communicator& communicator, int rank)
    : of(communicator), comm(communicator.handle) {
    me = place_of(communicator.groups[0], rank);
    if (me < 0 && communicator.inter) {
        side = 1;
        me = place_of(communicator.groups[1], rank);
    }
}

CommPtr model(Program& program, const std::string& text) {
    auto made = std::make_shared<Communicator>();
    made->exists = program.executes();
    made->text = text;
    return made;
}

void adopt(Program& program, const CommPtr& made, MPI_Comm handle) {
    made->handle = handle;
    const View view(*made, program.rank());
    if ((view.me >= 0) != (handle != MPI_COMM_NULL)) {
        fail("%s: expected %s", made->describe().c_str(),
             view.me >= 0 ? "a communicator, got MPI_COMM_NULL" : "MPI_COMM_NULL");
    }
    if (handle == MPI_COMM_NULL) {
        return;
    }
    int rank = -1, size = -1, remote_size = -1, inter = -1;
    MUST(MPI_Comm_rank(handle, &rank));
    MUST(MPI_Comm_size(handle, &size));
    MUST(MPI_Comm_test_inter(handle, &inter));
    if (rank != view.me || size != view.size() || inter != (made->inter ? 1 : 0)) {
        fail("%s: expected rank %d of %d, got %d of %d", made->describe().c_str(), view.me,
             view.size(), rank, size);
    }
    MPI_Group group;
    MUST(MPI_Comm_group(handle, &group));
    compare_group(program, group, view.mine(), made->describe());
    MUST(MPI_Group_free(&group));
    if (made->inter) {
        MUST(MPI_Comm_remote_size(handle, &remote_size));
        if (remote_size != view.remote_size()) {
            fail("%s: expected %d remote ranks, got %d", made->describe().c_str(),
                 view.remote_size(), remote_size);
        }
        MUST(MPI_Comm_remote_group(handle, &group));
        compare_group(program, group, view.others(), made->describe());
        MUST(MPI_Group_free(&group));
    }
}

void add(Program& program, const CommPtr& made) {
    if (!made->groups[0].empty() && (!made->inter || !made->groups[1].empty())) {
        made->exists = made->exists && program.operand_exists();
        program.live.push_back(made);
    }
}

bool mine(Program& program, const Communicator& parent) {
    return program.executes() && parent.handle != MPI_COMM_NULL;
}

void learn(Program& program, const CommPtr& made, MPI_Comm handle, const Ranks& allowed) {
    int rank = -1;
    if (handle != MPI_COMM_NULL) {
        MUST(MPI_Comm_rank(handle, &rank));
    }
    Ranks all(static_cast<std::size_t>(program.size()));
    MUST(MPI_Allgather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, program.base().handle));
    if (*std::max_element(all.begin(), all.end()) < 0) {
        return; // its parent was left out
    }
    const std::size_t size = made->groups[0].size();
    made->groups[0].assign(size, -1);
    for (int member = 0; member < program.size(); ++member) {
        const int place = all[static_cast<std::size_t>(member)];
        if (place >= static_cast<int>(size) || (place >= 0 && place_of(allowed, member) < 0)) {
            fail("%s: rank %d of the base became rank %d of %zu", made->text.c_str(), member, place,
                 size);
        }
        if (place >= 0) {
            made->groups[0][static_cast<std::size_t>(place)] = member;
        }
    }
    if (place_of(made->groups[0], -1) >= 0) {
        fail("%s: has no rank %d", made->text.c_str(), place_of(made->groups[0], -1));
    }
}

namespace {

constexpr int most_communicators = 14;

// --- Copies

void copy_model(Communicator& made, const Communicator& parent) {
    const std::string text = made.text;
    const bool exists = made.exists && parent.exists;
    made = parent;
    made.handle = MPI_COMM_NULL;
    made.text = text;
    made.exists = exists;
    made.busy_until = 0;
    made.attribute += made.attribute != 0 ? 1 : 0; // the copy function of the key
}

void duplicate(Program& program, Draw& draw) {
    const CommPtr parent = program.any_communicator(draw);
    const int how = draw.below(4);
    static const char* const names[] = {"dup", "dup_with_info", "idup", "idup_with_info"};
    const CommPtr made = model(program, names[how]);
    copy_model(*made, *parent);
    program.at(made->text, parent.get());
    if (how < 2) {
        if (mine(program, *parent)) {
            MPI_Comm handle = MPI_COMM_NULL;
            if (how == 0) {
                MUST(MPI_Comm_dup(parent->handle, &handle));
            } else {
                MPI_Info info;
                MUST(MPI_Info_create(&info));
                MUST(MPI_Info_set(info, "mpi_assert_exact_length", "false"));
                MUST(MPI_Comm_dup_with_info(parent->handle, info, &handle));
                MUST(MPI_Info_free(&info));
            }
            adopt(program, made, handle);
        }
        add(program, made);
        return;
    }
    ActivityPtr request;
    if (mine(program, *parent)) {
        request = program.begin(made->text, nullptr);
        request->kept.push_back(made);
        if (how == 2) {
            MUST(MPI_Comm_idup(parent->handle, &made->handle, &request->request));
        } else {
            MUST(MPI_Comm_idup_with_info(parent->handle, MPI_INFO_NULL, &made->handle,
                                         &request->request));
        }
        program.pend(request);
    }
    program.arriving.push_back({program.step() + draw.between(1, 12), made, request});
}

// --- Splits

// The members of a side by colour, each sorted by key and old rank. Colours < 0: no member.
std::vector<Ranks> sorted_by_key(const Ranks& group, const std::vector<int>& colours,
                                 const std::vector<int>& keys, int colour_count) {
    std::vector<Ranks> parts(static_cast<std::size_t>(colour_count));
    std::vector<int> order(group.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    for (int place : order) {
        const auto i = static_cast<std::size_t>(place);
        if (colours[i] >= 0) {
            parts[static_cast<std::size_t>(colours[i])].push_back(group[i]);
        }
    }
    return parts;
}

// The node of each rank of the base, numbered from 0. Collective: of all ranks.
std::vector<int> nodes_of_ranks(Program& program) {
    const MPI_Comm base = program.base().handle;
    MPI_Comm node;
    MUST(MPI_Comm_split_type(base, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    int first = program.rank();
    MUST(MPI_Bcast(&first, 1, MPI_INT, 0, node));
    MUST(MPI_Comm_free(&node));
    Ranks firsts(static_cast<std::size_t>(program.size()));
    MUST(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, base));
    Ranks known;
    std::vector<int> nodes;
    for (const int its : firsts) {
        const auto found = std::find(known.begin(), known.end(), its);
        nodes.push_back(static_cast<int>(found - known.begin()));
        if (found == known.end()) {
            known.push_back(its);
        }
    }
    return nodes;
}

void split(Program& program, Draw& draw) {
    const CommPtr parent = program.any_communicator(draw);
    int colour_count = draw.between(1, 3);
    const int kind_of_keys = draw.below(4), missing = draw.one_in(2) ? draw.between(2, 5) : 0;
    const bool regular = draw.one_in(3), by_type = !parent->inter && draw.one_in(5);
    static const int factors[] = {1, 7, 100000, -3};
    std::vector<int> colours[2], keys[2];
    std::vector<Ranks> parts[2];
    const std::vector<int> nodes = by_type ? nodes_of_ranks(program) : std::vector<int>{0};
    colour_count = std::max(colour_count, *std::max_element(nodes.begin(), nodes.end()) + 1);
    for (int side = 0; side < 2; ++side) {
        const int size = static_cast<int>(parent->groups[side].size());
        for (int i = 0; i < size; ++i) {
            int colour = regular ? i % colour_count : draw.below(colour_count);
            if (missing > 0 && draw.one_in(missing)) {
                colour = -1;
            } else if (by_type) {
                colour = nodes[static_cast<std::size_t>(
                    parent->groups[side][static_cast<std::size_t>(i)])];
            }
            colours[side].push_back(colour);
            keys[side].push_back(kind_of_keys == 0   ? 0
                                 : kind_of_keys == 1 ? i
                                 : kind_of_keys == 2 ? -i
                                                     : draw.between(-3, 3) * 1000000);
        }
        parts[side] = sorted_by_key(parent->groups[side], colours[side], keys[side], colour_count);
    }
    const std::string name = by_type ? "split_type" : "split";
    program.at(name, parent.get());
    const View view(*parent, program.rank());
    MPI_Comm handle = MPI_COMM_NULL;
    int my_colour = -1;
    const bool member = mine(program, *parent);
    if (member) {
        const auto me = static_cast<std::size_t>(view.me);
        my_colour = colours[view.side][me];
        if (by_type) {
            MUST(MPI_Comm_split_type(parent->handle,
                                     my_colour < 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED,
                                     keys[view.side][me], MPI_INFO_NULL, &handle));
        } else {
            const int factor = factors[draw.below(3)];
            MUST(MPI_Comm_split(parent->handle, my_colour < 0 ? MPI_UNDEFINED : my_colour * factor,
                                keys[view.side][me], &handle));
        }
    }
    for (int colour = 0; colour < colour_count; ++colour) {
        const CommPtr made = model(program, name);
        const auto c = static_cast<std::size_t>(colour);
        made->inter = parent->inter;
        made->groups[0] = parts[0][c];
        made->groups[1] = parts[1][c];
        if (member) {
            const bool whole = !made->inter || (!parts[0][c].empty() && !parts[1][c].empty());
            if (my_colour == colour && whole) {
                adopt(program, made, handle);
            } else if (my_colour == colour && handle != MPI_COMM_NULL) {
                fail("split: a communicator with no remote group, expected MPI_COMM_NULL");
            }
        }
        add(program, made);
    }
    if (member && my_colour < 0 && handle != MPI_COMM_NULL) {
        fail("split: expected MPI_COMM_NULL for MPI_UNDEFINED");
    }
}

// Several disjoint groups at once; every rank names its own.
void create(Program& program, Draw& draw) {
    const CommPtr parent = program.any_communicator(draw);
    const bool by_members = !parent->inter && draw.one_in(2);
    const int group_count = parent->inter ? 1 : draw.between(1, 3);
    const bool in_order = draw.one_in(3);
    std::vector<Ranks> parts[2];
    for (int side = 0; side < 2; ++side) {
        parts[side].resize(static_cast<std::size_t>(group_count));
        const int size = static_cast<int>(parent->groups[side].size());
        std::vector<int> order = draw.permutation(size);
        if (in_order) {
            std::sort(order.begin(), order.end());
        }
        for (int place : order) {
            const int part = draw.below(group_count + 1) - (draw.one_in(2) ? 1 : 0);
            if (part >= 0 && part < group_count) {
                parts[side][static_cast<std::size_t>(part)].push_back(
                    parent->groups[side][static_cast<std::size_t>(place)]);
            }
        }
    }
    const std::string name = by_members ? "create_group" : "create";
    const int tag = draw.below(30000);
    program.at(name, parent.get());
    const View view(*parent, program.rank());
    const bool member = mine(program, *parent);
    MPI_Comm handle = MPI_COMM_NULL;
    int my_part = -1;
    if (member) {
        for (int part = 0; part < group_count; ++part) {
            if (place_of(parts[view.side][static_cast<std::size_t>(part)], program.rank()) >= 0) {
                my_part = part;
            }
        }
        MPI_Group whole, group = MPI_GROUP_EMPTY;
        MUST(MPI_Comm_group(parent->handle, &whole));
        if (my_part >= 0 || parent->inter) {
            const auto part = static_cast<std::size_t>(std::max(my_part, 0));
            group = make_group(program, whole, view.mine(), parts[view.side][part]);
        }
        if (by_members) {
            if (my_part >= 0) {
                MUST(MPI_Comm_create_group(parent->handle, group, tag, &handle));
            }
        } else {
            MUST(MPI_Comm_create(parent->handle, group, &handle));
        }
        if (group != MPI_GROUP_EMPTY) {
            MUST(MPI_Group_free(&group));
        }
        MUST(MPI_Group_free(&whole));
    }
    for (int part = 0; part < group_count; ++part) {
        const auto p = static_cast<std::size_t>(part);
        const CommPtr made = model(program, name);
        made->inter = parent->inter;
        made->groups[0] = parts[0][p];
        made->groups[1] = parts[1][p];
        const bool whole = !made->inter || (!parts[0][p].empty() && !parts[1][p].empty());
        if (member && my_part == part && whole) {
            adopt(program, made, handle);
        } else if (member && my_part == part && handle != MPI_COMM_NULL) {
            fail("create: a communicator with no remote group, expected MPI_COMM_NULL");
        }
        add(program, made);
    }
    if (member && my_part < 0 && handle != MPI_COMM_NULL) {
        fail("create: expected MPI_COMM_NULL for who isn't in the group");
    }
}

// With no parent at all.
void create_from_group(Program& program, Draw& draw) {
    if (program.without("sessions")) {
        return;
    }
    const CommPtr made = model(program, "create_from_group");
    for (int rank : draw.permutation(program.size())) {
        if (draw.one_in(2)) {
            made->groups[0].push_back(rank);
        }
    }
    program.at(made->text);
    if (program.executes() && place_of(made->groups[0], program.rank()) >= 0) {
        MPI_Group world, group;
        MUST(MPI_Group_from_session_pset(program.session, "mpi://WORLD", &world));
        MUST(MPI_Group_incl(world, static_cast<int>(made->groups[0].size()), made->groups[0].data(),
                            &group));
        const std::string tag = "random programs, seed " + std::to_string(program.seed()) +
                                ", step " + std::to_string(program.step());
        MPI_Comm handle = MPI_COMM_NULL;
        MPI_Errhandler handler;
        MUST(MPI_Comm_get_errhandler(program.base().handle, &handler));
        MUST(MPI_Comm_create_from_group(group, tag.c_str(), MPI_INFO_NULL, handler, &handle));
        MUST(MPI_Errhandler_free(&handler));
        MUST(MPI_Group_free(&group));
        MUST(MPI_Group_free(&world));
        adopt(program, made, handle);
    }
    add(program, made);
}

// --- Intercommunicators

// Of two communicators that have no member in common; their leaders meet in the base.
bool connect_two(Program& program, Draw& draw) {
    const CommPtr first = program.any_intracommunicator(draw);
    for (const CommPtr& second : program.live) {
        const Ranks& others = second->groups[0];
        const bool apart = std::none_of(others.begin(), others.end(), [&](int rank) {
            return place_of(first->groups[0], rank) >= 0;
        });
        if (second->inter || !apart || !first->exists || !second->exists) {
            continue;
        }
        const CommPtr made = model(program, "intercomm_create of two");
        made->inter = true;
        made->groups[0] = first->groups[0];
        made->groups[1] = second->groups[0];
        const int leaders[2] = {draw.below(static_cast<long>(made->groups[0].size())),
                                draw.below(static_cast<long>(made->groups[1].size()))};
        const int tag = program.next_tag();
        program.at(made->text, first.get());
        const View view(*made, program.rank());
        const CommPtr& local = view.side == 0 ? first : second;
        if (mine(program, *local)) {
            MPI_Comm handle = MPI_COMM_NULL;
            const auto leader = static_cast<std::size_t>(leaders[1 - view.side]);
            MUST(MPI_Intercomm_create(local->handle, leaders[view.side], program.base().handle,
                                      view.others()[leader], tag, &handle));
            adopt(program, made, handle);
        }
        add(program, made);
        return true;
    }
    return false;
}

void connect(Program& program, Draw& draw) {
    if (draw.one_in(2) && connect_two(program, draw)) {
        return;
    }
    const CommPtr made = model(program, "intercomm_create");
    made->inter = true;
    const CommPtr parent = program.any_intracommunicator(draw);
    const int size = static_cast<int>(parent->groups[0].size());
    if (size < 2) {
        return;
    }
    std::vector<int> colours, keys;
    for (int i = 0; i < size; ++i) {
        colours.push_back(i == 0 ? 0 : i == 1 ? 1 : draw.between(-1, 1));
        keys.push_back(draw.between(-2, 2));
    }
    draw.shuffle(colours);
    const std::vector<Ranks> parts = sorted_by_key(parent->groups[0], colours, keys, 2);
    made->groups[0] = parts[0];
    made->groups[1] = parts[1];
    const int leaders[2] = {draw.below(static_cast<long>(parts[0].size())),
                            draw.below(static_cast<long>(parts[1].size()))};
    const int tag = program.next_tag();
    program.at(made->text, parent.get());
    if (mine(program, *parent)) {
        const View view(*parent, program.rank());
        const auto me = static_cast<std::size_t>(view.me);
        MPI_Comm local, handle = MPI_COMM_NULL;
        MUST(MPI_Comm_split(parent->handle, colours[me] < 0 ? MPI_UNDEFINED : colours[me], keys[me],
                            &local));
        if (local != MPI_COMM_NULL) {
            const int other = 1 - colours[me];
            const auto leader = static_cast<std::size_t>(leaders[other]);
            const Ranks& remote = parts[static_cast<std::size_t>(other)];
            MUST(MPI_Intercomm_create(local, leaders[colours[me]], parent->handle,
                                      place_of(parent->groups[0], remote[leader]), tag, &handle));
            MUST(MPI_Comm_free(&local));
        }
        adopt(program, made, handle);
    }
    add(program, made);
}

void merge(Program& program, Draw& draw) {
    std::vector<CommPtr> inters;
    for (const CommPtr& comm : program.live) {
        if (comm->inter) {
            inters.push_back(comm);
        }
    }
    if (inters.empty()) {
        connect(program, draw);
        return;
    }
    const CommPtr parent = draw.of(inters);
    const CommPtr made = model(program, "intercomm_merge");
    const int highs[2] = {draw.below(2), draw.below(2)};
    const int first = highs[0] <= highs[1] ? 0 : 1;
    made->groups[0] = parent->groups[first];
    made->groups[0].insert(made->groups[0].end(), parent->groups[1 - first].begin(),
                           parent->groups[1 - first].end());
    program.at(made->text, parent.get());
    MPI_Comm handle = MPI_COMM_NULL;
    if (mine(program, *parent)) {
        const View view(*parent, program.rank());
        MUST(MPI_Intercomm_merge(parent->handle, highs[view.side], &handle));
    }
    if (highs[0] == highs[1] && program.executes()) { // any group may be the first
        const Ranks whole = made->groups[0];
        learn(program, made, handle, whole);
    }
    if (mine(program, *parent)) {
        adopt(program, made, handle);
    }
    add(program, made);
}

} // namespace

void arrived(Program& program, const CommPtr& made) {
    if (made->handle != MPI_COMM_NULL) {
        adopt(program, made, made->handle);
    }
    add(program, made);
}

void make_communicator(Program& program, Draw& draw) {
    if (static_cast<int>(program.live.size()) >= most_communicators) {
        free_communicator(program, draw);
        return;
    }
    using Make = void (*)(Program&, Draw&);
    static const Make makes[] = {
        duplicate,  split,      create,  create_from_group, make_grid, make_grid, make_subgrid,
        make_graph, make_edges, connect, connect,           merge,     split,     create};
    makes[draw.below(static_cast<long>(std::size(makes)))](program, draw);
}

void free_communicator(Program& program, Draw& draw) {
    if (program.live.size() < 3) {
        return;
    }
    const auto place =
        static_cast<std::size_t>(draw.between(1, static_cast<int>(program.live.size()) - 1));
    const CommPtr comm = program.live[place];
    const bool disconnect = draw.one_in(4);
    if (comm->busy_until >= program.step()) {
        return;
    }
    program.at(disconnect ? "disconnect" : "free", comm.get());
    if (disconnect && comm->handle != MPI_COMM_NULL) {
        program.finish_all(comm);
    }
    for (std::size_t i = program.persistents.size(); i-- > 0;) {
        if (program.persistents[i].on == comm) {
            program.drop_persistent(i);
        }
    }
    program.live.erase(program.live.begin() + static_cast<std::ptrdiff_t>(place));
    if (comm->handle != MPI_COMM_NULL) {
        if (disconnect) {
            MUST(MPI_Comm_disconnect(&comm->handle));
        } else {
            MUST(MPI_Comm_free(&comm->handle));
        }
        if (comm->handle != MPI_COMM_NULL) {
            fail("the handle of a freed communicator is not MPI_COMM_NULL");
        }
    }
}

} // namespace programs
