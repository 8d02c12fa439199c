#include "launch/mpiexec/load_report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <unistd.h>

#include "base/futex.hpp"
#include "launch/mpiexec/state_report.hpp"
#include "runtime/balance/load_table.hpp"
#include "runtime/balance/matrix.hpp"

namespace warren::launch {

namespace {

constexpr auto any_order = std::memory_order_relaxed;

template <typename... Values>
std::string format(const char* form, Values... values) {
    char text[256];
    std::snprintf(text, sizeof text, form, values...);
    return text;
}

const char* name_of(balance::RunState state) {
    switch (state) {
    case balance::RunState::ready:
        return "ready";
    case balance::RunState::runs:
        return "runs";
    case balance::RunState::waits:
        return "waits";
    case balance::RunState::sleeps:
        return "sleeps";
    case balance::RunState::ended:
        return "ended";
    case balance::RunState::unknown:
        break;
    }
    return "starts";
}

const char* name_of(char system_state) {
    switch (system_state) {
    case 'R':
        return "runs";
    case 'S':
    case 'D':
        return "sleeps";
    case 'T':
    case 't':
        return "stopped";
    case 'Z':
        return "ended";
    default:
        return "unknown";
    }
}

void read_task(pid_t task, RankSample& sample) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", static_cast<int>(task),
                  static_cast<int>(task));
    const int file = task > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[1024] = {};
    const ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    close(file);
    const char* after_name = got > 0 ? std::strrchr(text, ')') : nullptr;
    if (after_name == nullptr) {
        sample.state = "gone";
        return;
    }
    char state = 0;
    unsigned long user = 0;
    unsigned long system = 0;
    int core = -1;
    // proc(5): the fields 3, 14, 15 and 39.
    std::sscanf(after_name + 1,
                " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu %*s %*s %*s %*s %*s %*s %*s "
                "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
                &state, &user, &system, &core);
    sample.state = name_of(state);
    sample.core = core;
    sample.ran_s = static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string call_of(const node::RankSlot& slot) {
    if (slot.activity.since_ns.load(any_order) == 0 ||
        slot.state.load(any_order) != node::RankStage::initialised) {
        return {};
    }
    std::string text = launch::describe(slot);
    constexpr const char* begin = "waits in ";
    text.erase(0, text.starts_with(begin) ? std::strlen(begin) : 0);
    return text.substr(0, text.find(';'));
}

void read_fibre(const balance::LoadTable& loads, std::uint32_t rank, RankSample& sample) {
    const balance::RankLoad& load = loads.ranks[rank];
    const std::uint32_t worker = load.worker.load(any_order);
    sample.worker = worker;
    if (worker < balance::workers_kept) {
        sample.core = loads.workers[worker].processor.load(any_order);
    }
    sample.state = name_of(load.state.load(any_order));
    sample.ran_s = static_cast<double>(load.ran_ns.load(any_order)) * 1e-9;
    sample.moves = load.moves.load(any_order);
    sample.messages = load.other_messages.load(any_order);
    sample.bytes = load.other_bytes.load(any_order);
    for (const balance::PeerTraffic& traffic : load.peers) {
        sample.messages += traffic.messages.load(any_order);
        sample.bytes += traffic.bytes.load(any_order);
    }
}

std::vector<double> running_times(const LoadSample& sample) {
    std::vector<double> times;
    for (const RankSample& rank : sample.ranks) {
        times.push_back(rank.ran_s);
    }
    return times;
}

std::vector<double> busy_times(const LoadSample& sample) {
    std::vector<double> times;
    for (const WorkerSample& worker : sample.workers) {
        if (!worker.stands_in) {
            times.push_back(worker.busy_s);
        }
    }
    return times;
}

double sum_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

std::string quoted(const std::string& text) {
    std::string made = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            made += '\\';
        }
        made += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return made + "\"";
}

} // namespace

double LoadSample::rank_imbalance() const {
    return balance::imbalance(running_times(*this));
}

