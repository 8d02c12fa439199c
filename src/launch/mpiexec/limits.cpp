#include "launch/mpiexec/limits.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <unistd.h>
#include <utility>

#include "launch/mpiexec/errors.hpp"

namespace warren::launch {

namespace {

// "No limit" of version 1 is the largest multiple of a page; nobody has such memory.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;

// The first bytes of a small file; empty when it can't be read.
std::string read_small(const std::string& path) {
    char buffer[8192];
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return "";
    }
    const ssize_t got = read(file, buffer, sizeof buffer);
    close(file);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : "";
}

std::uint64_t number_in(const std::string& text) {
    return text.starts_with("max") || text.empty() ? no_limit
                                                   : std::strtoull(text.c_str(), nullptr, 10);
}

// Output, errors and lifeline of a rank; a socket pair for a program's forked ranks. The topology
// needs 6, the rest of mpiexec a handful, and the user's shell may have left some open.
constexpr std::uint64_t descriptors_per_rank = 3;
constexpr std::uint64_t descriptors_per_program = 2;
constexpr std::uint64_t other_descriptors = 70;

// A control group folder of this process.
struct Folder {
    std::string path;
    bool version_2;
};

// Visits the folders of a controller from the process's own up to the hierarchy's root. In a
// container whose path in /proc is the host's, only the root exists.
void for_each_folder(const char* controller, const std::function<void(const Folder&)>& visit) {
    const std::string groups = read_small("/proc/self/cgroup");
    std::size_t at = 0;
    while (at < groups.size()) {
        const std::size_t end = std::min(groups.find('\n', at), groups.size());
        const std::string line = groups.substr(at, end - at);
        at = end + 1;
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool version_2 = controllers == ",,";
        if (!version_2 &&
            controllers.find("," + std::string(controller) + ",") == std::string::npos) {
            continue;
        }
        const std::string root =
            version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + std::string(controller);
        std::string group = line.substr(second + 1);
        while (true) {
            if (group == "/") {
                group.clear();
            }
            visit({.path = root + group, .version_2 = version_2});
            if (group.empty()) {
                break;
            }
            group.erase(group.rfind('/'));
        }
    }
}

struct MemoryLimit {
    std::uint64_t limit = no_limit;
    std::uint64_t used = 0;
    std::uint64_t reclaimable = 0; // of the used: file pages that the kernel drops on demand
    std::string path;

