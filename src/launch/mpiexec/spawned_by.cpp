#include "launch/mpiexec/spawned_by.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "mpi/job/spawn_request.hpp"

namespace warren::launch {

SpawnedBy::~SpawnedBy() {
    close_connection();
}

void SpawnedBy::close_connection() {
    if (connection_ >= 0) {
        close(std::exchange(connection_, -1));
    }
}

void SpawnedBy::read_environment() {
    const char* const text = std::getenv(node::spawn_variable);
    const char* const port = std::getenv(node::parent_variable);
    int number = -1;
    unsigned alone = 0;
    unsigned others = 0;
    const bool sound = text != nullptr && port != nullptr &&
                       std::sscanf(text, "%d %u %u", &number, &alone, &others) == 3 &&
                       fcntl(number, F_SETFD, FD_CLOEXEC) == 0;
    if (sound) {
        port_ = port;
        connection_ = number;
        others_ = others;
        ends_with_rank_ = alone != 0;
        fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK);
    }
    unsetenv(node::spawn_variable);
    unsetenv(node::parent_variable);
    if (ends_with_rank_) {
        // The rank's program must not find a child that it has not started.
        const pid_t child = fork();
        if (child != 0) {
            _exit(child < 0 ? 1 : 0);
        }
        setpgid(0, 0);
    }
}

bool SpawnedBy::tell(const std::string& failure) {
    if (connection_ < 0 || connected_ || told_) {
        return told_;
    }
    rank_has_ended(); // it may have said that the world has connected
    told_ = connection_ >= 0 && !connected_ &&
            send(connection_, failure.data(), failure.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
    return told_;
}

bool SpawnedBy::rank_has_ended() {
    while (connection_ >= 0) {
        char said[16];
        const ssize_t got = recv(connection_, said, sizeof said, MSG_DONTWAIT);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return false;
        }
        if (got == 0) {
            close_connection();
            return ends_with_rank_;
        }
        connected_ = connected_ || said[0] == node::spawn_connected;
        ends_with_rank_ = ends_with_rank_ && said[0] != node::spawn_released;
    }
    return false;
}

} // namespace warren::launch
