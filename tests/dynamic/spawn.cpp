// Worlds that ranks spawn: what they are told, messages between them, communicators of both, their
// end. The program is its own child: the first argument says which part the child plays.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <unistd.h>
#include <vector>

#include <mpi.h>

#include "../environment/expect.hpp"

namespace {

std::string program;

int rank_in(MPI_Comm comm) {
    int rank = -1;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int size_of(MPI_Comm comm) {
    int size = -1;
    MPI_Comm_size(comm, &size);
    return size;
}

int remote_size_of(MPI_Comm comm) {
    int size = -1;
    MPI_Comm_remote_size(comm, &size);
    return size;
}

int application() {
    int* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, static_cast<void*>(&value), &found);
    return found != 0 ? *value : -1;
}

int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

MPI_Comm spawn(const char* part, int processes, MPI_Comm comm, MPI_Info info = MPI_INFO_NULL) {
    char* arguments[] = {const_cast<char*>(part), nullptr};
    std::vector<int> codes(static_cast<std::size_t>(processes), -1);
    MPI_Comm children = MPI_COMM_NULL;
    MPI_Comm_spawn(program.c_str(), arguments, processes, info, 0, comm, &children, codes.data());
    for (const int code : codes) {
        EXPECT(code == MPI_SUCCESS);
    }
    EXPECT(remote_size_of(children) == processes);
    return children;
}

// --- Messages between the two groups: rank r of the smaller one has a partner.

constexpr int most_bytes = 300'000;

void exchange(MPI_Comm inter) {
    const int rank = rank_in(inter);
    const int partners = std::min(size_of(inter), remote_size_of(inter));
    for (const int bytes : {0, 1, 40, 41, 5'000, 70'000, most_bytes}) {
        if (rank >= partners) {
            break;
        }
        std::vector<char> out(static_cast<std::size_t>(bytes), static_cast<char>('a' + rank));
        std::vector<char> in(static_cast<std::size_t>(bytes) + 1, '-');
        MPI_Request requests[2];
        MPI_Irecv(in.data(), bytes + 1, MPI_CHAR, rank, 7, inter, &requests[0]);
        MPI_Issend(out.data(), bytes, MPI_CHAR, rank, 7, inter, &requests[1]);
        MPI_Status statuses[2];
        MPI_Waitall(2, requests, statuses);
        int count = -1;
        MPI_Get_count(&statuses[0], MPI_CHAR, &count);
        EXPECT(count == bytes && statuses[0].MPI_SOURCE == rank);
        in.pop_back();
        EXPECT(in == out);
    }
}

void collectives(MPI_Comm inter, bool parent) {
    std::vector<int> values(1000);
    if (parent && rank_in(inter) == 0) {
        std::iota(values.begin(), values.end(), 5);
    }
    const int root = !parent ? 0 : rank_in(inter) == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(values.data(), 1000, MPI_INT, root, inter);
    if (!parent) {
        EXPECT(values.front() == 5 && values.back() == 1004);
    }
    const int one = 1;
    int sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(sum == remote_size_of(inter));
    MPI_Barrier(inter);
}

// Both worlds write to one file, and read what the others have written.
void files(MPI_Comm all) {
    // Thread ranks, each of which may be the first of such worlds, have one pid.
    int numbers[] = {static_cast<int>(getpid()), rank_in(MPI_COMM_WORLD)};
    MPI_Bcast(numbers, 2, MPI_INT, 0, all);
    const std::string name =
        "file_of_worlds_" + std::to_string(numbers[0]) + "_" + std::to_string(numbers[1]);
    MPI_File file;
    EXPECT(MPI_File_open(all, name.c_str(),
                         MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                         &file) == MPI_SUCCESS);
    const int rank = rank_in(all);
    const int size = size_of(all);
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_INT, 0, static_cast<MPI_Aint>(sizeof(int)) * size, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, static_cast<MPI_Offset>(sizeof(int)) * rank, MPI_INT, tile, "native",
                      MPI_INFO_NULL);
    const std::vector<int> own(10000, rank + 1);
    const int count = static_cast<int>(own.size());
    EXPECT(MPI_File_write_all(file, own.data(), count, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    std::vector<int> all_numbers(own.size() * static_cast<std::size_t>(size));
    EXPECT(MPI_File_read_at_all(file, 0, all_numbers.data(), static_cast<int>(all_numbers.size()),
                                MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (std::size_t i = 0; i < all_numbers.size(); ++i) {
        EXPECT(all_numbers[i] == static_cast<int>(i) % size + 1);
    }
    EXPECT(MPI_File_write_ordered(file, own.data(), rank, MPI_INT, MPI_STATUS_IGNORE) ==
           MPI_SUCCESS);
    MPI_Type_free(&tile);
    MPI_File_close(&file);
}

void merged(MPI_Comm inter, bool parent) {
    MPI_Comm all;
    MPI_Intercomm_merge(inter, parent ? 0 : 1, &all);
    const int size = size_of(inter) + remote_size_of(inter);
    EXPECT(size_of(all) == size);
    EXPECT(rank_in(all) == rank_in(inter) + (parent ? 0 : remote_size_of(inter)));
    int sum = 0;
    const int own = rank_in(all);
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, all);
    EXPECT(sum == size * (size - 1) / 2);
    MPI_Comm reversed;
    MPI_Comm_split(all, 0, -own, &reversed);
    EXPECT(rank_in(reversed) == size - 1 - own);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    MPI_Allgather(&own, 1, MPI_INT, ranks.data(), 1, MPI_INT, reversed);
    EXPECT(ranks.front() == size - 1 && ranks.back() == 0);
    files(all);
    // Nobody's memory is reached by all.
    MPI_Win window;
    int* base = nullptr;
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    EXPECT(class_of(MPI_Win_allocate(4, 1, MPI_INFO_NULL, all, static_cast<void*>(&base),
                                     &window)) == MPI_ERR_UNSUPPORTED_OPERATION);
    // Worlds share no memory, and are sets of processes of their own.
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "mpi_pset_name", "mpi://WORLD");
    for (const int type : {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_RESOURCE_GUIDED}) {
        MPI_Comm part;
        MPI_Comm_split_type(all, type, 0, hints, &part);
        EXPECT(size_of(part) == size_of(inter));
        MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN);
        EXPECT(MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, part, static_cast<void*>(&base),
                                       &window) == MPI_SUCCESS);
        MPI_Win_free(&window);
        MPI_Comm_free(&part);
    }
    MPI_Info_set(hints, "mpi_pset_name", "mpi://SELF");
    MPI_Comm alone;
    MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, hints, &alone);
    EXPECT(size_of(alone) == 1);
    MPI_Comm_free(&alone);
    MPI_Info_free(&hints);
    MPI_Comm copy;
    MPI_Comm_dup(reversed, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_disconnect(&reversed);
    MPI_Comm_disconnect(&all);
}

