#include "launch/mpiexec/spawned_jobs.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/tuning.hpp"
#include "mpi/job/local_socket.hpp"
#include "mpi/job/spawn_request.hpp"
#include "mpi/job/world_identity.hpp"

namespace warren::launch {

namespace {

constexpr int requests_waiting = 64;

// Ranks that a command line asks for, so that later worlds know how many share the processors.
std::uint32_t count_ranks(const std::vector<char*>& words) {
    std::uint32_t ranks = 0;
    bool in_options = true; // "--" is before each program, ":" behind its arguments
    for (std::size_t index = 0; index + 1 < words.size() && words[index] != nullptr; ++index) {
        const std::string_view word = words[index];
        if (in_options && word == "-n" && words[index + 1] != nullptr) {
            ranks += static_cast<std::uint32_t>(std::strtoul(words[index + 1], nullptr, 10));
        }
        in_options = word == ":" || (in_options && word != "--");
    }
    return ranks;
}

// Whether a packet is a request of a rank of this world: words, the first of which is a port there.
// Others of the user can connect, too, and what they may send must not fail the job.
bool is_request(const std::string& packet, std::uint64_t world) {
    return packet.starts_with(node::port_name_start(world)) && packet.back() == '\0';
}

// The words of a packet, which ends with a 0, as arguments.
std::vector<char*> words_of(std::string& packet) {
    std::vector<char*> words;
    for (std::size_t begin = 0; begin < packet.size(); begin = packet.find('\0', begin) + 1) {
        words.push_back(packet.data() + begin);
    }
    words.push_back(nullptr);
    return words;
}

} // namespace

SpawnedJobs::~SpawnedJobs() {
    for (const auto& [number, connection] : connections_) {
        close(connection);
    }
    for (const int descriptor : {listener_, spare_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

void SpawnedJobs::open() {
    if (job_.agent != nullptr || !job_.segment) {
        return;
    }
    const std::uint64_t world = node::world_number(job_.segment);
    // Without, ranks are told that they can't reach mpiexec.
    listener_ = node::listen_at(node::launcher_socket_of(world), SOCK_SEQPACKET, requests_waiting);
    if (listener_ >= 0) {
        job_.events.watch(listener_, Source::spawn_listener);
        spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

void SpawnedJobs::take_connections() {
    if (spare_ < 0) {
        spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    for (int taken = node::accept_own(listener_); taken >= 0; taken = node::accept_own(listener_)) {
        const std::uint32_t number = ++last_number_;
        connections_[number] = taken;
        job_.events.watch(taken, Source::spawn_request, number);
    }
    if (node::lacks_descriptors(errno) && !refuse_for_lack()) {
        // Its requests would be events for ever.
        job_.events.forget(listener_);
        listens_again_ns_ = monotonic_ns() + request_pause_ns;
    }
}

void SpawnedJobs::listen_again() {
    if (listens_again_ns_ != 0 && monotonic_ns() >= listens_again_ns_) {
        listens_again_ns_ = 0;
        job_.events.watch(listener_, Source::spawn_listener);
    }
}

// False: not even that is possible.
bool SpawnedJobs::refuse_for_lack() {
    const std::string text = "mpiexec can't take the request: " + node::text_of_socket_error(errno);
    if (spare_ >= 0) {
        close(std::exchange(spare_, -1));
    }
    const int taken = node::accept_own(listener_);
    const bool refused = taken >= 0 || !node::lacks_descriptors(errno);
    if (taken >= 0) {
        // Who asks gets an error instead of the answer if its request is never read.
        char request[1];
        recv(taken, request, sizeof request, MSG_DONTWAIT);
        send(taken, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        close(taken);
    }
    spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return refused;
}

void SpawnedJobs::read_request(std::uint32_t number, const sigset_t& signals) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) {
        return;
    }
    const int connection = found->second;
    std::string packet(node::spawn_request_limit, '\0');
    const ssize_t got = recv(connection, packet.data(), packet.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    job_.events.forget(connection);
    connections_.erase(found);
    packet.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (is_request(packet, node::world_number(job_.segment)) && !killed_ &&
        !start(connection, packet, signals)) {
        const std::string text =
            std::string("mpiexec can't start another mpiexec: ") + std::strerror(errno);
        send(connection, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(connection); // the child's now
}

bool SpawnedJobs::start(int connection, const std::string& packet, const sigset_t& signals) {
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        become_mpiexec(connection, packet, signals, parent);
    }
    if (child > 0) {
        std::string copy = packet;
        worlds_[child] = count_ranks(words_of(copy));
    }
    return child > 0;
}

void SpawnedJobs::become_mpiexec(int connection, const std::string& packet, const sigset_t& signals,
                                 pid_t parent) const {
    // It ends with this one; signals of the terminal come by way of this one.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    setpgid(0, 0);
    const int null_input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null_input, STDIN_FILENO);
    fcntl(connection, F_SETFD, 0);
    std::uint32_t others = job_.line.ranks();
    for (const auto& [pid, ranks] : worlds_) {
        others += ranks;
    }
    std::string text = packet;
    std::vector<char*> words = words_of(text);
    setenv(node::parent_variable, words.front(), 1);
    setenv(node::spawn_variable,
           (std::to_string(connection) + " 0 " + std::to_string(others)).c_str(), 1);
    for (const EnvironmentSetting& setting : job_.line.environment) {
        setenv(setting.name.c_str(), setting.value.c_str(), 1);
    }
    static char name[] = "mpiexec";
    words.front() = name;
    if (job_.line.tag_output) {
        static char tag[] = "-l";
        words.insert(words.begin() + 1, tag);
    }
    sigprocmask(SIG_SETMASK, &signals, nullptr);
    execv("/proc/self/exe", words.data());
    const std::string reason = std::string("mpiexec: ") + std::strerror(errno);
    send(connection, reason.data(), reason.size(), MSG_NOSIGNAL);
    _exit(0); // the program has the error
}

bool SpawnedJobs::ended(pid_t pid, int wait_status) {
    if (worlds_.erase(pid) == 0) {
        return false;
    }
    if (exit_code_ == 0 && !killed_) {
        exit_code_ =
            WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    }
    return true;
}

void SpawnedJobs::signal_all(int number) {
    for (const auto& [pid, ranks] : worlds_) {
        kill(pid, number);
    }
}

void SpawnedJobs::kill_all() {
    killed_ = true;
    // Their guardians end the ranks.
    signal_all(SIGKILL);
}

} // namespace warren::launch
