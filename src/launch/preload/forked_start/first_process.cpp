// libwarren-forked-start.so: forks a program's further ranks from its first process.
//
// mpiexec preloads it into that process (forked_start.hpp). Its constructor runs (-z initfirst)
// when the program and its libraries are mapped and bound to each other, before any of their code.
// At that time the process has no state that a fork must not share. The constructor forks once for
// each of mpiexec's requests. Each child gets its rank's number, descriptors and processors, and
// all processes go on into the program. A fork costs a third of executing the program again, and
// shares the pages that binding has written.
//
// The C library is not ready then, so system calls are made without it. The kernel writes the
// child's thread number to the address that the C library has registered for that.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/raw_call.hpp"
#include "launch/preload/forked_start/message.hpp"
#include "launch/rank_variables.hpp"

namespace warren::launch {

namespace {

constexpr char preload_variable[] = "LD_PRELOAD";
constexpr char own_name[] = "/libwarren-forked-start.so";

// The value, or null.
char* value_of(char* entry, const char* name, std::size_t length) {
    return std::strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1
                                                                          : nullptr;
}
template <std::size_t size>
char* value_of(char* entry, const char (&name)[size]) {
    return value_of(entry, name, size - 1);
}

// Minus one for what is no number.
int number_in(const char* text) {
    int number = 0;
    if (*text == '\0') {
        return -1;
    }
    for (; *text != '\0'; ++text) {
        if (*text < '0' || *text > '9' || number > 100'000'000) {
            return -1;
        }
        number = number * 10 + (*text - '0');
    }
    return number;
}

// Overwrites the number in place: mpiexec has left room for ten digits.
void write_number(char* text, std::uint32_t number) {
    char digits[10];
    std::size_t count = 0;
    do {
        digits[count++] = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number != 0);
    const std::size_t room = std::strlen(text);
    for (std::size_t at = 0; at < room; ++at) {
        text[at] = at < count ? digits[count - 1 - at] : '\0';
    }
}

// This library's name from the end of a list of them. Whether nothing is left.
bool take_own_name(char* list) {
    const std::size_t length = std::strlen(list);
    constexpr std::size_t own = sizeof own_name - 1;
    if (length < own || std::strcmp(list + length - own, own_name) != 0) {
        return false;
    }
    std::size_t at = length - own;
    while (at > 0 && list[at - 1] != ':' && list[at - 1] != ' ') {
        --at;
    }
    list[at == 0 ? 0 : at - 1] = '\0';
    return at == 0;
}

// Where the values of rank_variables stand in the environment; null: nowhere.
class RankTexts {
  public:
    void note(char* entry) {
        for (std::size_t index = 0; index < rank_variable_count; ++index) {
            const char* name = rank_variables[index].name;
            if (char* text = value_of(entry, name, std::strlen(name))) {
                texts_[index] = text;
            }
        }
    }
    void write(const RankNumbers& numbers) const {
        for (std::size_t index = 0; index < rank_variable_count; ++index) {
            if (texts_[index] != nullptr) {
                write_number(texts_[index], numbers.of(rank_variables[index]));
            }
        }
    }
    // False when they are not there, as mpiexec has written them.
    bool read(RankNumbers& numbers) const {
        for (std::size_t index = 0; index < rank_variable_count; ++index) {
            const int number = texts_[index] == nullptr ? -1 : number_in(texts_[index]);
            if (number < 0) {
                return false;
            }
            (rank_variables[index].on_node ? numbers.on_node : numbers.in_world) =
                static_cast<std::uint32_t>(number);
        }
        return true;
    }

  private:
    char* texts_[rank_variable_count] = {};
};

class FirstProcess {
  public:
    FirstProcess(int socket, const RankTexts& texts, pid_t parent)
        : socket_(socket), texts_(texts), parent_(parent) {}

    bool can_fork() {
        ucred peer = {};
        socklen_t size = sizeof peer;
        std::size_t robust_size = 0;
        return raw_call(SYS_getsockopt, socket_, SOL_SOCKET, SO_PEERCRED, raw_address(&peer),
                        raw_address(&size)) == 0 &&
               peer.pid == parent_ &&
               raw_call(SYS_prctl, PR_GET_TID_ADDRESS, raw_address(&thread_number_)) == 0 &&
               raw_call(SYS_get_robust_list, 0, raw_address(&robust_list_),
                        raw_address(&robust_size)) == 0;
    }

