// What this system lets processes do: the first part of `warren doctor`.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "analyser/recorder/perf_events.hpp"
#include "doctor_command.hpp"
#include "launch/mpiexec/binding.hpp"
#include "launch/mpiexec/limits.hpp"
#include "launch/mpiexec/running_jobs.hpp"
#include "mpi/transport/fabric/libfabric.hpp"
#include "node_probes.hpp"

namespace warren::tools {

namespace {

// Ranks of a large node's job: limits that leave room for fewer are worth a line.
constexpr std::uint64_t many_ranks = 1024;

std::string number(std::uint64_t value) {
    return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

std::optional<std::uint64_t> number_in(const std::string& path) {
    std::ifstream file(path);
    std::uint64_t value = 0;
    return file >> value ? std::optional(value) : std::nullopt;
}

// The value of a line "name: value" of a file of /proc; empty: there is none.
std::string field(const char* path, const std::string& name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(name + ":")) {
            const std::size_t at = line.find_first_not_of(" \t", name.size() + 1);
            return at == std::string::npos ? "" : line.substr(at);
        }
    }
    return "";
}

std::string text_of(Error& error) {
    return std::unique_ptr<ErrorRecord>(error.take())->text;
}

bool is_in_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (access(((folder.empty() ? "." : folder) + "/" + program).c_str(), X_OK) == 0) {
            return true;
        }
    }
    return false;
}

Finding processors() {
    const launch::CpuSet allowed = launch::CpuSet::allowed();
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const std::string text = std::to_string(allowed.count()) + " of " + std::to_string(online) +
                             " may be used (CPUs " + allowed.text() + ")";
    if (const unsigned quota = launch::processor_quota(); quota != 0 && quota < allowed.count()) {
        return {Finding::note, "processors",
                text + "; the control group grants the time of " + std::to_string(quota),
                "raise it (cpu.max, cpu.cfs_quota_us; containers: --cpus), or give ranks no more "
                "processors than that (taskset)"};
    }
    if (allowed.count() < static_cast<unsigned>(online)) {
        return {Finding::note, "processors",
                text + ": a cpuset or an affinity leaves the others out"};
    }
    return {Finding::good, "processors", text};
}

Finding hwloc() {
    const std::string text = launch::hwloc_version();
    if (text.starts_with("found")) {
        return {Finding::good, "hwloc", text};
    }
    return {Finding::hinders, "hwloc",
            text + ": ranks can't be placed by cores, caches and memories", "install libhwloc15"};
}

Finding memory_files() {
    const Probe probe = probe_memory_files();
    if (probe.allowed) {
        return {Finding::good, "memory files", "allowed; /dev/shm is not used"};
    }
    return {Finding::prevents, "memory files", "refused (" + probe.refusal + ")",
            "allow memfd_create in the container's seccomp profile"};
}

Finding null_device() {
    const int descriptor = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
        return {Finding::prevents, "/dev/null",
                std::string(std::strerror(errno)) + ": it is the input of all ranks but the first",
                "mknod -m 666 /dev/null c 1 3, or give the container a /dev"};
    }
    close(descriptor);
    return {Finding::good, "/dev/null", "can be opened"};
}

Finding single_copy() {
    const Probe probe = probe_single_copy();
    if (probe.allowed) {
        return {Finding::good, "single copy",
                "allowed: large messages of processes are copied once"};
    }
    const std::string scope = ptrace_scope();
    const bool by_scope = scope == "2" || scope == "3";
    return {Finding::hinders, "single copy",
            (probe.refusal.empty() ? std::string("unknown") : "refused (" + probe.refusal + ")") +
                ": large messages of processes are copied twice",
            by_scope
                ? "sysctl kernel.yama.ptrace_scope=1"
                : "start the container with --cap-add=SYS_PTRACE (a seccomp profile of your own "
                  "must allow process_vm_readv), or use --ranks threads"};
}

Finding fences() {
    if (probe_sleeper_fence()) {
        return {Finding::good, "membarrier", "allowed: waking a rank needs no fence"};
    }
    return {Finding::hinders, "membarrier", "refused: each message pays a fence",
            "allow membarrier in the container's seccomp profile"};
}

Finding io_uring() {
    const Probe probe = probe_io_uring();
    return {Finding::good, "io_uring",
            (probe.allowed ? std::string("allowed") : "refused (" + probe.refusal + ")") +
                "; one node doesn't need it"};
}

Finding seccomp() {
    if (field("/proc/self/status", "Seccomp") == "2") {
        return {Finding::note, "seccomp", "filters system calls; what is refused is said above"};
    }
    return {Finding::good, "seccomp", "no filter"};
}

Finding container() {
    for (const auto& [file, name] : {std::pair{"/.dockerenv", "Docker"},
                                     {"/run/.containerenv", "Podman"},
                                     {"/.singularity.d", "Apptainer"}}) {
        if (access(file, F_OK) == 0) {
            return {Finding::note, "container", std::string(name) + " (" + file + ")"};
        }
    }
    if (const char* name = std::getenv("container")) { // systemd's convention, LXC's too
        return {Finding::note, "container", std::string(name) + " (container=" + name + ")"};
    }
    if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) {
        return {Finding::note, "container", "Kubernetes (KUBERNETES_SERVICE_HOST)"};
    }
    return {Finding::good, "container", "none that leaves its mark"};
}