void groups(MPI_Comm inter) {
    MPI_Group local;
    MPI_Group remote;
    MPI_Group both;
    MPI_Comm_group(inter, &local);
    MPI_Comm_remote_group(inter, &remote);
    MPI_Group_union(local, remote, &both);
    int size = 0;
    MPI_Group_size(both, &size);
    EXPECT(size == size_of(inter) + remote_size_of(inter));
    MPI_Group_intersection(local, remote, &both);
    EXPECT(both == MPI_GROUP_EMPTY);
    MPI_Group_free(&local);
    MPI_Group_free(&remote);
}

void talk(MPI_Comm inter, bool parent) {
    exchange(inter);
    collectives(inter, parent);
    groups(inter);
    merged(inter, parent);
    MPI_Comm copy;
    MPI_Comm_dup(inter, &copy);
    exchange(copy);
    MPI_Comm_disconnect(&copy);
}

// --- The parent's cases

void world_spawns() {
    MPI_Comm children = spawn("talk", 2, MPI_COMM_WORLD);
    talk(children, true);
    MPI_Comm_disconnect(&children);
    EXPECT(children == MPI_COMM_NULL);
}

// Each rank a world of its own, at once.
void each_spawns() {
    MPI_Comm children = spawn("talk", 1, MPI_COMM_SELF);
    talk(children, true);
    MPI_Comm_disconnect(&children);
}

