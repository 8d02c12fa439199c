#include "launch/mpiexec/guardian.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/limits.hpp"
#include "mpi/job/world_identity.hpp"

namespace warren::launch {

namespace {

// Killed processes may have been about to fork: look again until nothing new is found, at most this
// often.
constexpr int straggler_rounds = 8;

// The kernel's scale of who is ended first when memory is short.
constexpr const char* first_victim = "1000";

void write_text(const char* path, const std::string& text) {
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        [[maybe_unused]] const ssize_t done = write(file, text.data(), text.size());
        close(file);
    }
}

// Empty: it can't be read; a process that has ended has no environment.
std::string read_text(const std::string& path) {
    std::string text;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        char buffer[16384];
        ssize_t got = 0;
        while ((got = read(file, buffer, sizeof buffer)) > 0) {
            text.append(buffer, static_cast<std::size_t>(got));
        }
        close(file);
    }
    return text;
}

std::string of_process(pid_t pid, const char* file) {
    return "/proc/" + std::to_string(pid) + "/" + file;
}

// Hands on the number of each process but this one and the first.
template <typename Action>
void each_process(Action action) {
    DIR* processes = opendir("/proc");
    if (processes == nullptr) {
        return;
    }
    while (const dirent* entry = readdir(processes)) {
        const int pid = std::atoi(entry->d_name);
        if (pid > 1 && pid != getpid()) {
            action(pid);
        }
    }
    closedir(processes);
}

// Whether any of the process's user IDs (real, effective, saved, of files) is another's.
bool has_other_user(pid_t pid) {
    constexpr const char* heading = "\nUid:";
    const std::string status = read_text(of_process(pid, "status"));
    const std::size_t at = status.find(heading);
    unsigned its[4] = {};
    if (at == std::string::npos ||
        std::sscanf(status.c_str() + at + std::strlen(heading), "%u %u %u %u", &its[0], &its[1],
                    &its[2], &its[3]) != 4) {
        return false; // it has ended
    }
    return std::any_of(its, its + 4, [](unsigned user) { return user != getuid(); });
}

bool carries(const std::string& environment, const std::string& setting) {
    std::size_t at = 0;
    while ((at = environment.find(setting, at)) != std::string::npos) {
        const std::size_t end = at + setting.size();
        if ((at == 0 || environment[at - 1] == '\0') &&
            (end == environment.size() || environment[end] == '\0')) {
            return true;
        }
        at = end;
    }
    return false;
}

// Closes everything but standard error and the two given descriptors.
void close_all_but(int first, int second) {
    if (first > second) {
        std::swap(first, second);
    }
    const auto close_between = [](int from, int to) {
        if (from <= to) {
            syscall(SYS_close_range, static_cast<unsigned>(from), static_cast<unsigned>(to), 0U);
        }
    };
    close_between(0, 1);
    close_between(3, first - 1);
    close_between(first + 1, second - 1);
    syscall(SYS_close_range, static_cast<unsigned>(second + 1), ~0U, 0U);
}

int commit(const node::Segment& segment) {
    constexpr const char* score = "/proc/self/oom_score_adj";
    const std::string usual = read_text(score);
    write_text(score, first_victim);
    const int problem = segment.commit_sure() ? 0 : (errno != 0 ? errno : ENOMEM);
    if (!usual.empty()) {
        write_text(score, usual);
    }
    return problem;
}

void finish_all_writes(const node::Segment& segment, JobUsers users) {
    for (const UnfinishedWrite& write : finish_writes(segment, [users] { return users; })) {
        std::fprintf(stderr, "mpiexec: %s\n", describe(write, "a rank").c_str());
    }
}

