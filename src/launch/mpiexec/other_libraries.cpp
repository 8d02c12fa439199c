#include "launch/mpiexec/other_libraries.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "launch/mpiexec/foreign_abi.hpp"
#include "launch/mpiexec/own_place.hpp"

namespace warren::launch {

namespace {

constexpr std::uint64_t first_pause_ns = 100'000'000;
constexpr std::uint64_t longest_pause_ns = 10'000'000'000;
constexpr std::uint32_t most_ranks = 2;               // of a program
constexpr std::size_t most_processes = 16;            // of a rank
constexpr std::uintmax_t largest_library = 256 << 20; // who maps more has another file there now
constexpr const char* mark = "warren_entry_points";   // Warren's libraries have this name

// Another launcher, whose processes are no ranks of this one.
bool is_launcher(const std::string& process) {
    std::string name;
    std::ifstream(process + "/comm") >> name;
    constexpr const char* launchers[] = {"mpirun", "mpiexec", "orte", "prte", "hydra", "srun"};
    return std::any_of(std::begin(launchers), std::end(launchers),
                       [&](const char* one) { return name.starts_with(one); });
}

std::vector<pid_t> with_descendants(pid_t pid) {
    std::vector<pid_t> all = {pid};
    for (std::size_t next = 0; next < all.size() && all.size() < most_processes; ++next) {
        const std::string number = std::to_string(all[next]);
        const std::string process = "/proc/" + number;
        if (is_launcher(process)) {
            continue;
        }
        std::ifstream children(
            std::string(process).append("/task/").append(number).append("/children"));
        all.insert(all.end(), std::istream_iterator<pid_t>(children), {});
    }
    return all;
}

bool holds_mark(const std::string& file) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error) ||
        std::filesystem::file_size(file, error) > largest_library) {
        return false;
    }
    std::ifstream stream(file, std::ios::binary);
    const std::string content(std::istreambuf_iterator<char>(stream), {});
    return content.find(mark) != std::string::npos;
}

// The path of a line of /proc/PID/maps; empty: it has none.
std::string_view path_in(std::string_view line) {
    const std::size_t begin = line.find('/');
    return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

std::string library_in_maps(pid_t pid, const std::string& own_libraries) {
    const std::string process = "/proc/" + std::to_string(pid);
    const std::string root = process + "/root";
    std::ifstream maps(process + "/maps");
    std::string last;
    for (std::string line; std::getline(maps, line);) {
        std::string path(path_in(line));
        if (path == last) {
            continue;
        }
        last = path;
        const bool is_replaced = is_replaced_library(path.substr(path.rfind('/') + 1));
        // (A container may have Warren's at another place.)
        if (is_replaced && !path.starts_with(own_libraries) && !holds_mark(root + path)) {
            return path;
        }
    }
    return "";
}

// The folder of Warren's libraries is the shortest path that leads there.
std::string sentence(const std::string& name, const std::string& library) {
    const std::string bin = std::filesystem::canonical(own_folder()).string();
    const std::string prefix = std::filesystem::path(bin).parent_path().string();
    std::string own = own_library_for(library, bin);
    for (std::size_t at = own.find(bin + "/.."); at != std::string::npos;
         at = own.find(bin + "/..", at)) {
        own.replace(at, bin.size() + 3, prefix);
    }
    return "'" + name + "' has loaded another MPI library, " + library +
           ": each of its ranks is alone there. What starts it sets LD_LIBRARY_PATH, has a run "
           "path "
           "or opens another name; -x LD_PRELOAD=" +
           own + " puts Warren's first";
}

} // namespace

std::string other_library_of(pid_t pid, const std::string& own_folder) {
    std::error_code error;
    const std::string own_libraries =
        std::filesystem::weakly_canonical(own_folder + library_folder, error).string();
    for (const pid_t one : with_descendants(pid)) {
        if (std::string found = library_in_maps(one, own_libraries + "/"); !found.empty()) {
            return found;
        }
    }
    return "";
}

void OtherLibraries::begin(std::uint64_t now_ns) {
    pause_ns_ = first_pause_ns;
    look_ns_ = now_ns + pause_ns_;
}

void OtherLibraries::look(JobState& job, const JobPlan& plan, std::uint64_t now_ns) {
    pause_ns_ *= 3;
    look_ns_ = 0;
    std::vector<std::uint32_t> looked(plan.programs.size());
    for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
        const std::uint32_t program = job.ranks[rank].program;
        const JobProcess& process = job.processes[job.ranks[rank].process];
        if (process.pid <= 0 || process.ended || ++looked[program] > most_ranks ||
            job.segment.slot(rank).state.load(std::memory_order_relaxed) !=
                node::RankStage::not_started) {
            continue;
        }
        if (const std::string found = other_library_of(process.pid, own_folder()); !found.empty()) {
            look_ns_ = 0;
            job.has_other_library = true;
            job.report.say(sentence(plan.programs[program].name(), found));
            return;
        }
        look_ns_ = pause_ns_ <= longest_pause_ns ? now_ns + pause_ns_ : 0;
    }
}

} // namespace warren::launch
