#include "node_probes.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "launch/mpiexec/running_jobs.hpp"

namespace warren::tools {

namespace {

Probe refused(const char* call, int reason) {
    return {false, std::string(call) + ": " + std::strerror(reason)};
}

} // namespace

Probe probe_single_copy() {
    int line[2]; // to the owner of the memory, which ends when our side is closed
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, line) != 0) {
        return refused("socketpair", errno);
    }
    static const char word[] = "warren";
    char byte = 0;
    const pid_t owner = fork();
    if (owner < 0) {
        const int reason = errno;
        close(line[0]);
        close(line[1]);
        return refused("fork", reason);
    }
    if (owner == 0) {
        close(line[1]);
        prctl(PR_SET_PTRACER, static_cast<unsigned long>(getppid()), 0, 0, 0);
        const bool told = write(line[0], &byte, 1) == 1;
        _exit(told && read(line[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(line[0]);
    const bool ready = read(line[1], &byte, 1) == 1;
    const pid_t reader = ready ? fork() : -1;
    if (reader == 0) {
        char copy[sizeof(word)];
        iovec here{copy, sizeof(copy)};
        iovec there{const_cast<char*>(word), sizeof(word)};
        const ssize_t bytes = process_vm_readv(owner, &here, 1, &there, 1, 0);
        _exit(bytes == static_cast<ssize_t>(sizeof(word)) ? 0 : errno);
    }
    int status = 0;
    const bool known = reader > 0 && waitpid(reader, &status, 0) == reader && WIFEXITED(status);
    close(line[1]);
    waitpid(owner, nullptr, 0);
    if (!known) {
        return {};
    }
    const int refusal = WEXITSTATUS(status);
    return refusal == 0 ? Probe{true} : refused("process_vm_readv", refusal);
}

Probe probe_memory_files() {
    const int descriptor = memfd_create("warren-probe", MFD_CLOEXEC);
    if (descriptor < 0) {
        return refused("memfd_create", errno);
    }
    close(descriptor);
    return {true};
}

bool probe_sleeper_fence() {
    return register_sleeper_fence();
}

Probe probe_io_uring() {
    alignas(std::uint64_t) std::array<char, 120> parameters{}; // struct io_uring_params
    const long descriptor = syscall(SYS_io_uring_setup, 1, parameters.data());
    if (descriptor < 0) {
        return refused("io_uring_setup", errno);
    }
    close(static_cast<int>(descriptor));
    return {true};
}

std::string ptrace_scope() {
    return launch::first_line("/proc/sys/kernel/yama/ptrace_scope");
}

} // namespace warren::tools