// The guardian's life. `mpiexec` is only for the message.
[[noreturn]] void guard(const node::Segment& segment, const std::string& job, int lifeline,
                        int answer, pid_t mpiexec) {
    setpgid(0, 0);
    prctl(PR_SET_NAME, "warren-guardian");
    // Signals to the group are for the ranks.
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);

    const bool spawned = segment.at(node::world_identity)->spawned != 0;
    const int problem = commit(segment);
    [[maybe_unused]] ssize_t done = write(answer, &problem, sizeof problem);
    close_all_but(lifeline, segment.descriptor());

    JobUsers users = JobUsers::own;
    char byte;
    for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);) {
        got = read(lifeline, &byte, 1);
        users = got > 0 ? JobUsers::others_too : users; // told by tell_of_other_users()
    }
    // mpiexec kills the group, and so this process, before it ends: it has not come to that.
    // A spawned world's is killed by the mpiexec of those that have spawned it, which says why.
    if (!spawned) {
        std::fprintf(stderr, "mpiexec: mpiexec (pid %d) was killed; its ranks are ended with it\n",
                     static_cast<int>(mpiexec));
    }
    const pid_t group = getpid();
    const pid_t cleaner = fork();
    if (cleaner == 0) {
        // Outside the group, to outlive its end.
        setpgid(0, 0);
        users = users == JobUsers::own ? users_of_job(group, job) : users;
        kill(-group, SIGKILL);
        kill_stragglers(job);
        finish_all_writes(segment, users);
        _exit(0);
    }
    if (cleaner > 0) {
        waitpid(cleaner, nullptr, 0); // which ends this process, too
    }
    kill(0, SIGKILL);
    _exit(1);
}

} // namespace

Guardian::~Guardian() {
    if (running()) {
        end();
    }
    if (lifeline_ >= 0) {
        close(lifeline_);
    }
    if (answer_ >= 0) {
        close(answer_);
    }
}

Error Guardian::start(const node::Segment& segment, const std::string& job) {
    int lifeline[2];
    int answer[2];
    if (pipe2(lifeline, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0) {
        return fail(exit_failure, "a pipe to the guardian process: %s", std::strerror(errno));
    }
    const pid_t mpiexec = getpid();
    pid_ = fork();
    if (pid_ < 0) {
        return fail(exit_failure, "starting the guardian process: %s", std::strerror(errno));
    }
    if (pid_ == 0) {
        close(lifeline[1]);
        close(answer[0]);
        guard(segment, job, lifeline[0], answer[1], mpiexec);
    }
    // Parent and child both make the group, so that it is there when the ranks join, whoever comes
    // first.
    setpgid(pid_, pid_);
    close(lifeline[0]);
    close(answer[1]);
    lifeline_ = lifeline[1];
    answer_ = answer[0];
    return {};
}

Error Guardian::wait_for_memory(const node::Segment& segment) {
    int problem = 0;
    ssize_t got = 0;
    while ((got = read(answer_, &problem, sizeof problem)) < 0 && errno == EINTR) {
    }
    close(std::exchange(answer_, -1));
    if (got == static_cast<ssize_t>(sizeof problem) && problem == 0) {
        return {};
    }
    const auto kilobytes = static_cast<unsigned long long>(segment.header().committed_bytes >> 10);
    if (got == 0) { // ended by the kernel
        const std::string limit = describe_memory_limit();
        return fail(exit_failure, "the node segment of %u ranks needs %llu kB, which do not fit %s",
                    segment.ranks(), kilobytes,
                    limit.empty() ? "the memory of this machine" : limit.c_str());
    }
    return fail(exit_failure, "the node segment of %u ranks needs %llu kB of memory: %s",
                segment.ranks(), kilobytes, std::strerror(problem));
}

void Guardian::tell_of_other_users() const {
    // (SIGPIPE is blocked: a guardian that was killed is an error here, and ends the job
    // elsewhere.)
    [[maybe_unused]] const ssize_t done = write(lifeline_, "", 1);
}

void Guardian::end() {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

int kill_stragglers(const std::string& job) {
    const std::string setting = "WARREN_JOB=" + job;
    int killed = 0;
    for (int round = 0; round < straggler_rounds; ++round) {
        int found = 0;
        each_process([&](pid_t pid) {
            if (carries(read_text(of_process(pid, "environ")), setting) &&
                kill(pid, SIGKILL) == 0) {
                ++found;
            }
        });
        killed += found;
        if (found == 0) {
            break;
        }
    }
    return killed;
}

JobUsers users_of_job(pid_t group, const std::string& job) {
    const std::string setting = "WARREN_JOB=" + job;
    JobUsers users = JobUsers::own;
    each_process([&](pid_t pid) {
        if ((getpgid(pid) == group || carries(read_text(of_process(pid, "environ")), setting)) &&
            has_other_user(pid)) {
            users = JobUsers::others_too;
        }
    });
    return users;
}

} // namespace warren::launch
