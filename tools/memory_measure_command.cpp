// `warren mem measure` measures all pairs of initiator and memory within a time limit and keeps the
// values.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <sched.h>
#include <unistd.h>

#include "memory_command.hpp"
#include "memory_measure.hpp"
#include "memory_table.hpp"
#include "memory_values.hpp"
#include "warren/memory.h"
#include "warren/topology.h"
#include "warren/version.h"

namespace warren::tools {

namespace {

using Clock = std::chrono::steady_clock;
using Topology = std::unique_ptr<warren_topology, void (*)(warren_topology*)>;
using Memory = std::unique_ptr<warren_memory, void (*)(warren_memory*)>;

constexpr double mebibyte = 1024.0 * 1024.0;
// Smaller buffers give no useful figures.
constexpr std::size_t least_buffer = std::size_t{4} << 20;
constexpr std::size_t usual_buffer = std::size_t{64} << 20;
constexpr std::size_t most_buffer = std::size_t{4} << 30;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool has_bit(const topology::Bits& bits, unsigned bit) {
    return bit / 64 < bits.size() && (bits[bit / 64] >> (bit % 64) & 1) != 0;
}

bool may_run_on(unsigned cpu) {
    static const topology::Bits allowed = [] {
        topology::Bits bits(8192 / 64);
        if (sched_getaffinity(0, bits.size() * 8, reinterpret_cast<cpu_set_t*>(bits.data())) != 0) {
            bits.assign(bits.size(), ~std::uint64_t{0});
        }
        return bits;
    }();
    return has_bit(allowed, cpu);
}

// A processor of each core in the set that this process may use.
std::vector<unsigned> cores_of(const warren_topology* topology, warren_set cpus) {
    std::vector<unsigned> cores;
    std::vector<warren_object> seen;
    for (std::uint32_t cpu = warren_set_next(cpus, 0); cpu != WARREN_NO_INDEX;
         cpu = warren_set_next(cpus, cpu + 1)) {
        const warren_object unit = warren_topology_by_os_index(topology, WARREN_OBJECT_PU, cpu);
        const warren_object core = warren_object_ancestor(topology, unit, WARREN_OBJECT_CORE);
        const bool known =
            core != WARREN_NO_OBJECT && std::find(seen.begin(), seen.end(), core) != seen.end();
        if (!known && may_run_on(cpu)) {
            cores.push_back(cpu);
            seen.push_back(core);
        }
    }
    return cores;
}

// Bytes of the largest caches between processors and a memory: those of the set's processors and
// the memory's own.
std::uint64_t caches_between(const warren_topology* topology, warren_set cpus, unsigned node) {
    std::uint64_t bytes = 0;
    for (const int type : {WARREN_OBJECT_L5_CACHE, WARREN_OBJECT_L4_CACHE, WARREN_OBJECT_L3_CACHE,
                           WARREN_OBJECT_L2_CACHE}) {
        for (warren_object cache = warren_topology_next(topology, type, WARREN_NO_OBJECT);
             cache != WARREN_NO_OBJECT; cache = warren_topology_next(topology, type, cache)) {
            warren_cache details{};
            if (warren_set_intersects(warren_object_cpus(topology, cache), cpus) != 0 &&
                warren_object_cache(topology, cache, &details) == WARREN_TOPOLOGY_SUCCESS) {
                bytes += details.bytes;
            }
        }
        if (bytes != 0) {
            break; // the lowest level is the largest
        }
    }
    warren_object above = warren_object_parent(
        topology, warren_topology_by_os_index(topology, WARREN_OBJECT_NUMA_NODE, node));
    for (; warren_object_type(topology, above) == WARREN_OBJECT_MEMORY_CACHE;
         above = warren_object_parent(topology, above)) {
        warren_cache details{};
        if (warren_object_cache(topology, above, &details) == WARREN_TOPOLOGY_SUCCESS) {
            bytes += details.bytes;
        }
    }
    return bytes;
}

// Four times the caches, so that they don't serve the buffer; at most a quarter of the available
// memory.
std::size_t buffer_for(const warren_topology* topology, warren_memory* memory, warren_set cpus,
                       unsigned node) {
    std::uint64_t available = 0;
    if (warren_mem_get_value(memory, WARREN_MEM_AVAILABLE, nullptr, node, &available, nullptr) !=
        WARREN_MEM_SUCCESS) {
        available = std::uint64_t{4} * usual_buffer;
    }
    const std::uint64_t wanted =
        std::max<std::uint64_t>(usual_buffer, 4 * caches_between(topology, cpus, node));
    const std::uint64_t most = std::min<std::uint64_t>(most_buffer, available / 4);
    return std::max<std::uint64_t>(least_buffer, std::min(wanted, most));
}

struct Job {
    std::uint32_t row = 0;
    std::string from;
    topology::Bits cpus;
    Pair pair;
};

class Progress {
  public:
    Progress(std::size_t figures, double seconds)
        : figures_(figures), seconds_(seconds), shown_(isatty(STDERR_FILENO) != 0) {}