void nested() {
    MPI_Comm children = spawn("nested", 1, MPI_COMM_WORLD);
    int depth = 0;
    if (rank_in(MPI_COMM_WORLD) == 0) {
        MPI_Recv(&depth, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
        EXPECT(depth == 2);
    }
    MPI_Comm_disconnect(&children);
}

void several_commands() {
    char own[1024];
    std::snprintf(own, sizeof own, "%s", program.c_str());
    char* commands[] = {own, own};
    char part[] = "report";
    char colon[] = ":";
    char empty[] = "";
    char spaces[] = "a b";
    char* first[] = {part, colon, empty, nullptr};
    char* second[] = {part, spaces, nullptr};
    char** arguments[] = {first, second};
    const int processes[] = {1, 2};
    MPI_Info infos[2];
    MPI_Info_create(&infos[0]);
    MPI_Info_create(&infos[1]);
    MPI_Info_set(infos[0], "wdir", "/");
    MPI_Info_set(infos[1], "env", "DYNAMIC_ONE=1\nDYNAMIC_TWO=a=b");
    MPI_Info_set(infos[1], "host", "localhost:2, 127.0.0.1");
    MPI_Comm children;
    MPI_Comm_spawn_multiple(2, commands, arguments, processes, infos, 0, MPI_COMM_WORLD, &children,
                            MPI_ERRCODES_IGNORE);
    MPI_Info_free(&infos[0]);
    MPI_Info_free(&infos[1]);
    EXPECT(remote_size_of(children) == 3);
    for (int child = 0; child < 3 && rank_in(MPI_COMM_WORLD) == 0; ++child) {
        char text[256] = {};
        MPI_Recv(text, 255, MPI_CHAR, child, 0, children, MPI_STATUS_IGNORE);
        const std::string seen = text;
        EXPECT(child == 0 ? seen == "app 0 of 3 in / [:][]"
                          : seen.starts_with("app 1 of 3 in ") && seen.ends_with(" [a b] 1 a=b"));
    }
    MPI_Comm_disconnect(&children);
}

void refused() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm children = MPI_COMM_WORLD;
    int codes[3] = {-1, -1, -1};
    int code = MPI_Comm_spawn("/nowhere/at/all", MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, comm,
                              &children, codes);
    EXPECT(class_of(code) == MPI_ERR_SPAWN && children == MPI_COMM_NULL);
    EXPECT(codes[0] == MPI_ERR_SPAWN && codes[2] == MPI_ERR_SPAWN); // at all ranks
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    EXPECT(std::strstr(text, "/nowhere/at/all") != nullptr); // the reason, at all ranks
    // A program that never comes to MPI.
    code = MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm, &children, codes);
    EXPECT(class_of(code) == MPI_ERR_SPAWN);
    code =
        MPI_Comm_spawn(program.c_str(), MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, comm, &children, codes);
    EXPECT(class_of(code) == MPI_ERR_SPAWN);
    MPI_Comm_free(&comm);
}

// Of a set of numbers that would do, the largest is started that is asked for at most. What only
// the root's arguments say, also how many codes there are, holds at all ranks.
void soft() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const bool first = rank_in(comm) == 0;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "soft", "0:9:2,7");
    MPI_Comm children;
    int codes[6] = {-1, -1, -1, -1, -1, -1};
    char part[] = "end";
    char* arguments[] = {part, nullptr};
    EXPECT(MPI_Comm_spawn(program.c_str(), arguments, first ? 3 : -9, info, 0, comm, &children,
                          codes) == MPI_SUCCESS);
    EXPECT(remote_size_of(children) == 2);
    EXPECT(codes[1] == MPI_SUCCESS && codes[2] == MPI_ERR_SPAWN && codes[3] == -1);
    MPI_Comm_disconnect(&children);

    char own[1024];
    std::snprintf(own, sizeof own, "%s", program.c_str());
    char* commands[] = {own, own};
    char** each[] = {arguments, arguments};
    const int processes[] = {2, 2};
    MPI_Info infos[] = {info, MPI_INFO_NULL};
    MPI_Info_set(info, "soft", "1");
    EXPECT(MPI_Comm_spawn_multiple(first ? 2 : 0, commands, each, processes, infos, 0, comm,
                                   &children, codes) == MPI_SUCCESS);
    EXPECT(remote_size_of(children) == 3);
    EXPECT(codes[0] == MPI_SUCCESS && codes[1] == MPI_ERR_SPAWN && codes[2] == MPI_SUCCESS &&
           codes[3] == MPI_SUCCESS && codes[4] == -1);
    MPI_Comm_disconnect(&children);

    for (const char* numbers : {"4", "0", "few"}) {
        MPI_Info_set(info, "soft", numbers);
        const int code = MPI_Comm_spawn(program.c_str(), arguments, 3, info, 0, comm, &children,
                                        MPI_ERRCODES_IGNORE);
        EXPECT(class_of(code) == (numbers[0] == 'f' ? MPI_ERR_INFO_VALUE : MPI_ERR_SPAWN));
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

// Commands that mpiexec could take for something of its own are names of programs like any other.
void odd_commands() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (const char* command : {"--version", "-n", "--", ":", "\1"}) {
        MPI_Comm children;
        const int code = MPI_Comm_spawn(command, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm,
                                        &children, MPI_ERRCODES_IGNORE);
        EXPECT(class_of(code) == MPI_ERR_SPAWN);
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code, text, &length);
        EXPECT(std::strstr(text, "is not in PATH") != nullptr);
    }
    MPI_Comm_free(&comm);
}

