#include "ranks_command.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <sys/ioctl.h>
#include <unistd.h>

#include "commands.hpp"
#include "jobs.hpp"
#include "launch/mpiexec/load_report.hpp"
#include "launch/mpiexec/profile_report.hpp"
#include "launch/mpiexec/running_jobs.hpp"
#include "mpi/rank/profile_record.hpp"
#include "runtime/balance/load_table.hpp"

namespace warren::tools {

namespace {

using launch::LoadSample;

struct Request {
    std::string pid;
    bool once = false;
    bool json = false;
    bool profile = false;
    double interval_s = 1;
};

bool read_request(const std::vector<std::string>& words, Request& request) {
    for (std::size_t index = 0; index < words.size(); ++index) {
        const std::string& word = words[index];
        if (word == "--once") {
            request.once = true;
        } else if (word == "--json") {
            request.json = true;
        } else if (word == "--profile") {
            request.profile = true;
        } else if (word == "--interval" && index + 1 < words.size()) {
            char* end = nullptr;
            request.interval_s = std::strtod(words[++index].c_str(), &end);
            if (*end != '\0' || !(request.interval_s >= 0.1 && request.interval_s <= 3600)) {
                std::fprintf(stderr, "warren ranks: --interval needs 0.1 to 3600 seconds\n");
                return false;
            }
        } else if (!word.empty() && word[0] != '-' && request.pid.empty()) {
            request.pid = word;
        } else {
            std::fputs(usage("ranks").c_str(), stderr);
            return false;
        }
    }
    if (request.profile && request.json) {
        std::fprintf(stderr, "warren ranks: --profile prints a table; it has no --json\n");
        return false;
    }
    return true;
}

LoadSample take_sample(const node::Segment& segment) {
    std::vector<pid_t> tasks;
    if (balance::LoadTable::at(segment.at(balance::loads))
            .job->begin_ns.load(std::memory_order_relaxed) == 0) {
        tasks = launch::tasks_of_ranks(segment);
    }
    return launch::sample_loads(segment, tasks);
}

std::string heading(const char* kind, const node::Segment& segment, const LoadSample& sample) {
    std::string text = std::string(kind) + " of mpiexec " +
                       std::to_string(segment.header().launcher_pid) + ", " +
                       std::to_string(segment.ranks()) + " ranks";
    if (sample.fibres) {
        char more[160];
        std::snprintf(more, sizeof more,
                      " on %zu workers, %.1f s; imbalance of ranks %.1f %%, of workers %.1f %%",
                      sample.workers.size(), sample.time_s, 100 * sample.rank_imbalance(),
                      100 * sample.worker_imbalance());
        text += more;
    }
    return text + "\n";
}

// A zombie counts as ended.
bool runs(pid_t process) {
    const std::string stat = launch::first_line("/proc/" + std::to_string(process) + "/stat");
    const std::size_t name_end = stat.rfind(") ");
    return name_end != std::string::npos && stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

// Shows text(columns of the window) again and again, until the job has ended.
template <typename Text>
void show_live(pid_t launcher, double interval_s, Text make_text) {
    bool first = true;
    while (first || runs(launcher)) {
        winsize window{};
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
        std::string text = make_text(window.ws_col);
        // Prints the lines that fit in the window.
        std::size_t end = 0;
        for (unsigned line = 1; window.ws_row > 2 && line < window.ws_row - 1U && end < text.size();
             ++line) {
            end = text.find('\n', end) + 1;
        }
        if (end != 0 && end < text.size()) {
            text = text.substr(0, end) + "(more: --once shows all)\n";
        }
        std::printf("\033[H\033[J%s", text.c_str());
        std::fflush(stdout);
        first = false;
        const auto whole = static_cast<time_t>(interval_s);
        const timespec pause = {
            .tv_sec = whole,
            .tv_nsec = static_cast<long>((interval_s - static_cast<double>(whole)) * 1e9)};
        nanosleep(&pause, nullptr);
    }
}

// A job and the worlds that it has spawned, the job first.
using Worlds = std::vector<node::Segment>;

const char* kind_of(const node::Segment& world, const Worlds& worlds) {
    return &world == worlds.data() ? "job" : "spawned world";
}

void show_loads(Worlds worlds, double interval_s) {
    const auto launcher = static_cast<pid_t>(worlds[0].header().launcher_pid);
    const std::string job = std::to_string(launcher);
    std::map<std::uint32_t, LoadSample> before; // by mpiexec
    bool first = true;
    show_live(launcher, interval_s, [&](unsigned columns) {
        if (!first) {
            attach_worlds(job, "ranks", worlds);
        }
        first = false;
        std::string text;
        std::map<std::uint32_t, LoadSample> samples;
        for (const node::Segment& world : worlds) {
            const std::uint32_t number = world.header().launcher_pid;
            LoadSample& now = samples[number] = take_sample(world);
            std::string line = heading(kind_of(world, worlds), world, now);
            if (columns != 0 && line.size() > columns + std::size_t{1}) {
                line = line.substr(0, columns) + "\n";
            }
            const auto found = before.find(number);
            text +=
                line + load_table(now, found == before.end() ? nullptr : &found->second, columns);
        }
        before = std::move(samples);
        return text;
    });
}

std::string loads_once(const Worlds& worlds) {
    std::string text;
    for (const node::Segment& world : worlds) {
        const LoadSample sample = take_sample(world);
        text += heading(kind_of(world, worlds), world, sample) + load_table(sample, nullptr, 0);
    }
    return text;
}

std::string loads_as_json(const Worlds& worlds) {
    std::vector<std::string> spawned;
    for (std::size_t number = 1; number < worlds.size(); ++number) {
        spawned.push_back(launch::load_json(worlds[number], take_sample(worlds[number]), {}));
    }
    return launch::load_json(worlds[0], take_sample(worlds[0]), spawned) + "\n";
}

int show_profile(const node::Segment& segment, const Request& request) {
    if (segment.units(profile::records) == 0) {
        std::fprintf(stderr,
                     "warren ranks: job %u has no profile: it was started without mpiexec "
                     "--profile\n",
                     segment.header().launcher_pid);
        return 1;
    }
    const auto table = [&](unsigned) {
        return launch::profile_table(launch::read_profile(segment));
    };
    if (!request.once && isatty(STDOUT_FILENO) == 1) {
        show_live(static_cast<pid_t>(segment.header().launcher_pid), request.interval_s, table);
    } else {
        std::fputs(table(0).c_str(), stdout);
    }
    return 0;
}

} // namespace

int ranks_command(const std::vector<std::string>& words) {
    Request request;
    if (!read_request(words, request)) {
        return 2;
    }
    Worlds worlds;
    if (!attach_worlds(request.pid, "ranks", worlds)) {
        return 1;
    }
    if (request.profile) {
        return show_profile(worlds[0], request);
    }
    if (!request.json && !request.once && isatty(STDOUT_FILENO) == 1) {
        show_loads(std::move(worlds), request.interval_s);
        return 0;
    }
    std::fputs((request.json ? loads_as_json(worlds) : loads_once(worlds)).c_str(), stdout);
    return 0;
}

} // namespace warren::tools