    // False: the time is over.
    bool step(const std::string& what) {
        ++done_;
        show(what);
        return !over();
    }
    bool over() const { return seconds_since(begin_) > seconds_; }
    double left_per_figure() const {
        const std::size_t left = figures_ > done_ ? figures_ - done_ : 1;
        return std::max(0.0, seconds_ - seconds_since(begin_)) / static_cast<double>(left);
    }
    void show(const std::string& what) const {
        if (shown_) {
            const std::size_t length =
                30 * std::min(done_, figures_) / std::max<std::size_t>(figures_, 1);
            std::fprintf(stderr, "\r[%-30s] %3zu %%  %-40s", std::string(length, '#').c_str(),
                         100 * std::min(done_, figures_) / std::max<std::size_t>(figures_, 1),
                         what.c_str());
            std::fflush(stderr);
        }
    }
    void end() const {
        if (shown_) {
            std::fprintf(stderr, "\r%80s\r", "");
        }
    }

  private:
    Clock::time_point begin_ = Clock::now();
    std::size_t figures_;
    std::size_t done_ = 0;
    double seconds_;
    bool shown_;
};

std::string describe(const Figure& figure) {
    char text[160];
    std::snprintf(text, sizeof text, "%s: median %.1f %s, %.1f to %.1f in %u repetitions",
                  name_of(figure.quantity), figure.median,
                  is_latency(figure.quantity) ? "ns" : "MiB/s", figure.least, figure.most,
                  figure.repetitions);
    std::string made = text;
    if (!is_latency(figure.quantity)) {
        made += ", " + std::to_string(figure.threads) + (figure.threads == 1 ? " core" : " cores");
    }
    if ((figure.quantity == Quantity::latency_huge || figure.quantity == Quantity::latency_write) &&
        !figure.huge_pages) {
        made += " (there were no huge pages)";
    }
    return made;
}

void keep(const Job& job, const std::vector<Figure>& figures, topology::ValuesFile& file) {
    const auto add = [&](std::uint32_t attribute, double value, double most) {
        // Replaces an earlier measurement of the pair.
        std::erase_if(file.values, [&](const topology::MeasuredValue& other) {
            return other.attribute == attribute && other.node == job.pair.node &&
                   other.from == job.cpus;
        });
        const double kept = std::clamp(std::round(value), 1.0, most);
        file.values.push_back(
            {attribute, job.cpus, job.pair.node, static_cast<std::uint64_t>(kept)});
    };
    constexpr auto bandwidth_limit = static_cast<double>(topology::max_bandwidth);
    constexpr auto latency_limit = static_cast<double>(topology::max_latency_ns);
    for (const Figure& figure : figures) {
        file.remarks.push_back("from " + job.from + " to " + std::to_string(job.pair.node) + ": " +
                               describe(figure));
        switch (figure.quantity) {
        case Quantity::latency_huge: // what the memory takes, without what the TLB does
            add(WARREN_ATTRIBUTE_LATENCY, figure.median, latency_limit);
            add(WARREN_ATTRIBUTE_READ_LATENCY, figure.median, latency_limit);
            break;
        case Quantity::latency_write:
            add(WARREN_ATTRIBUTE_WRITE_LATENCY, figure.median, latency_limit);
            break;
        case Quantity::read:
            add(WARREN_ATTRIBUTE_READ_BANDWIDTH, figure.median, bandwidth_limit);
            break;
        case Quantity::write:
            add(WARREN_ATTRIBUTE_WRITE_BANDWIDTH, figure.median, bandwidth_limit);
            break;
        case Quantity::triad: // reads and writes, as programs do
            add(WARREN_ATTRIBUTE_BANDWIDTH, figure.median, bandwidth_limit);
            break;
        default:
            break;
        }
    }
}

// The numbers that --from or --to lists; all if it isn't given.
bool listed(const Options& options, const std::string& name, topology::Bits& bits) {
    if (!options.has(name)) {
        bits.assign(8192 / 64, ~std::uint64_t{0});
        return true;
    }
    const std::string text = options.get(name, "");
    if (topology::read_list(text, bits) && !bits.empty()) {
        return true;
    }
    std::fprintf(stderr, "warren mem: %s %s: a list of numbers such as 0-3,8\n", name.c_str(),
                 text.c_str());
    return false;
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
    return text;
}

// What the user asks for.
struct Asked {
    double seconds = 60;
    double repetitions = 5;
    double mebibytes = 0; // 0: by the caches
    topology::Bits from;
    topology::Bits to;
};

// The pairs of processors and memory that are to be measured.
std::vector<Job> jobs_of(const Asked& asked, const warren_topology* topology, warren_memory* memory,
                         const topology::MachineIdentity& machine) {
    std::vector<Job> jobs;
    for (std::uint32_t row = 0; row < warren_topology_initiators(topology); ++row) {
        warren_set cpus{};
        warren_object device = WARREN_NO_OBJECT;
        warren_topology_initiator(topology, row, &cpus, &device);
        bool wanted = false;
        topology::Bits bits;
        for (std::uint32_t cpu = warren_set_next(cpus, 0); cpu != WARREN_NO_INDEX;
             cpu = warren_set_next(cpus, cpu + 1)) {
            bits.resize(std::max<std::size_t>(bits.size(), cpu / 64 + 1));
            bits[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
            wanted = wanted || has_bit(asked.from, cpu);
        }
        if (device != WARREN_NO_OBJECT || !wanted) {
            continue;
        }
        const std::vector<unsigned> cores = cores_of(topology, cpus);
        if (cores.empty()) {
            std::printf("from %s: none of these processors may be used; not measured\n",
                        list_of(cpus).c_str());
            continue;
        }
        for (const topology::MachineMemory& target : machine.memories) {
            if (has_bit(asked.to, target.node)) {
                const std::size_t bytes = asked.mebibytes != 0
                                              ? static_cast<std::size_t>(asked.mebibytes * mebibyte)
                                              : buffer_for(topology, memory, cpus, target.node);
                jobs.push_back({row, list_of(cpus), bits, {cores, target.node, bytes}});
            }
        }
    }
    return jobs;
}

// Measures until the time is over; the number of pairs that were measured.
std::size_t measure_all(const std::vector<Job>& jobs, unsigned repetitions, Progress& progress,
                        topology::ValuesFile& file) {
    std::size_t measured = 0;
    for (const Job& job : jobs) {
        if (progress.over()) {
            break;
        }
        const std::string name = "from " + job.from + " to " + std::to_string(job.pair.node);
        progress.show(name);
        std::vector<Figure> figures;
        const Effort effort{progress.left_per_figure() * 0.7, repetitions};
        Error error = measure(
            job.pair, effort, [&] { return progress.step(name); }, figures);
        progress.end();
        if (error) {
            const std::unique_ptr<ErrorRecord> record(error.take());
            std::printf("%s: not measured: %s\n", name.c_str(), record->text.c_str());
            continue;
        }
        std::printf("%s (%zu MiB)\n", name.c_str(), job.pair.bytes >> 20);
        for (const Figure& figure : figures) {
            std::printf("    %s\n", describe(figure).c_str());
        }
        std::fflush(stdout);
        keep(job, figures, file);
        ++measured;
    }
    progress.end();
    return measured;
}

} // namespace

int measure_command(const std::vector<std::string>& arguments) {
    Options options({"--seconds", "--repetitions", "--size", "--from", "--to", "--output"}, {});
    std::vector<std::string> rest;
    Asked asked;
    if (!options.read(arguments, rest) || !rest.empty() ||
        !options.number("--seconds", 0.1, 86400, asked.seconds) ||
        !options.number("--repetitions", 1, 1000, asked.repetitions) ||
        !options.number("--size", 4, 1 << 20, asked.mebibytes) ||
        !listed(options, "--from", asked.from) || !listed(options, "--to", asked.to)) {
        std::fputs(memory_usage, stderr);
        return 2;
    }
    warren_topology* opened = nullptr;
    warren_topology_report report{};
    if (warren_topology_open("native", &opened, &report) != WARREN_TOPOLOGY_SUCCESS) {
        std::fprintf(stderr, "warren mem: %s\n", report.problem);
        return 1;
    }
    const Topology topology(opened, warren_topology_close);
    warren_memory* view = nullptr;
    warren_mem_open(topology.get(), &view);
    const Memory memory(view, warren_mem_close);

    topology::ValuesFile file;
    file.machine = topology::identity_of(topology.get());
    const std::string path = options.get("--output", topology::place_of_values(file.machine));
    if (path.empty()) {
        std::fputs("warren mem: there is no home folder to keep the values in: say --output FILE\n",
                   stderr);
        return 2;
    }
    if (!continue_values(path, file)) {
        return 1;
    }

    const std::vector<Job> jobs = jobs_of(asked, topology.get(), memory.get(), file.machine);
    if (jobs.empty()) {
        std::fputs("warren mem: there is nothing to measure\n", stderr);
        return 1;
    }

    file.remarks.assign(1, std::string("measured by warren ") + warren_version() + ", " + today());
    Progress progress(jobs.size() * std::size(quantities), asked.seconds);
    const std::size_t measured =
        measure_all(jobs, static_cast<unsigned>(asked.repetitions), progress, file);
    if (measured == 0) {
        std::fputs("warren mem: nothing could be measured\n", stderr);
        return 1;
    }
    if (!write_values(path, file)) {
        return 1;
    }
    std::printf("%zu of %zu pairs measured%s; kept in %s\n", measured, jobs.size(),
                measured < jobs.size() && progress.over() ? " (the time is over: --seconds)" : "",
                path.c_str());
    return 0;
}

} // namespace warren::tools
