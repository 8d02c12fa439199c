#include "node_command.hpp"

#include <cstdio>
#include <string>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <vector>

#include "base/futex.hpp"
#include "commands.hpp"
#include "jobs.hpp"
#include "launch/mpiexec/binding.hpp"
#include "launch/mpiexec/limits.hpp"
#include "launch/mpiexec/state_report.hpp"
#include "mpi/job/segment.hpp"
#include "node_probes.hpp"
#include "warren/version.h"

namespace warren::tools {

namespace {

constexpr double mebibyte = 1024.0 * 1024.0;

std::string single_copy() {
    const Probe probe = probe_single_copy();
    if (probe.allowed) {
        return "allowed: large messages are copied once";
    }
    if (probe.refusal.empty()) {
        return "unknown";
    }
    return "refused (" + probe.refusal + "): large messages go through shared memory";
}

std::string memory_file() {
    const Probe probe = probe_memory_files();
    return probe.allowed ? "allowed"
                         : "refused (" + probe.refusal + "): Warren cannot start jobs here";
}

// The parts of the node, as "2 cores, 1 NUMA node", or why they are unknown.
std::string parts_of_node(const launch::CpuSet& allowed) {
    using launch::BindTo;
    struct Kind {
        BindTo kind;
        const char* one;
        const char* many;
    };
    std::string text;
    for (const Kind& kind :
         {Kind{BindTo::core, "core", "cores"}, Kind{BindTo::l3cache, "L3 cache", "L3 caches"},
          Kind{BindTo::numa, "NUMA node", "NUMA nodes"},
          Kind{BindTo::socket, "socket", "sockets"}}) {
        std::vector<launch::Place> places;
        if (Error error = launch::find_places(kind.kind, allowed, places)) {
            error.drop(); // a machine need not have all kinds
            continue;
        }
        text += (text.empty() ? "" : ", ") + std::to_string(places.size()) + " " +
                (places.size() == 1 ? kind.one : kind.many);
    }
    return text.empty() ? "unknown" : text;
}

void show_version() {
    std::printf("Warren %s, MPI standard ABI 1.0\n", warren_version());
}

void show_build() {
    std::printf("built by       %s, C++ %ld%s\n",
#if defined(__clang__)
                __VERSION__,
#else
                "GCC " __VERSION__,
#endif
                __cplusplus / 100 % 100,
#if defined(NDEBUG)
                ""
#else
                ", with assertions"
#endif
    );
}

void show_node() {
    const launch::CpuSet allowed = launch::CpuSet::allowed();
    std::printf("processors     %u of %ld may be used (CPUs %s)\n", allowed.count(),
                sysconf(_SC_NPROCESSORS_ONLN), allowed.text().c_str());
    std::printf("of them        %s\n", parts_of_node(allowed).c_str());
    if (const unsigned quota = launch::processor_quota()) {
        std::printf("time limit     of %u processors (control group)\n", quota);
    }
    std::printf("hwloc          %s\n", launch::hwloc_version().c_str());
    struct sysinfo memory {};
    sysinfo(&memory);
    std::printf("memory         %.0f MiB\n",
                static_cast<double>(memory.totalram) * memory.mem_unit / mebibyte);
    const std::string limit = launch::describe_memory_limit();
    std::printf("memory limit   %s\n", limit.empty() ? "none" : limit.c_str());
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    std::printf("descriptors    %llu per process, can be raised to %llu: %llu ranks per mpiexec\n",
                static_cast<unsigned long long>(files.rlim_cur),
                static_cast<unsigned long long>(files.rlim_max),
                static_cast<unsigned long long>(launch::ranks_within(files.rlim_max)));
    std::printf("memory files   %s\n", memory_file().c_str());
    std::printf("membarrier     %s\n", probe_sleeper_fence()
                                           ? "allowed: waking a rank needs no fence"
                                           : "refused: every message pays a fence");
    std::printf("single copy    %s\n", single_copy().c_str());
    const std::string scope = ptrace_scope();
    if (!scope.empty() && scope != "0") {
        std::printf("               (kernel.yama.ptrace_scope is %s)\n", scope.c_str());
    }
}

} // namespace

int version_command(const std::vector<std::string>& words) {
    if (!words.empty()) {
        return wrong_words;
    }
    show_version();
    return 0;
}

int node_command(const std::vector<std::string>& words) {
    if (!words.empty()) {
        return wrong_words;
    }
    show_node();
    return 0;
}

int info_command(const std::vector<std::string>& words) {
    if (!words.empty()) {
        return wrong_words;
    }
    show_version();
    show_build();
    show_node();
    return 0;
}

int state_command(const std::vector<std::string>& words) {
    if (words.size() > 1) {
        return wrong_words;
    }
    std::vector<node::Segment> worlds;
    if (!attach_worlds(words.empty() ? "" : words[0], "state", worlds)) {
        return 1;
    }
    for (const node::Segment& world : worlds) {
        std::printf("%s of mpiexec %u, %u ranks\n%s",
                    &world == worlds.data() ? "job" : "spawned world", world.header().launcher_pid,
                    world.ranks(), launch::report_states_from_outside(world).c_str());
    }
    return 0;
}

} // namespace warren::tools