Finding descriptors() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const std::uint64_t ranks = launch::ranks_within(limit.rlim_max);
    const std::string text = "mpiexec can raise them to " + number(limit.rlim_max) + ": " +
                             number(ranks) + " ranks that are processes";
    if (ranks >= many_ranks) {
        return {Finding::good, "descriptors", text};
    }
    return {ranks == 0 ? Finding::prevents : Finding::hinders, "descriptors", text,
            "as root, ulimit -Hn " + number(launch::descriptors_for(many_ranks, false, 1)) +
                " (systemd: LimitNOFILE, containers: --ulimit nofile); or --ranks fibres, which "
                "share them"};
}

Finding processes() {
    const launch::TaskLimit limit = launch::tightest_task_limit();
    if (limit.text.empty()) {
        return {Finding::good, "processes", "no limit"};
    }
    const std::string text =
        "room for " + number(limit.room) + " more processes and threads: " + limit.text;
    if (limit.room >= 2 * many_ranks) {
        return {Finding::good, "processes", text};
    }
    return {Finding::hinders, "processes", text,
            "raise it (containers: --pids-limit), or use --ranks fibres"};
}

Finding mappings() {
    const std::uint64_t most = number_in("/proc/sys/vm/max_map_count").value_or(65530);
    const std::string text = std::to_string(most) + " per process (vm.max_map_count)";
    // A private copy of a program has some ten mappings for each of its libraries.
    if (most >= 60 * many_ranks) {
        return {Finding::good, "mappings", text};
    }
    return {Finding::hinders, "mappings", text + ": few thread or fibre ranks fit",
            "sysctl -w vm.max_map_count=" + std::to_string(256 * many_ranks)};
}

Finding memory() {
    const std::string limit = launch::describe_memory_limit();
    rlimit addresses{};
    getrlimit(RLIMIT_AS, &addresses);
    if (addresses.rlim_cur != RLIM_INFINITY) {
        return {Finding::hinders, "memory",
                "ulimit -v is " + number(addresses.rlim_cur / 1024) +
                    " kB: thread and fibre ranks reserve more addresses than they use",
                "ulimit -v unlimited"};
    }
    if (number_in("/proc/sys/vm/overcommit_memory").value_or(0) == 2) {
        return {Finding::hinders, "memory",
                "vm.overcommit_memory is 2: addresses count as memory, of which ranks reserve more "
                "than they use",
                "sysctl vm.overcommit_memory=0"};
    }
    return {limit.empty() ? Finding::good : Finding::note, "memory",
            limit.empty() ? "no limit" : limit};
}

Finding huge_pages() {
    const std::string modes = launch::first_line("/sys/kernel/mm/transparent_hugepage/enabled");
    if (modes.empty()) {
        return {Finding::note, "huge pages",
                "unknown: /sys is not mounted, or the kernel has no transparent ones"};
    }
    if (modes.find("[never]") == std::string::npos) {
        return {Finding::good, "huge pages", modes};
    }
    return {Finding::hinders, "huge pages", "none: large arrays cost more page faults",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding page_faults() {
    locality::PerfEvents events;
    locality::PerfOptions options;
    options.ring_bytes = 64 * 1024; // a ring per processor, in which nothing will be
    options.brief = true;
    if (Error error = events.open(getpid(), options)) {
        return {Finding::hinders, "page faults",
                "warren locality record sees none: " + text_of(error)};
    }
    return {Finding::good, "page faults", "warren locality record sees them"};
}

// What mpiexec starts agents by on other nodes (--launcher), and what their ranks talk over.
Finding other_nodes() {
    transport::fabric::Libfabric library;
    if (Error error = transport::fabric::Libfabric::load(library)) {
        return {Finding::note, "other nodes", text_of(error)};
    }
    std::string starters;
    for (const char* name : {"ssh", "srun"}) {
        if (is_in_path(name)) {
            starters += (starters.empty() ? "" : " and ") + std::string(name);
        }
    }
    const std::uint32_t version = library.version();
    const std::string text = "libfabric " + std::to_string(FI_MAJOR(version)) + "." +
                             std::to_string(FI_MINOR(version)) + " found; ";
    if (starters.empty()) {
        return {Finding::note, "other nodes",
                text + "neither ssh nor srun in PATH, which start agents there",
                "install openssh-client, or name a command with --launcher"};
    }
    return {Finding::good, "other nodes", text + starters + " in PATH"};
}

Finding launcher() {
    for (const auto& [variable, name] : {std::pair{"SLURM_JOB_ID", "a Slurm job"},
                                         {"PBS_JOBID", "a PBS job"},
                                         {"FLUX_URI", "a Flux instance"},
                                         {"LSB_JOBID", "an LSF job"}}) {
        if (const char* value = std::getenv(variable)) {
            return {Finding::note, "launcher",
                    "inside " + std::string(name) + " (" + variable + "=" + value + ")"};
        }
    }
    return {Finding::good, "launcher", "mpiexec; no batch system"};
}

} // namespace

std::optional<Finding> missing_proc() {
    if (access("/proc/self/exe", R_OK) == 0) {
        return std::nullopt;
    }
    return Finding{
        Finding::prevents, "/proc",
        "not mounted: programs find their libraries there, and ranks each other's memory",
        "mount -t proc proc /proc"};
}

std::vector<Finding> examine_system() {
    return {processors(), hwloc(),      memory(),      memory_files(), null_device(), single_copy(),
            fences(),     io_uring(),   seccomp(),     container(),    descriptors(), processes(),
            mappings(),   huge_pages(), page_faults(), other_nodes(),  launcher()};
}

} // namespace warren::tools