    // Returns in every process, the first one and its forks, to go on into the program.
    void fork_ranks() {
        send({});
        while (receive()) {
            const long pid = clone();
            if (pid == 0) {
                become_rank();
                return;
            }
            close_received();
            send({.rank = request_.rank,
                  .pid = pid < 0 ? 0 : static_cast<std::int32_t>(pid),
                  .error_number = pid < 0 ? static_cast<std::int32_t>(-pid) : 0});
        }
        raw_call(SYS_close, socket_);
    }

  private:
    // One request; false when there are no more.
    bool receive() {
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof received_)];
        iovec data = {.iov_base = &request_, .iov_len = sizeof request_};
        msghdr message = {};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        long got = 0;
        do {
            got = raw_call(SYS_recvmsg, socket_, raw_address(&message), MSG_CMSG_CLOEXEC);
        } while (got == -EINTR);
        const cmsghdr* header = CMSG_FIRSTHDR(&message);
        if (got != static_cast<long>(sizeof request_) || request_.magic != forked_start_magic ||
            header == nullptr || header->cmsg_level != SOL_SOCKET ||
            header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof received_) ||
            request_.processor_bytes > sizeof request_.processors) {
            return false;
        }
        std::memcpy(received_, CMSG_DATA(header), sizeof received_);
        return true;
    }

    void close_received() {
        for (const int descriptor : received_) {
            raw_call(SYS_close, descriptor);
        }
    }

    void send(const ForkReply& reply) {
        raw_call(SYS_sendto, socket_, raw_address(&reply), sizeof reply, MSG_NOSIGNAL);
    }

    // As fork, with mpiexec as the parent.
    long clone() {
        constexpr long flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__x86_64__)
        return raw_call(SYS_clone, flags, 0, 0, raw_address(thread_number_), 0);
#else
        return raw_call(SYS_clone, flags, 0, 0, 0, raw_address(thread_number_));
#endif
    }

    // In the child: sets what a process gets between its start and its program.
    void become_rank() {
        raw_call(SYS_close, socket_);
        raw_call(SYS_set_robust_list, raw_address(robust_list_), sizeof(void*) * 3);
        long result = raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
        if (result < 0 || raw_call(SYS_getppid) != parent_) {
            raw_call(SYS_exit_group, 127); // mpiexec has gone
        }
        const int numbers[fork_descriptors] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO,
                                               request_.lifeline_number};
        for (std::size_t at = 0; result >= 0 && at < fork_descriptors; ++at) {
            result = raw_place(received_[at], numbers[at]);
        }
        close_received();
        if (result >= 0 && request_.processor_bytes > 0) {
            result = raw_call(SYS_sched_setaffinity, 0, request_.processor_bytes,
                              raw_address(request_.processors));
        }
        texts_.write({.in_world = request_.world_rank, .on_node = request_.rank});
        if (result < 0) {
            constexpr char text[] = "warren: this rank's descriptors or processors can't be had\n";
            raw_call(SYS_write, STDERR_FILENO, raw_address(text), sizeof text - 1);
            raw_call(SYS_exit_group, 127);
        }
    }

    int socket_;
    RankTexts texts_;
    pid_t parent_;
    int* thread_number_ = nullptr;
    void* robust_list_ = nullptr;
    ForkRequest request_;
    int received_[fork_descriptors] = {-1, -1, -1, -1};
};

// Removes mpiexec's settings for this library from the environment, and notes where the rank's
// numbers stand.
RankTexts clean_environment(char** environment, int& socket) {
    RankTexts texts;
    char** kept = environment;
    for (char** entry = environment; *entry != nullptr; ++entry) {
        if (char* number = value_of(*entry, forked_start_variable)) {
            socket = number_in(number);
            continue;
        }
        char* preloaded = value_of(*entry, preload_variable);
        if (preloaded != nullptr && take_own_name(preloaded)) {
            continue;
        }
        texts.note(*entry);
        *kept++ = *entry;
    }
    *kept = nullptr;
    return texts;
}

__attribute__((constructor)) void fork_first_process(int /*count*/, char** /*words*/,
                                                     char** environment) {
    int socket = -1;
    const RankTexts texts = clean_environment(environment, socket);
    RankNumbers own;
    if (!texts.read(own) || socket < 0) {
        return;
    }
    FirstProcess process(socket, texts, static_cast<pid_t>(raw_call(SYS_getppid)));
    if (process.can_fork()) {
        process.fork_ranks();
    } else {
        raw_call(SYS_close, socket);
    }
    RankNumbers now;
    if (texts.read(now) && now.in_world == own.in_world) { // the first: without leading zeros
        texts.write(own);
    }
}

} // namespace

} // namespace warren::launch
