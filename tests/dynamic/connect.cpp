// Connections by ports: between ranks of one job, within a rank, by published names, by a socket.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <mpi.h>

#include "../environment/expect.hpp"

namespace {

int rank;
int size;

int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

// Who accepts and who connects, half each.
bool accepts() {
    return rank < (size + 1) / 2;
}

void talk(MPI_Comm inter, int remote) {
    int remote_size = 0;
    MPI_Comm_remote_size(inter, &remote_size);
    EXPECT(remote_size == remote);
    const int own = rank;
    int sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, inter);
    int expected = 0;
    for (int other = 0; other < size; ++other) {
        expected += (other < (size + 1) / 2) != accepts() ? other : 0;
    }
    EXPECT(sum == expected);
}

void halves() {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, accepts() ? 0 : 1, rank, &half);
    char port[MPI_MAX_PORT_NAME] = "";
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int turn = 0; turn < 3; ++turn) {
        MPI_Comm inter;
        if (accepts()) {
            MPI_Comm_accept(rank == 0 ? port : nullptr, MPI_INFO_NULL, 0, half, &inter);
        } else {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
        }
        talk(inter, accepts() ? size / 2 : (size + 1) / 2);
        MPI_Comm_disconnect(&inter);
    }
    if (rank == 0) {
        EXPECT(MPI_Close_port(port) == MPI_SUCCESS);
    }
    MPI_Comm_free(&half);
}

void mistakes() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm made = MPI_COMM_WORLD;
    for (const char* port :
         {"", "nonsense", "warren:1:2", "warren:0000000000000001:0:0000000000000001"}) {
        EXPECT(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, &made)) == MPI_ERR_PORT);
        EXPECT(made == MPI_COMM_NULL);
        EXPECT(class_of(MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &made)) == MPI_ERR_PORT);
        EXPECT(class_of(MPI_Close_port(port)) == MPI_ERR_PORT);
    }
    char port[MPI_MAX_PORT_NAME];
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "0.05");
    EXPECT(class_of(MPI_Comm_accept(port, info, 0, comm, &made)) == MPI_ERR_PORT);
    EXPECT(class_of(MPI_Comm_connect(port, info, 0, comm, &made)) == MPI_ERR_PORT);
    MPI_Info_set(info, "timeout", "1e-30"); // less than a tick of the clock is not for ever
    EXPECT(class_of(MPI_Comm_accept(port, info, 0, comm, &made)) == MPI_ERR_PORT);
    MPI_Info_set(info, "timeout", "soon");
    EXPECT(class_of(MPI_Comm_accept(port, info, 0, comm, &made)) == MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    EXPECT(MPI_Close_port(port) == MPI_SUCCESS);
    EXPECT(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, &made)) == MPI_ERR_PORT);
    MPI_Comm_free(&comm);
}

void names() {
    const std::string service = "dynamic.connect." + std::to_string(getpid());
    char found[MPI_MAX_PORT_NAME];
    char port[MPI_MAX_PORT_NAME];
    MPI_Open_port(MPI_INFO_NULL, port);
    EXPECT(class_of(MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, found)) == MPI_ERR_NAME);
    EXPECT(class_of(MPI_Unpublish_name(service.c_str(), MPI_INFO_NULL, port)) == MPI_ERR_SERVICE);
    // (The ranks of a host process have one pid: their names differ by rank.)
    const std::string own = service + "." + std::to_string(rank) + std::string(200, 'x');
    EXPECT(MPI_Publish_name(own.c_str(), MPI_INFO_NULL, port) == MPI_SUCCESS);
    EXPECT(class_of(MPI_Publish_name(own.c_str(), MPI_INFO_NULL, port)) == MPI_ERR_SERVICE);
    EXPECT(MPI_Lookup_name(own.c_str(), MPI_INFO_NULL, found) == MPI_SUCCESS);
    EXPECT(std::strcmp(found, port) == 0);
    EXPECT(MPI_Unpublish_name(own.c_str(), MPI_INFO_NULL, port) == MPI_SUCCESS);
    EXPECT(class_of(MPI_Lookup_name(own.c_str(), MPI_INFO_NULL, found)) == MPI_ERR_NAME);
    MPI_Close_port(port);
}