// Only this node can be asked for, whichever key does it.
void refused_hosts() {
    char file[] = "/tmp/dynamic_hosts_XXXXXX";
    if (rank_in(MPI_COMM_WORLD) == 0) {
        const int descriptor = mkstemp(file);
        EXPECT(dprintf(descriptor, "# hosts\n\nlocalhost slots=2\nnowhere.example 3\n") > 0);
        close(descriptor);
    }
    const char* const wanted[][2] = {{"host", "nowhere.example"},
                                     {"host", "localhost,nowhere.example:2"},
                                     {"hosts", "localhost nowhere.example"},
                                     {"hostfile", file},
                                     {"hostfile", "/nowhere/at/all"},
                                     {"hostfile", "/tmp"}};
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (const char* const* one : wanted) {
        MPI_Comm children;
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, one[0], one[1]);
        const int code = MPI_Comm_spawn(program.c_str(), MPI_ARGV_NULL, 1, info, 0, comm, &children,
                                        MPI_ERRCODES_IGNORE);
        EXPECT(class_of(code) == MPI_ERR_SPAWN);
        MPI_Info_free(&info);
    }
    MPI_Comm_free(&comm);
    unlink(file);
}

// The children's end is not that of their parents, once they are disconnected.
void ends_apart() {
    MPI_Comm children = spawn("end", 1, MPI_COMM_WORLD);
    MPI_Comm_disconnect(&children);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A communicator of processes that have met by way of others: the parents, of whom only the first
// has spawned, and its children.
void strangers() {
    const bool first = rank_in(MPI_COMM_WORLD) == 0;
    MPI_Comm bridge = MPI_COMM_WORLD;
    MPI_Comm children = MPI_COMM_NULL;
    if (first) {
        children = spawn("strangers", 2, MPI_COMM_SELF);
        MPI_Intercomm_merge(children, 0, &bridge);
    }
    MPI_Comm all;
    MPI_Intercomm_create(MPI_COMM_WORLD, 0, bridge, 1, 3, &all);
    EXPECT(remote_size_of(all) == 2);
    exchange(all);
    int sum = 0;
    const int one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    EXPECT(sum == 2);
    MPI_Comm_disconnect(&all);
    if (first) {
        MPI_Comm_disconnect(&bridge);
        MPI_Comm_disconnect(&children);
    }
}

// --- The child's parts

void child(const std::string& part, MPI_Comm parent, int count, char** arguments) {
    if (part == "talk") {
        talk(parent, false);
    } else if (part == "nested") {
        MPI_Comm grandchildren = spawn("leaf", 1, MPI_COMM_SELF);
        int depth = 0;
        MPI_Recv(&depth, 1, MPI_INT, 0, 0, grandchildren, MPI_STATUS_IGNORE);
        ++depth;
        MPI_Send(&depth, 1, MPI_INT, 0, 0, parent);
        MPI_Comm_disconnect(&grandchildren);
    } else if (part == "leaf") {
        const int depth = 1;
        MPI_Send(&depth, 1, MPI_INT, 0, 0, parent);
    } else if (part == "report") {
        char directory[128];
        std::string text = "app " + std::to_string(application()) + " of " +
                           std::to_string(size_of(MPI_COMM_WORLD)) + " in " +
                           (getcwd(directory, sizeof directory) != nullptr ? directory : "?") + " ";
        for (int argument = 2; argument < count; ++argument) {
            text += "[" + std::string(arguments[argument]) + "]";
        }
        for (const char* name : {"DYNAMIC_ONE", "DYNAMIC_TWO"}) {
            const char* value = std::getenv(name);
            text += value != nullptr ? " " + std::string(value) : "";
        }
        MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, 0, parent);
    } else if (part == "strangers") {
        MPI_Comm bridge;
        MPI_Intercomm_merge(parent, 1, &bridge);
        MPI_Comm all;
        MPI_Intercomm_create(MPI_COMM_WORLD, 0, bridge, 0, 3, &all);
        exchange(all);
        int sum = 0;
        const int one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        MPI_Comm_disconnect(&all);
        MPI_Comm_disconnect(&bridge);
    }
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&parent);
    EXPECT(parent == MPI_COMM_NULL);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    program = argv[0];
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(argc > 1 ? argv[1] : "", parent, argc, argv);
    } else {
        EXPECT(application() == 0);
        world_spawns();
        each_spawns();
        nested();
        several_commands();
        strangers();
        refused();
        refused_hosts();
        soft();
        odd_commands();
        ends_apart();
    }
    MPI_Finalize();
    return failures;
}
