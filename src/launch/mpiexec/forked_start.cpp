#include "launch/mpiexec/forked_start.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "image/elf_file.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "launch/mpiexec/tuning.hpp"
#include "launch/preload/forked_start/message.hpp"

namespace warren::launch {

namespace {

constexpr const char* file_name = "warren/libwarren-forked-start.so";

} // namespace

bool ForkedStart::fits(const ResolvedProgram& program) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)program; // sanitizers want to be first
    return false;
#else
    struct stat status;
    std::shared_ptr<const image::ElfFile> file;
    const std::string path = program.full_path();
    if (stat(path.c_str(), &status) != 0 || (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
        return false; // what is preloaded is not for privileged programs
    }
    if (Error error = image::ElfFile::open(path, file)) {
        error.drop(); // a script, another machine's
        return false;
    }
    const auto& needed = file->dynamic().needed;
    // (What a program has in that array runs before any library: static sanitizers begin there.)
    return file->has_interpreter() && file->dynamic().preinit_array.bytes == 0 &&
           std::none_of(needed.begin(), needed.end(), [](const char* name) {
               return std::strncmp(name, "libasan.so", 10) == 0 ||
                      std::strncmp(name, "libtsan.so", 10) == 0;
           });
#endif
}

std::string ForkedStart::library() {
    const std::string path = own_folder() + library_folder + file_name;
    const bool is_usable =
        path.find_first_of(" :") == std::string::npos && access(path.c_str(), R_OK) == 0;
    return is_usable ? path : "";
}

bool ForkedStart::open() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    ours_ = ends[0];
    theirs_ = ends[1];
    return true;
}

EnvironmentSetting ForkedStart::setting() const {
    return {forked_start_variable, std::to_string(theirs_)};
}

void ForkedStart::close_theirs() {
    if (theirs_ >= 0) {
        ::close(std::exchange(theirs_, -1));
    }
}

void ForkedStart::close() {
    close_theirs();
    if (ours_ >= 0) {
        ::close(std::exchange(ours_, -1));
    }
    ready_ = false;
}

bool ForkedStart::ready() {
    if (ours_ >= 0 && !ready_) {
        ready_ = answer(ready_ms, nullptr);
        if (!ready_) {
            close();
        }
    }
    return ready_;
}

// Takes one reply. False when there is none in time, or never will be.
bool ForkedStart::answer(int timeout_ms, std::vector<Started>* started) {
    pollfd wait = {.fd = ours_, .events = POLLIN, .revents = 0};
    ForkReply reply;
    if (poll(&wait, 1, timeout_ms) != 1 ||
        recv(ours_, &reply, sizeof reply, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof reply) ||
        reply.magic != forked_start_magic) {
        return false;
    }
    if (started == nullptr) {
        return reply.rank == ForkReply::ready;
    }
    const auto place = std::find(waiting_.begin(), waiting_.end(), reply.rank);
    if (place == waiting_.end()) {
        return false;
    }
    waiting_.erase(place);
    Started& made = started->emplace_back();
    made.rank = reply.rank;
    made.pid = reply.pid;
    made.failure = {
        .error_number = reply.error_number, .step = "starting a process", .rank = reply.rank};
    return true;
}

bool ForkedStart::start(const SpawnRequest& request) {
    ForkRequest wanted;
    wanted.rank = request.rank;
    wanted.world_rank = request.world_rank;
    wanted.lifeline_number = request.lifeline_number;
    if (request.processors != nullptr) {
        if (CpuSet::bytes() > sizeof wanted.processors) {
            return false;
        }
        wanted.processor_bytes = static_cast<std::uint32_t>(CpuSet::bytes());
        std::memcpy(wanted.processors, request.processors->data(), CpuSet::bytes());
    }
    const int descriptors[fork_descriptors] = {request.standard_input, request.standard_output,
                                               request.standard_error, request.lifeline};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
    iovec data = {.iov_base = &wanted, .iov_len = sizeof wanted};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    if (sendmsg(ours_, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof wanted)) {
        return false;
    }
    waiting_.push_back(request.rank);
    return true;
}

bool ForkedStart::collect(std::size_t limit, std::vector<Started>& started) {
    while (waiting_.size() > limit) {
        if (!answer(fork_ms, &started)) {
            return false;
        }
    }
    return true;
}

void ForkedStart::give_up(std::vector<Started>& started) {
    for (const std::uint32_t rank : waiting_) {
        started.push_back({.rank = rank,
                           .pid = 0,
                           .failure = {.error_number = ECHILD,
                                       .step = "forking the first process",
                                       .rank = rank}});
    }
    waiting_.clear();
}

} // namespace warren::launch
