#include "jobs.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <set>
#include <unistd.h>

#include "base/error.hpp"

namespace warren::tools {

namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

// The node segment that a process has open, as a descriptor of this one; -1: none.
int segment_of(const std::string& pid) {
    const std::string folder = "/proc/" + pid + "/fd";
    const Folder descriptors(opendir(folder.c_str()), closedir);
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

// The running mpiexec processes whose jobs this user may look into.
std::vector<std::string> jobs() {
    std::vector<std::string> found;
    const Folder processes(opendir("/proc"), closedir);
    while (const dirent* entry = processes ? readdir(processes.get()) : nullptr) {
        const std::string pid = entry->d_name;
        if (std::atoi(pid.c_str()) > 0 && first_line("/proc/" + pid + "/comm") == "mpiexec") {
            const int segment = segment_of(pid);
            if (segment >= 0) {
                close(segment);
                found.push_back(pid);
            }
        }
    }
    return found;
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

bool attach_job(std::string pid, const char* command, node::Segment& segment) {
    if (pid.empty()) {
        const std::vector<std::string> found = jobs();
        if (found.size() != 1) {
            std::fprintf(stderr, found.empty() ? "warren: no job of yours runs here\n"
                                               : "warren: several jobs run here; which mpiexec?\n");
            for (const std::string& one : found) {
                std::fprintf(stderr, "  warren %s %s\n", command, one.c_str());
            }
            return false;
        }
        pid = found[0];
    }
    const int descriptor = segment_of(pid);
    if (descriptor < 0) {
        std::fprintf(stderr,
                     "warren: process %s is no mpiexec or rank of a job that you may look into\n",
                     pid.c_str());
        return false;
    }
    if (Error error = node::Segment::attach(descriptor, segment)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        std::fprintf(stderr, "warren: %s\n", record->text.c_str());
        return false;
    }
    return true;
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
        const Folder tasks(opendir(folder.c_str()), closedir);
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

} // namespace warren::tools