// The address of a socket of the abstract kind.
socklen_t fill(const std::string& name, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

// A publisher that does not answer: the rank's other threads go on.
void slow_name() {
    const std::string service =
        "dynamic.slow." + std::to_string(getpid()) + "." + std::to_string(rank);
    sockaddr_un address;
    const socklen_t length =
        fill("warren.name." + std::to_string(geteuid()) + "." + service, address);
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    EXPECT(bind(listener, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    EXPECT(listen(listener, 1) == 0);
    int found = MPI_SUCCESS;
    std::thread asks([&] {
        char port[MPI_MAX_PORT_NAME];
        found = class_of(MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, port));
    });
    usleep(50'000); // the thread waits for an answer by now
    const double begin = MPI_Wtime();
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    EXPECT(MPI_Wtime() - begin < 3); // it waits five seconds
    close(listener);
    asks.join();
    EXPECT(found == MPI_ERR_NAME);
}

// The port of a process that takes no connections, and whose queue of them is full.
void busy_port() {
    char name[48];
    const auto world = static_cast<unsigned>(getpid());
    std::snprintf(name, sizeof name, "warren.%016x.%d", world, rank);
    sockaddr_un address;
    const socklen_t length = fill(name, address);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    const int caller = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(bind(listener, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    EXPECT(listen(listener, 0) == 0);
    EXPECT(connect(caller, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    std::snprintf(name, sizeof name, "warren:%016x:%d:%016x", world, rank, 1U);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "0.05");
    MPI_Comm made;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const double begin = MPI_Wtime();
    EXPECT(class_of(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &made)) == MPI_ERR_PORT);
    EXPECT(MPI_Wtime() - begin < 5);
    MPI_Info_free(&info);
    close(caller);
    close(listener);
}

// A socket of which the ranks 0 and 1 have the two ends.
int join_by_socket(const std::string& name) {
    sockaddr_un address;
    const socklen_t length = fill(name, address);
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    if (rank == 0) {
        EXPECT(bind(made, reinterpret_cast<const sockaddr*>(&address), length) == 0);
        EXPECT(listen(made, 1) == 0);
        MPI_Send(nullptr, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
        const int taken = accept(made, nullptr, nullptr);
        close(made);
        made = taken;
    } else {
        MPI_Recv(nullptr, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(connect(made, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    }
    return made;
}

void join() {
    int pid = static_cast<int>(getpid());
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank > 1) {
        return;
    }
    const int socket = join_by_socket("dynamic.join." + std::to_string(pid));
    // Rank 1 comes when its message has been taken, which rank 0 does in the call.
    int taken = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Irecv(&taken, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
    } else {
        MPI_Ssend(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Comm inter;
    EXPECT(MPI_Comm_join(socket, &inter) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(taken == 1 || rank == 1);
    int other = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &other, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    EXPECT(other == 1 - rank);
    MPI_Comm_disconnect(&inter);
    // The socket is as before.
    char letter = rank == 0 ? 'x' : '-';
    if (rank == 0) {
        EXPECT(write(socket, &letter, 1) == 1);
    } else {
        EXPECT(read(socket, &letter, 1) == 1 && letter == 'x');
    }
    close(socket);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int ends[2];
    EXPECT(pipe(ends) == 0);
    // Nothing of these could carry words in both directions.
    for (const int descriptor : {-1, ends[0], ends[1]}) {
        EXPECT(class_of(MPI_Comm_join(descriptor, &inter)) == MPI_ERR_ARG);
        EXPECT(inter == MPI_COMM_NULL);
    }
    close(ends[0]);
    close(ends[1]);
}

} // namespace

int main(int argc, char** argv) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mistakes();
    busy_port();
    names();
    slow_name();
    MPI_Barrier(MPI_COMM_WORLD);
    if (size > 1) {
        halves();
        join();
    }
    MPI_Finalize();
    return failures;
}
