// The `warren` command: what a user asks about the installation and the node, without MPI.
//     warren version     the version of the library
//     warren node        what of this node matters to Warren, and what is missing

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "warren/version.h"

namespace {

constexpr double mebibyte = 1024.0 * 1024.0;

std::string first_line(const char* path) {
    std::string line;
    if (std::FILE* file = std::fopen(path, "r")) {
        char text[256];
        if (std::fgets(text, sizeof(text), file) != nullptr) {
            line = text;
            line.erase(line.find_last_not_of(" \n") + 1);
        }
        std::fclose(file);
    }
    return line;
}

// Whether one process may read the memory of another that has the same parent, as ranks do (which
// allow it to their launcher's descendants): large messages can then be copied once.
std::string single_copy() {
    int line[2]; // to the owner of the memory, which ends when our side is closed
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, line) != 0) {
        return std::string("unknown: socketpair: ") + std::strerror(errno);
    }
    static const char word[] = "warren";
    char byte = 0;
    const pid_t owner = fork();
    if (owner < 0) {
        return std::string("unknown: fork: ") + std::strerror(errno);
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
        return "unknown";
    }
    const int refusal = WEXITSTATUS(status);
    if (refusal == 0) {
        return "allowed: large messages are copied once";
    }
    return std::string("refused (process_vm_readv: ") + std::strerror(refusal) +
           "): large messages go through shared memory";
}

std::string memory_file() {
    const int descriptor = memfd_create("warren-probe", MFD_CLOEXEC);
    if (descriptor < 0) {
        return std::string("refused (memfd_create: ") + std::strerror(errno) +
               "): Warren cannot start jobs here";
    }
    close(descriptor);
    return "allowed";
}

int show_node() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    std::printf("processors     %d of %ld may be used\n", CPU_COUNT(&allowed),
                sysconf(_SC_NPROCESSORS_ONLN));
    struct sysinfo memory {};
    sysinfo(&memory);
    std::printf("memory         %.0f MiB\n",
                static_cast<double>(memory.totalram) * memory.mem_unit / mebibyte);
    const std::string limit = first_line("/sys/fs/cgroup/memory.max");
    if (!limit.empty() && limit != "max") {
        std::printf("memory limit   %.0f MiB (control group)\n", std::stod(limit) / mebibyte);
    }
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    std::printf("descriptors    %llu per process\n",
                static_cast<unsigned long long>(files.rlim_cur));
    std::printf("memory files   %s\n", memory_file().c_str());
    std::printf("single copy    %s\n", single_copy().c_str());
    const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
    if (!scope.empty() && scope != "0") {
        std::printf("               (kernel.yama.ptrace_scope is %s)\n", scope.c_str());
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::string command = argc == 2 ? argv[1] : "";
    if (command == "version" || command == "--version") {
        std::printf("Warren %s, MPI standard ABI 1.0\n", warren_version());
        return 0;
    }
    if (command == "node") {
        return show_node();
    }
    std::FILE* out = command == "help" || command == "--help" ? stdout : stderr;
    std::fprintf(out, "usage: warren version    the version\n"
                      "       warren node       what of this node matters to Warren\n");
    return out == stdout ? 0 : 2;
}