double LoadSample::worker_imbalance() const {
    return balance::imbalance(busy_times(*this));
}

LoadSample sample_loads(const node::Segment& segment, const std::vector<pid_t>& tasks) {
    LoadSample sample;
    const auto loads = balance::LoadTable::at(segment.at(balance::loads));
    const std::uint64_t begin_ns = loads.job->begin_ns.load(any_order);
    sample.fibres = begin_ns != 0;
    // (The first time both are being written.)
    const std::uint64_t written_ns = std::max(begin_ns, loads.job->written_ns.load(any_order));
    sample.time_s =
        static_cast<double>(sample.fibres ? written_ns - begin_ns : monotonic_ns()) * 1e-9;
    sample.ranks.resize(segment.ranks());
    for (std::uint32_t rank = 0; rank < segment.ranks(); ++rank) {
        RankSample& one = sample.ranks[rank];
        if (sample.fibres) {
            read_fibre(loads, rank, one);
        } else {
            read_task(rank < tasks.size() ? tasks[rank] : 0, one);
        }
        one.call = call_of(segment.slot(rank));
    }
    sample.balancings = loads.job->balancings.load(any_order);
    sample.first_imbalance = loads.job->first_imbalance.load(any_order);
    sample.pages_moved = loads.job->pages_moved.load(any_order);
    sample.pages_stayed = loads.job->pages_stayed.load(any_order);
    const double weight = loads.job->later_weight.load(any_order);
    sample.later_imbalance = weight > 0 ? loads.job->later_imbalance.load(any_order) / weight : 0;
    const std::uint32_t workers =
        sample.fibres ? std::min(loads.job->workers.load(any_order), balance::workers_kept) : 0;
    for (std::uint32_t number = 0; number < workers; ++number) {
        const balance::WorkerLoad& load = loads.workers[number];
        sample.workers.push_back(
            {.processor = load.processor.load(any_order),
             .busy_s = static_cast<double>(load.busy_ns.load(any_order)) * 1e-9,
             .switches = load.switches.load(any_order),
             .stands_in = load.stands_in.load(any_order) != 0});
    }
    return sample;
}

std::string load_table(const LoadSample& now, const LoadSample* before, std::size_t columns) {
    const auto cut = [columns](const std::string& line) {
        return line.substr(0, columns != 0 ? columns : line.size()) + "\n";
    };
    std::string text =
        cut("  rank  worker  core  state     load   ran s      sent       MB  moves  waits in");
    const double time_s = now.time_s - (before != nullptr ? before->time_s : 0);
    for (std::size_t rank = 0; rank < now.ranks.size(); ++rank) {
        const RankSample& one = now.ranks[rank];
        const double ran_s =
            std::max(0.0, one.ran_s - (before != nullptr ? before->ranks[rank].ran_s : 0));
        const bool share = time_s > 0 && (now.fibres || before != nullptr);
        const auto number = [](std::int64_t value) {
            return value >= 0 ? std::to_string(value) : std::string("-");
        };
        std::string line = format("%6zu %7s %5s  %-8s", rank, number(one.worker).c_str(),
                                  number(one.core).c_str(), one.state);
        line += share ? format("%5.1f%%", std::min(999.9, 100 * ran_s / time_s)) : "     -";
        line += format(" %7.2f", one.ran_s);
        line += now.fibres
                    ? format(" %9llu %8.1f %6u", static_cast<unsigned long long>(one.messages),
                             static_cast<double>(one.bytes) * 1e-6, one.moves)
                    : "         -        -      -";
        line += "  " + one.call;
        text += cut(line);
    }
    return text;
}

