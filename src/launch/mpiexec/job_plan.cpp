#include "launch/mpiexec/job_plan.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unistd.h>
#include <utility>

#include "image/check.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "launch/mpiexec/limits.hpp"
#include "launch/mpiexec/memory_nodes.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "launch/mpiexec/thread_defaults.hpp"

namespace warren::launch {

namespace {

bool has_host(const CommandLine& line) {
    return line.rank_kind != RankKind::process;
}

bool has_fibres(const CommandLine& line) {
    return line.rank_kind == RankKind::fibre;
}

// Whether the programs can be private images, before anything starts.
bool check_programs(const CommandLine& line, Report& report, JobPlan& plan) {
    image::Sharing sharing;
    if (line.library.empty()) {
        sharing.shared.assign(std::begin(libraries_of_all), std::end(libraries_of_all));
    }
    std::uint64_t mappings = 0;
    for (const ResolvedProgram& program : plan.programs) {
        std::vector<image::ProgramFinding> findings;
        Error error = image::check_program(program.full_path(), sharing, findings);
        const bool refused = static_cast<bool>(error);
        error.drop();
        std::string text;
        std::string changes;
        plan.own_allocators.push_back(
            std::any_of(findings.begin(), findings.end(), [](const image::ProgramFinding& found) {
                return found.finding.what == image::own_allocator;
            }));
        for (const image::ProgramFinding& found : findings) {
            if (found.finding.weight == image::Weight::refused) {
                text += "\n  " + found.file + ": " + found.finding.what +
                        (found.finding.remedy.empty() ? "" : "; remedy: " + found.finding.remedy);
            } else if (found.finding.weight == image::Weight::changes) {
                changes += (changes.empty() ? "" : "; ") + found.finding.what;
            }
        }
        if (!refused && !changes.empty()) {
            report.explain(program.name() + ": " + changes);
        }
        if (refused) {
            report.fail(
                exit_not_executable,
                "program '" + program.name() +
                    "' can't run as threads of one process (it can with --ranks processes):" +
                    text);
            return false;
        }
        constexpr std::uint64_t beside_image = 1; // the rank's stack or heap
        mappings += program.ranks() *
                    (image::mappings_of_program(program.full_path(), sharing) + beside_image);
    }
    if (const std::string lack = image::lack_of_mappings(mappings); !lack.empty()) {
        report.fail(1, "the ranks can't be in one process: " + lack);
        return false;
    }
    return true;
}

bool find_host(Report& report, JobPlan& plan) {
    plan.host_path = own_folder() + libexec_folder + "warren-rank-host";
    if (access(plan.host_path.c_str(), X_OK) != 0) {
        report.fail(1,
                    "the host program of ranks, " + plan.host_path + ": " + std::strerror(errno));
        return false;
    }
    return true;
}

// A worker per processor, or as many as the user wants; more than processors are not bound.
void plan_workers(const CommandLine& line, const CpuSet& allowed, Report& report, JobPlan& plan) {
    const std::uint32_t count = line.workers != 0 ? line.workers : plan.processors;
    const bool bound = count <= allowed.count() && count <= plan.processors &&
                       line.bind_to != BindTo::none && plan.processors == allowed.count();
    std::size_t processor = 0;
    for (std::uint32_t worker = 0; worker < count; ++worker) {
        while (bound && !allowed.has(processor)) {
            ++processor;
        }
        plan.workers.push_back(bound ? static_cast<int>(processor++) : -1);
    }
    const std::string text = std::to_string(line.ranks()) + " fibres on " + std::to_string(count) +
                             " workers, " + (bound ? "bound to a processor each" : "not bound") +
                             " (CPUs " + allowed.text() + ")";
    report.explain(text);
    if (line.report_bindings) {
        report.say(text);
    }
    plan.processors = std::min(plan.processors, count);
}

// Which nodes the ranks' pages follow them to; that they can.
bool plan_page_moves(const CommandLine& line, Report& report, JobPlan& plan) {
    if (!line.migrates_pages) {
        return true;
    }
    std::vector<int> allowed;
    for (std::size_t processor = 0; processor < CpuSet::limit; ++processor) {
        if (CpuSet::allowed().has(processor)) {
            allowed.push_back(static_cast<int>(processor));
        }
    }
    std::vector<int> nodes = nodes_of_processors(allowed, "");
    const bool bound = plan.workers[0] >= 0;
    if (bound) {
        nodes = nodes_of_processors(plan.workers, "");
    }
    std::set<int> all(nodes.begin(), nodes.end());
    if (all.size() == 1) {
        report.explain("--migrate-pages: all workers are on NUMA node " +
                       std::to_string(nodes.front()) + ", so pages stay where they are");
        return true;
    }
    for (const int node : leave_out_others(nodes, nodes_with_memory(""))) {
        report.explain(
            "--migrate-pages: NUMA node " + std::to_string(node) +
            " has no memory for this job, so pages of ranks that go there stay where they are");
        all.erase(node);
    }
    if (all.size() <= 1) {
        report.explain(
            "--migrate-pages: workers are on no two NUMA nodes with memory, so pages stay "
            "where they are");
        return true;
    }
    if (!bound) {
        report.fail(1,
                    "--migrate-pages needs workers that are bound to a processor each: no more of "
                    "them than there are processors, and no --bind-to none");
        return false;
    }
    if (const int refusal = refusal_to_move_pages()) {
        report.fail(1, std::string("--migrate-pages: the system does not let processes move their "
                                   "pages (move_pages): ") +
                           std::strerror(refusal));
        return false;
    }
    plan.worker_nodes = std::move(nodes);
    report.explain("pages follow their ranks among NUMA nodes");
    return true;
}

bool plan_processors(const CommandLine& line, Report& report, JobPlan& plan) {
    const CpuSet allowed = CpuSet::allowed();
    std::uint32_t quota = processor_quota();
    plan.processors = std::max(1U, allowed.count());
    if (quota != 0 && quota < plan.processors) {
        plan.processors = quota;
        report.explain("a control group grants the time of " + std::to_string(quota) + " of the " +
                       std::to_string(allowed.count()) + " processors");
    }
    plan.own_processors = plan.processors;
    if (const std::uint32_t sharers = plan.agent ? plan.agent->plan.sharers : 1; sharers > 1) {
        plan.own_processors = plan.processors / sharers;
        plan.processors = std::max(1U, plan.own_processors);
        quota = plan.processors;
        report.explain(std::to_string(sharers) +
                       " nodes of the job share the processors of this machine: each takes " +
                       std::to_string(plan.processors));
    }
    if (plan.others > 0) {
        plan.own_processors -= std::min(plan.others, plan.own_processors);
    }
    if (has_fibres(line)) {
        plan_workers(line, allowed, report, plan);
        return plan_page_moves(line, report, plan);
    }
    report.explain(std::to_string(line.ranks()) + " ranks on " + std::to_string(plan.processors) +
                   " processors (CPUs " + allowed.text() + ")" +
                   (line.ranks() > plan.own_processors
                        ? ": oversubscribed, waiting ranks yield and sleep early"
                        : ""));
    if (Error error = plan_bindings(line.bind_to, line.ranks(), allowed, quota, plan.bindings)) {
        report.fail(1, error);
        return false;
    }
    join_places(line.ranks_per_process, plan.bindings);
    if (!plan.bindings.reason.empty()) {
        report.explain(plan.bindings.reason);
    }
    if (line.report_bindings) {
        for (std::uint32_t rank = 0; rank < line.ranks(); ++rank) {
            report.say("rank " +
                       std::to_string(plan.agent ? plan.agent->plan.world_rank(rank) : rank) +
                       (plan.bindings.sets.empty()
                            ? " is not bound (CPUs " + allowed.text() + ")"
                            : " is bound to " + plan.bindings.names[rank] + " (CPUs " +
                                  plan.bindings.sets[rank].text() + ")"));
        }
    }
    return true;
}

// Ranks of a host process that share pipes for their output.
void plan_streams(const CommandLine& line, Report& report, JobPlan& plan) {
    if (has_fibres(line) && line.library.empty()) {
        plan.ranks_per_stream = fibres_per_stream(line.ranks());
    }
    if (plan.ranks_per_stream > 1) {
        report.explain(std::to_string(plan.ranks_per_stream) +
                       " ranks each share pipes for their output: the hard limit of descriptors "
                       "(ulimit -Hn) is too low for " +
                       std::to_string(line.ranks()) + " ranks");
    }
}

} // namespace

std::vector<EnvironmentSetting> plan_threads(const CommandLine& line,
                                             const ResolvedProgram& program, Report& report,
                                             const JobPlan& plan) {
    const auto variable = [&](const char* name) {
        const char* value = std::getenv(name);
        for (const auto* settings : {&line.environment, &program.settings()}) {
            for (const EnvironmentSetting& setting : *settings) {
                value = setting.name == name ? setting.value.c_str() : value;
            }
        }
        return value;
    };
    std::uint32_t visible = CpuSet::allowed().count();
    for (const CpuSet& bound : plan.bindings.sets) {
        visible = std::min(visible, bound.count());
    }
    std::vector<EnvironmentSetting> defaults =
        thread_defaults({.ranks = line.ranks(),
                         .processors = plan.processors,
                         .visible = std::max(1U, visible),
                         .makes_its_ranks = line.ranks_per_process > 1},
                        variable);
    if (!defaults.empty()) {
        report.explain("threads of " + program.name() + " share the processors: " +
                       text_of(defaults) + " (set these variables to have it otherwise)");
    }
    return defaults;
}

std::vector<std::uint32_t> distances_of(const std::vector<int>& workers) {
    std::vector<std::uint32_t> distances;
    std::vector<std::vector<Place>> kinds;
    for (const BindTo kind : {BindTo::core, BindTo::l3cache, BindTo::numa, BindTo::socket}) {
        if (Error error = find_places(kind, CpuSet::allowed(), kinds.emplace_back())) {
            error.drop(); // a machine need not have all kinds
            kinds.pop_back();
        }
    }
    const auto together = [](const std::vector<Place>& places, int one, int other) {
        return std::any_of(places.begin(), places.end(), [&](const Place& place) {
            return place.processors.has(static_cast<std::size_t>(one)) &&
                   place.processors.has(static_cast<std::size_t>(other));
        });
    };
    for (std::size_t from = 0; from < workers.size(); ++from) {
        for (std::size_t to = 0; to < workers.size(); ++to) {
            std::uint32_t distance = from == to ? 0 : 1;
            for (const std::vector<Place>& places : kinds) {
                distance += from != to && workers[from] >= 0 && workers[to] >= 0 &&
                            !together(places, workers[from], workers[to]);
            }
            distances.push_back(distance);
        }
    }
    return distances;
}

std::uint64_t JobPlan::descriptors(const CommandLine& line) const {
    // Another library's ranks have a socket pair each.
    const std::uint64_t streams = (line.ranks() + ranks_per_stream - 1) / ranks_per_stream;
    return descriptors_for(streams, has_host(line), line.programs.size()) +
           (line.library.empty() ? 0 : 2 * std::uint64_t{line.ranks()});
}

bool make_plan(const CommandLine& line, Report& report, JobPlan& plan) {
    if (access("/proc/self/fd", X_OK) != 0) {
        report.fail(exit_failure, std::string("/proc is not mounted here (/proc/self/fd: ") +
                                      std::strerror(errno) + "), and mpiexec needs it");
        return false;
    }
    for (const Program& program : line.programs) {
        if (Error error = ResolvedProgram::resolve(program, plan.programs.emplace_back())) {
            report.fail(error);
            return false;
        }
    }
    if (line.library.empty()) {
        offer_to_images(own_folder());
    }
    if (has_host(line) && (!check_programs(line, report, plan) || !find_host(report, plan))) {
        return false;
    }
    plan_streams(line, report, plan);
    return plan_processors(line, report, plan);
}

} // namespace warren::launch