    std::uint64_t free_bytes() const {
        const std::uint64_t held = used - std::min(used, reclaimable);
        return limit - std::min(limit, held);
    }
};

std::uint64_t field_of(const std::string& table, const std::string& name) {
    const std::string key = name + " ";
    std::size_t at = table.starts_with(key) ? 0 : table.find("\n" + key);
    if (at == std::string::npos) {
        return 0;
    }
    at += table[at] == '\n' ? 1 : 0;
    return std::strtoull(table.c_str() + at + key.size(), nullptr, 10);
}

// The limit that leaves the least memory.
MemoryLimit tightest_memory_limit() {
    MemoryLimit tightest;
    for_each_folder("memory", [&](const Folder& folder) {
        MemoryLimit here;
        here.path = folder.path + (folder.version_2 ? "/memory.max" : "/memory.limit_in_bytes");
        here.limit = number_in(read_small(here.path));
        if (here.limit >= no_limit) {
            return;
        }
        const std::string used = read_small(
            folder.path + (folder.version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
        here.used = used.empty() ? 0 : number_in(used);
        const std::string table = read_small(folder.path + "/memory.stat");
        const std::string prefix = folder.version_2 ? "" : "total_";
        here.reclaimable =
            field_of(table, prefix + "active_file") + field_of(table, prefix + "inactive_file");
        if (tightest.limit == no_limit || here.free_bytes() < tightest.free_bytes()) {
            tightest = here;
        }
    });
    return tightest;
}

std::string describe(const MemoryLimit& limit) {
    return "the memory limit of " + std::to_string(limit.limit >> 10) + " kB (" + limit.path +
           ", " + std::to_string(limit.used >> 10) + " kB of it in use)";
}

} // namespace

Error check_free_memory(std::uint64_t bytes) {
    const MemoryLimit limit = tightest_memory_limit();
    if (limit.limit == no_limit || bytes <= limit.free_bytes()) {
        return {};
    }
    return fail(exit_failure, "%s", describe(limit).c_str());
}

std::string describe_memory_limit() {
    const MemoryLimit limit = tightest_memory_limit();
    return limit.limit == no_limit ? "" : describe(limit);
}

std::uint32_t processor_quota() {
    std::uint64_t least = 0;
    for_each_folder("cpu", [&](const Folder& folder) {
        long long quota = -1;
        long long period = 0;
        if (folder.version_2) {
            const std::string both = read_small(folder.path + "/cpu.max");
            if (std::sscanf(both.c_str(), "%lld %lld", &quota, &period) != 2) {
                return; // "max"
            }
        } else {
            quota = std::atoll(read_small(folder.path + "/cpu.cfs_quota_us").c_str());
            period = std::atoll(read_small(folder.path + "/cpu.cfs_period_us").c_str());
        }
        if (quota > 0 && period > 0) {
            const auto granted = static_cast<std::uint64_t>((quota + period - 1) / period);
            least = least == 0 ? granted : std::min(least, granted);
        }
    });
    return static_cast<std::uint32_t>(least);
}

namespace {

void consider(TaskLimit& least, std::uint64_t limit, std::uint64_t used, const std::string& name) {
    const std::uint64_t room = limit - std::min(limit, used);
    if (limit < no_limit && room < least.room) {
        least.room = room;
        least.text = name + " is " + std::to_string(limit) +
                     (used != 0 ? ", of which " + std::to_string(used) + " are in use" : "");
    }
}

// How many processes and threads the system has: the second number of "3/512".
std::uint64_t tasks_of_system(const std::string& root) {
    const std::string load = read_small(root + "/proc/loadavg");
    const std::size_t slash = load.find('/');
    return slash == std::string::npos ? 0 : std::strtoull(load.c_str() + slash + 1, nullptr, 10);
}

} // namespace

TaskLimit tightest_task_limit(const std::string& root) {
    TaskLimit least;
    const std::uint64_t used = tasks_of_system(root);
    consider(least, number_in(read_small(root + "/proc/sys/kernel/threads-max")), used,
             "the system's limit of threads (sysctl kernel.threads-max)");
    consider(least, number_in(read_small(root + "/proc/sys/kernel/pid_max")), used,
             "the system's limit of process numbers (sysctl kernel.pid_max)");
    rlimit own{};
    if (root.empty() && getuid() != 0 && getrlimit(RLIMIT_NPROC, &own) == 0 &&
        own.rlim_cur != RLIM_INFINITY) {
        consider(least, own.rlim_cur, 0, "the user's limit of processes (ulimit -u)");
    }
    if (root.empty()) {
        for_each_folder("pids", [&](const Folder& folder) {
            const std::string current = read_small(folder.path + "/pids.current");
            consider(least, number_in(read_small(folder.path + "/pids.max")),
                     current.empty() ? 0 : number_in(current),
                     "the control group's limit " + folder.path + "/pids.max");
        });
    }
    return least;
}

Error check_free_tasks(std::uint64_t tasks, const std::string& root) {
    const TaskLimit limit = tightest_task_limit(root);
    return tasks <= limit.room ? Error{} : fail(exit_failure, "%s", limit.text.c_str());
}

std::vector<SharedLimit> shared_limits(bool together, const std::string& root) {
    std::vector<SharedLimit> limits;
    const auto add = [&](std::uint64_t count, const char* what, const char* remedy) {
        if (count < no_limit) {
            limits.push_back({count, what, remedy});
        }
    };
    const auto add_own = [&](__rlimit_resource_t resource, const char* what, const char* remedy) {
        rlimit limit{};
        if (getrlimit(resource, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
            add(limit.rlim_max, what, remedy);
        }
    };
    const std::string folder = root + "/proc/sys/";
    add(number_in(read_small(folder + "fs/inotify/max_user_instances")), "inotify instances",
        "sysctl fs.inotify.max_user_instances");
    add_own(RLIMIT_SIGPENDING, "timers and pending signals", "ulimit -Hi");
    if (together) {
        add_own(RLIMIT_NOFILE, "open files", "ulimit -Hn");
        add(number_in(read_small(folder + "vm/max_map_count")), "mappings",
            "sysctl vm.max_map_count");
    }
    std::sort(limits.begin(), limits.end(),
              [](const SharedLimit& a, const SharedLimit& b) { return a.count < b.count; });
    return limits;
}

std::string describe_limits(std::vector<SharedLimit> limits, std::uint32_t ranks) {
    std::string text = "all ranks together can have ";
    for (const SharedLimit& limit : limits) {
        text += (&limit == limits.data() ? "" : ", ") + std::to_string(limit.count) + " " +
                limit.what + " (" + limit.remedy + (limit.count < ranks ? "; not one each" : "") +
                ")";
    }
    return limits.empty() ? "" : text;
}

std::uint64_t ranks_within(std::uint64_t descriptors) {
    constexpr std::uint64_t others = other_descriptors + descriptors_per_program;
    return (descriptors - std::min(descriptors, others)) / descriptors_per_rank;
}

std::uint64_t descriptors_for(std::uint64_t ranks, bool together, std::uint64_t programs) {
    // Both ends of two pipes, instead of one and that of a lifeline.
    return (descriptors_per_rank + (together ? 1 : 0)) * ranks +
           descriptors_per_program * programs + other_descriptors;
}

std::uint32_t fibres_per_stream(std::uint32_t ranks) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        descriptors_for(ranks, true, 1) <= limit.rlim_max) {
        return 1;
    }
    const std::uint64_t most = std::max<std::uint64_t>(limit.rlim_max / 2, other_descriptors + 4);
    const std::uint64_t streams = (most - other_descriptors) / (descriptors_per_rank + 1);
    return static_cast<std::uint32_t>((ranks + streams - 1) / streams);
}

Error raise_descriptor_limit(std::uint64_t needed, rlimit& former, bool& raised) {
    raised = false;
    if (getrlimit(RLIMIT_NOFILE, &former) != 0 || former.rlim_cur >= needed) {
        return {};
    }
    if (former.rlim_max < needed) {
        return fail(exit_failure,
                    "%llu file descriptors are needed, but the hard limit is %llu (ulimit -Hn)",
                    static_cast<unsigned long long>(needed),
                    static_cast<unsigned long long>(former.rlim_max));
    }
    rlimit higher = former;
    higher.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &higher) != 0) {
        return fail(exit_failure, "raising the limit of file descriptors to %llu: %s",
                    static_cast<unsigned long long>(needed), std::strerror(errno));
    }
    raised = true;
    return {};
}

} // namespace warren::launch
