// The part of a job whose ranks are threads: the plan for their host process, and its reports.
#include "launch/mpiexec/job.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <set>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "image/check.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "launch/mpiexec/memory_nodes.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "mpi.h"
#include "runtime/balance/balancer.hpp"

namespace warren::launch {

namespace {

std::vector<std::string> strings(char* const* list) {
    std::vector<std::string> made;
    for (; *list != nullptr; ++list) {
        made.emplace_back(*list);
    }
    return made;
}

// Images take no libraries from there, which tools are often given by.
bool has_preloaded(char* const* environment) {
    constexpr std::string_view name = "LD_PRELOAD=";
    for (; *environment != nullptr; ++environment) {
        const std::string_view text = *environment;
        if (text.starts_with(name) && text != name) {
            return true;
        }
    }
    return false;
}

// Exit codes are 8 bits; a report may hold anything.
constexpr int wait_status_of(const HostReport& report) {
    return (report.value & 0xff) << 8;
}

} // namespace

// Whether the programs can be private images, before anything starts.
bool Job::check_programs() {
    image::Sharing sharing;
    if (line_.library.empty()) {
        sharing.shared.assign(std::begin(libraries_of_all), std::end(libraries_of_all));
    }
    for (const ResolvedProgram& program : programs_) {
        std::vector<image::ProgramFinding> findings;
        Error error = image::check_program(program.full_path(), sharing, findings);
        const bool refused = static_cast<bool>(error);
        error.drop();
        std::string text;
        own_allocators_.push_back(
            std::any_of(findings.begin(), findings.end(), [](const image::ProgramFinding& found) {
                return found.finding.what == image::own_allocator;
            }));
        for (const image::ProgramFinding& found : findings) {
            if (found.finding.weight == image::Weight::refused) {
                text += "\n  " + found.file + ": " + found.finding.what +
                        (found.finding.mend.empty() ? "" : "; mend: " + found.finding.mend);
            } else if (found.finding.weight == image::Weight::changes) {
                explain(found.file + ": " + found.finding.what);
            }
        }
        if (refused) {
            fail_with(exit_not_executable,
                      "program '" + program.name() +
                          "' can't run as threads of one process (it can with --ranks processes):" +
                          text);
            return false;
        }
    }
    return true;
}

bool Job::make_host() {
    host_path_ = own_folder() + libexec_folder + "warren-rank-host";
    if (access(host_path_.c_str(), X_OK) != 0) {
        fail_with(1, "the host program of ranks, " + host_path_ + ": " + std::strerror(errno));
        return false;
    }
    return true;
}

// Distance between workers, by what their processors share: 1 for the same core, and 1 more for
// each of L3 cache, NUMA node and socket that they don't share.
std::vector<std::uint32_t> Job::distances_of_workers() {
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
    for (std::size_t from = 0; from < workers_.size(); ++from) {
        for (std::size_t to = 0; to < workers_.size(); ++to) {
            std::uint32_t distance = from == to ? 0 : 1;
            for (const std::vector<Place>& places : kinds) {
                distance += from != to && workers_[from] >= 0 && workers_[to] >= 0 &&
                            !together(places, workers_[from], workers_[to]);
            }
            distances.push_back(distance);
        }
    }
    return distances;
}

// Which nodes the ranks' pages follow them to; that they can.
bool Job::plan_page_moves() {
    if (!line_.migrates_pages) {
        return true;
    }
    std::vector<int> allowed;
    for (std::size_t processor = 0; processor < CpuSet::limit; ++processor) {
        if (CpuSet::allowed().has(processor)) {
            allowed.push_back(static_cast<int>(processor));
        }
    }
    std::vector<int> nodes = nodes_of_processors(allowed, "");
    const bool bound = workers_[0] >= 0;
    if (bound) {
        nodes = nodes_of_processors(workers_, "");
    }
    std::set<int> all(nodes.begin(), nodes.end());
    if (all.size() == 1) {
        explain("--migrate-pages: all workers are on NUMA node " + std::to_string(nodes.front()) +
                ", so pages stay where they are");
        return true;
    }
    for (const int node : leave_out_others(nodes, nodes_with_memory(""))) {
        explain("--migrate-pages: NUMA node " + std::to_string(node) +
                " has no memory for this job, so pages of ranks that go there stay where they are");
        all.erase(node);
    }
    if (all.size() <= 1) {
        explain("--migrate-pages: workers are on no two NUMA nodes with memory, so pages stay "
                "where they are");
        return true;
    }
    if (!bound) {
        fail_with(1, "--migrate-pages needs workers that are bound to a processor each: no more of "
                     "them than there are processors, and no --bind-to none");
        return false;
    }
    if (const int refusal = refusal_to_move_pages()) {
        fail_with(1, std::string("--migrate-pages: the system does not let processes move their "
                                 "pages (move_pages): ") +
                         std::strerror(refusal));
        return false;
    }
    worker_nodes_ = std::move(nodes);
    explain("pages follow their ranks among NUMA nodes");
    return true;
}

void Job::plan_balancing(HostPlan& plan) {
    plan.nodes = worker_nodes_;
    plan.steals = line_.steals;
    plan.balancer = line_.balancer;
    if (const balance::Balancer* balancer = balance::find_balancer(line_.balancer)) {
        plan.balance_period_ns = static_cast<std::uint64_t>(line_.balance_period_s * 1e9);
        plan.balance_collectives = line_.balance_collectives;
        plan.balance_record = line_.balance_record;
        if (balancer->uses_distances || !line_.balance_record.empty()) {
            plan.distances = distances_of_workers();
        }
    }
}

// Starts the one process of all ranks.
bool Job::start_host(Spawner& spawner) {
    Process& host = processes_[0];
    HostPlan plan;
    for (ResolvedProgram& program : programs_) {
        if (has_preloaded(program.environment())) {
            say("LD_PRELOAD is for the process of all ranks only: the calls of '" + program.name() +
                "' to MPI don't go through its libraries (they do when it is linked to them, or "
                "with --ranks processes)");
        }
        plan.programs.push_back({program.path(), program.directory(), strings(program.arguments()),
                                 strings(program.environment()),
                                 own_allocators_[plan.programs.size()]});
    }
    std::vector<int> inherited; // by the host only, which closes what it starts nobody with
    const auto give_up = [&](const std::string& what) {
        end_job(1, what + ": " + std::strerror(errno));
        for (const int one : inherited) {
            close(one);
        }
        return false;
    };
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        HostPlan::Rank& planned = plan.ranks.emplace_back();
        planned.program = ranks_[rank].program;
        planned.input = rank == 0 ? STDIN_FILENO : -1;
        if (rank % ranks_per_stream_ != 0) {
            planned.output = plan.ranks[rank - 1].output;
            planned.errors = plan.ranks[rank - 1].errors;
        } else if (open_streams(ranks_[rank].streams, planned.output, planned.errors)) {
            inherited.insert(inherited.end(), {planned.output, planned.errors});
        } else {
            return give_up("rank " + std::to_string(rank) + ": pipes");
        }
        if (!line_.library.empty()) {
            int ends[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
                return give_up("rank " + std::to_string(rank) + ": a socket pair");
            }
            ranks_[rank].manager = ends[0];
            planned.manager = ends[1];
            inherited.push_back(ends[1]);
            fcntl(ends[0], F_SETFL, O_NONBLOCK);
            events_.watch(ends[0], Source::manager, rank);
        }
        if (!bindings_.sets.empty()) {
            planned.processors = std::make_shared<const CpuSet>(bindings_.sets[rank]);
        }
    }
    int reports[2];
    if (pipe2(reports, O_CLOEXEC) != 0) {
        return give_up("a pipe for the host process");
    }
    host.reports = reports[0];
    plan.reports = reports[1];
    manager_ = ProcessManager(line_.ranks(), "warren-" + name_);
    plan.library = line_.library.empty() ? own_folder() + library_folder + library_name : "";
    plan.workers = workers_;
    plan.verbose = line_.verbose;
    plan.segment = segment_.descriptor();
    plan.loads_offset = segment_.header().loads_offset;
    plan_balancing(plan);
    plan.stack_bytes = line_.stack_bytes;
    plan.kept = hwloc_.descriptors();
    plan.kept.insert(plan.kept.end(), {segment_.descriptor(), lifeline_number_,
                                       topology_.file_of_ranks(), topology_.socket_of_ranks()});
    fcntl(host.reports, F_SETFL, O_NONBLOCK);
    inherited.push_back(plan.reports);
    int file = -1;
    if (Error error = plan.write(file)) {
        error.drop();
        return give_up("the plan for the host process");
    }
    inherited.push_back(file);
    for (const int one : inherited) {
        fcntl(one, F_SETFD, 0);
    }
    std::string number = std::to_string(file);
    // The arguments tell ps and top what the process is for.
    std::vector<char*> arguments{host_path_.data(), number.data()};
    for (char* const* argument = programs_[0].arguments(); *argument != nullptr; ++argument) {
        arguments.push_back(*argument);
    }
    arguments.push_back(nullptr);
    const bool started = start_process(0,
                                       {.path = host_path_.c_str(),
                                        .arguments = arguments.data(),
                                        .shell_arguments = arguments.data(),
                                        .environment = host_environment_.pointers(),
                                        .standard_output = plan.ranks[0].output,
                                        .standard_error = plan.ranks[0].errors},
                                       spawner);
    const SpawnFailure failure = spawner.finish(); // what it reads is gone afterwards
    for (const int one : inherited) {
        close(one);
    }
    if (!started) {
        return false;
    }
    if (failure.error_number != 0) {
        not_started(failure);
        return false;
    }
    events_.watch(host.reports, Source::reports);
    return true;
}

