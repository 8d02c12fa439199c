#include "launch/mpiexec/running_jobs.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <set>
#include <unistd.h>

namespace warren::launch {

namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

Folder open_folder(const std::string& path) {
    return {opendir(path.c_str()), closedir};
}

// 0: it has ended.
pid_t parent_of(pid_t process) {
    const std::string stat = first_line("/proc/" + std::to_string(process) + "/stat");
    const std::size_t name_end = stat.rfind(") ");
    char state = 0;
    int parent = 0;
    return name_end != std::string::npos &&
                   std::sscanf(stat.c_str() + name_end + 2, "%c %d", &state, &parent) == 2
               ? parent
               : 0;
}

} // namespace

std::string first_line(const std::string& path) {
    std::string line;
    if (std::FILE* file = std::fopen(path.c_str(), "r")) {
        char text[256];
        if (std::fgets(text, sizeof(text), file) != nullptr) {
            line = text;
            line.erase(line.find_last_not_of(" \n") + 1);
        }
        std::fclose(file);
    }
    return line;
}

int open_segment_of(pid_t process) {
    const std::string folder = "/proc/" + std::to_string(process) + "/fd";
    const Folder descriptors = open_folder(folder);
    while (const dirent* entry = descriptors ? readdir(descriptors.get()) : nullptr) {
        const std::string path = folder + "/" + entry->d_name;
        char target[64] = {};
        if (readlink(path.c_str(), target, sizeof target - 1) > 0 &&
            std::string(target).starts_with("/memfd:warren-node")) {
            return open(path.c_str(), O_RDWR | O_CLOEXEC);
        }
    }
    return -1;
}

std::vector<RunningJob> running_jobs() {
    std::vector<RunningJob> found;
    const Folder processes = open_folder("/proc");
    while (const dirent* entry = processes ? readdir(processes.get()) : nullptr) {
        const pid_t process = std::atoi(entry->d_name);
        if (process > 0 &&
            first_line(std::string("/proc/") + entry->d_name + "/comm") == mpiexec_name) {
            const int segment = open_segment_of(process);
            if (segment >= 0) {
                close(segment);
                found.push_back({process, parent_of(process)});
            }
        }
    }
    std::sort(found.begin(), found.end(), [](const RunningJob& one, const RunningJob& other) {
        return one.mpiexec < other.mpiexec;
    });
    // A parent that is none of them is a shell, or whatever has started the job.
    for (RunningJob& job : found) {
        const auto is_spawner = [&](const RunningJob& other) {
            return other.mpiexec == job.spawner;
        };
        if (std::none_of(found.begin(), found.end(), is_spawner)) {
            job.spawner = 0;
        }
    }
    return found;
}

std::vector<pid_t> with_spawned(const std::vector<RunningJob>& jobs, pid_t mpiexec) {
    std::vector<pid_t> worlds;
    for (const RunningJob& job : jobs) {
        if (job.mpiexec == mpiexec) {
            worlds.push_back(mpiexec);
        } else if (job.spawner == mpiexec) {
            const std::vector<pid_t> its = with_spawned(jobs, job.mpiexec);
            worlds.insert(worlds.end(), its.begin(), its.end());
        }
    }
    // (Numbers begin again at 1 after the last: a spawned one may be lower.)
    const auto own = std::find(worlds.begin(), worlds.end(), mpiexec);
    std::rotate(worlds.begin(), own, own == worlds.end() ? own : own + 1);
    return worlds;
}

std::vector<pid_t> tasks_of_ranks(const node::Segment& segment) {
    std::vector<pid_t> found;
    std::set<pid_t> processes;
    for (std::uint32_t rank = 0; rank < segment.ranks(); ++rank) {
        const pid_t process = segment.slot(rank).pid.load(std::memory_order_relaxed);
        found.push_back(std::max(process, 0));
        processes.insert(found.back());
    }
    processes.erase(0);
    std::map<std::uint32_t, pid_t> threads; // by rank
    for (const pid_t process : processes) {
        const std::string folder = "/proc/" + std::to_string(process) + "/task";
        const Folder tasks = open_folder(folder);
        while (const dirent* entry = tasks ? readdir(tasks.get()) : nullptr) {
            const pid_t task = std::atoi(entry->d_name);
            unsigned rank = 0;
            int end = 0;
            const std::string name =
                task > 0 ? first_line(folder + "/" + entry->d_name + "/comm") : std::string();
            if (std::sscanf(name.c_str(), "rank %u%n", &rank, &end) != 1 ||
                static_cast<std::size_t>(end) != name.size() || rank >= found.size() ||
                segment.slot(rank).pid.load(std::memory_order_relaxed) != process) {
                continue;
            }
            // Threads that a rank makes inherit its name, so the first one is the rank.
            pid_t& first = threads.try_emplace(rank, task).first->second;
            first = std::min(first, task);
        }
    }
    for (const auto& [rank, task] : threads) {
        found[rank] = task;
    }
    return found;
}

} // namespace warren::launch