std::string load_json(const node::Segment& segment, const LoadSample& now,
                      const std::vector<std::string>& spawned) {
    std::string text =
        format("{\"mpiexec\": %u, \"fibres\": %s, \"time_s\": %.6f, ",
               segment.header().launcher_pid, now.fibres ? "true" : "false", now.time_s);
    text += format("\"rank_imbalance\": %.6f, \"worker_imbalance\": %.6f,\n \"workers\": [",
                   now.rank_imbalance(), now.worker_imbalance());
    for (std::size_t number = 0; number < now.workers.size(); ++number) {
        const WorkerSample& one = now.workers[number];
        text += number != 0 ? ",\n  " : "\n  ";
        text +=
            format("{\"worker\": %zu, \"core\": %d, \"busy_s\": %.6f, \"switches\": %llu, "
                   "\"stands_in\": %s}",
                   number, one.processor, one.busy_s, static_cast<unsigned long long>(one.switches),
                   one.stands_in ? "true" : "false");
    }
    text += "],\n \"ranks\": [";
    const auto loads = balance::LoadTable::at(segment.at(balance::loads));
    for (std::uint32_t rank = 0; rank < now.ranks.size(); ++rank) {
        const RankSample& one = now.ranks[rank];
        text += rank != 0 ? ",\n  " : "\n  ";
        text += format("{\"rank\": %u, \"worker\": %lld, \"core\": %lld, \"state\": \"%s\", "
                       "\"ran_s\": %.6f, \"moves\": %u, ",
                       rank, static_cast<long long>(one.worker), static_cast<long long>(one.core),
                       one.state, one.ran_s, one.moves);
        text += "\"waits_in\": " + (one.call.empty() ? "null" : quoted(one.call));
        if (now.fibres) {
            const balance::RankLoad& load = loads.ranks[rank];
            text += format(", \"messages\": %llu, \"bytes\": %llu, \"peers\": [",
                           static_cast<unsigned long long>(one.messages),
                           static_cast<unsigned long long>(one.bytes));
            const char* between = "";
            for (const balance::PeerTraffic& traffic : load.peers) {
                if (const std::uint32_t peer = traffic.peer.load(any_order)) {
                    text += between;
                    text +=
                        format("[%u, %llu, %llu]", peer - 1,
                               static_cast<unsigned long long>(traffic.messages.load(any_order)),
                               static_cast<unsigned long long>(traffic.bytes.load(any_order)));
                    between = ", ";
                }
            }
            text += "]";
        }
        text += "}";
    }
    text += "],\n \"spawned\": [";
    for (const std::string& world : spawned) {
        text += (&world != spawned.data() ? ",\n" : "\n") + world;
    }
    return text + "]}";
}

std::string load_summary(const LoadSample& now) {
    if (!now.fibres || now.time_s <= 0) {
        return {};
    }
    const std::vector<double> ran = running_times(now);
    const std::vector<double> busy = busy_times(now);
    std::string text =
        format("%zu ranks ran %.2f s on %zu workers in %.2f s, %.0f %% of their time\n", ran.size(),
               sum_of(ran), busy.size(), now.time_s,
               100 * sum_of(busy) / (now.time_s * static_cast<double>(busy.size()))) +
        format("load imbalance (most above the mean): %.1f %% of ranks, %.1f %% of workers\n",
               100 * now.rank_imbalance(), 100 * now.worker_imbalance());
    if (now.balancings > 0) {
        std::uint64_t moves = 0;
        for (const RankSample& rank : now.ranks) {
            moves += rank.moves;
        }
        text += format("balanced %u times, %llu moves: workers' imbalance %.1f %% before",
                       now.balancings, static_cast<unsigned long long>(moves),
                       100 * now.first_imbalance);
        text += now.balancings == 1
                    ? "\n"
                    : format(", %.1f %% after, on average\n", 100 * now.later_imbalance);
    }
    if (now.pages_moved != 0 || now.pages_stayed != 0) {
        text += format("%llu pages followed their ranks to other NUMA nodes",
                       static_cast<unsigned long long>(now.pages_moved));
        text += now.pages_stayed == 0 ? "\n"
                                      : format(", %llu could not\n",
                                               static_cast<unsigned long long>(now.pages_stayed));
    }
    return text;
}

} // namespace warren::launch