void Job::read_reports(Process& process) {
    std::array<HostReport, 256> reports;
    while (process.reports >= 0) {
        const ssize_t got = read(process.reports, reports.data(), sizeof reports);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got == 0) {
            close(std::exchange(process.reports, -1));
        }
        if (got <= 0) {
            return;
        }
        for (std::size_t index = 0; index < static_cast<std::size_t>(got) / sizeof(HostReport);
             ++index) {
            const HostReport& report = reports[index];
            if (report.rank >= process.ranks) {
                continue;
            }
            const std::uint32_t rank = process.first_rank + report.rank;
            switch (report.kind) {
            case HostReport::Kind::started:
                ranks_[rank].thread = report.value;
                break;
            case HostReport::Kind::ended:
                rank_ended(rank, process.pid, wait_status_of(report));
                break;
            case HostReport::Kind::overflowed:
                process.overflowed = true;
                [[fallthrough]];
            case HostReport::Kind::crashed:
                process.crashed_rank = rank; // the process ends next
                break;
            case HostReport::Kind::stuck:
                all_ranks_wait();
                break;
            }
        }
    }
}

// A host of fibres knows: nothing will happen any more.
void Job::all_ranks_wait() {
    if (ending_ == Ending::not_yet) {
        print_states();
        end_job(exit_deadlock, "deadlock: all ranks that have not ended wait, for what none of "
                               "them will do; the job is ended");
    }
}

// Another MPI library asks for what its own launcher would tell it.
void Job::serve_manager(std::uint32_t rank) {
    int& socket = ranks_[rank].manager;
    std::array<char, 4096> text;
    const ssize_t got = read(socket, text.data(), text.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        close(std::exchange(socket, -1));
        return;
    }
    for (const ProcessManager::Reply& reply :
         manager_.take(rank, ranks_[rank].program, {text.data(), static_cast<std::size_t>(got)})) {
        // Each waits for a line or two: they fit the socket. Who has gone needs none.
        send(ranks_[reply.rank].manager, reply.line.data(), reply.line.size(), MSG_NOSIGNAL);
    }
    const ProcessManager::Abort& abort = manager_.abort();
    if (abort.asked && ending_ == Ending::not_yet) {
        output_.drain(ranks_[rank].streams);
        const int code = abort.code & 0xff;
        end_job(code != 0 ? code : 1, "rank " + std::to_string(rank) + " (" +
                                          programs_[ranks_[rank].program].name() +
                                          ") aborted with code " + std::to_string(abort.code) +
                                          (abort.message.empty() ? "" : ": " + abort.message));
    }
}

// One of several ranks of a process that goes on.
void Job::rank_ended(std::uint32_t rank, pid_t pid, int wait_status) {
    output_.drain(ranks_[rank].streams);
    ranks_[rank].ended = true;
    look_for_recorded_end();
    if (ending_ == Ending::not_yet) {
        judge_end({rank}, pid, wait_status);
    }
}

} // namespace warren::launch
