// Starts the host process of ranks that are threads or fibres: its plan, and what it inherits.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "launch/mpiexec/job_start.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "launch/mpiexec/preloaded_tools.hpp"
#include "runtime/balance/balancer.hpp"
#include "runtime/balance/load_table.hpp"

namespace warren::launch {

namespace {

std::vector<std::string> strings(char* const* list) {
    std::vector<std::string> made;
    for (; *list != nullptr; ++list) {
        made.emplace_back(*list);
    }
    return made;
}

} // namespace

void JobStart::plan_balancing(HostPlan& plan) {
    plan.nodes = plan_.worker_nodes;
    plan.steals = job_.line.steals;
    plan.balancer = job_.line.balancer;
    if (const balance::Balancer* balancer = balance::find_balancer(job_.line.balancer)) {
        plan.balance_period_ns = static_cast<std::uint64_t>(job_.line.balance_period_s * 1e9);
        plan.balance_collectives = job_.line.balance_collectives;
        plan.balance_record = job_.line.balance_record;
        if (balancer->uses_distances || !job_.line.balance_record.empty()) {
            plan.distances = distances_of(plan_.workers);
        }
    }
}

// The programs, and what each gets.
void JobStart::describe_programs(HostPlan& plan) {
    for (ResolvedProgram& program : plan_.programs) {
        PreloadedLibraries preloaded = preloaded_libraries(program.environment(), program);
        for (const std::string& library : preloaded.without_mpi) {
            job_.report.say("LD_PRELOAD: " + library +
                            " has no MPI procedures: it is in the process of all ranks of '" +
                            program.name() +
                            "', not in each of them (it is when the program is linked to it, or "
                            "with --ranks processes)");
        }
        for (const std::string& library : preloaded.recorders) {
            job_.report.explain("LD_PRELOAD: " + library +
                                " replaces malloc, mmap or pthread_create: all ranks of '" +
                                program.name() + "' share one copy of it");
        }
        plan.programs.push_back({program.path(), program.directory(), strings(program.arguments()),
                                 strings(program.environment()),
                                 plan_.own_allocators[plan.programs.size()],
                                 std::move(preloaded.tools)});
    }
}

// Makes this rank's pipes and, for another MPI library, its socket. What the host inherits is added
// to `inherited`. False, with errno, when there is none; `what` says which.
bool JobStart::connect_rank(std::uint32_t rank, HostPlan& plan, std::vector<int>& inherited,
                            std::string& what) {
    what = "rank " + std::to_string(job_.world_rank(rank)) + ": pipes";
    HostPlan::Rank& planned = plan.ranks.emplace_back();
    planned.program = job_.ranks[rank].program;
    planned.input = job_.world_rank(rank) == 0 ? STDIN_FILENO : -1;
    if (rank % plan_.ranks_per_stream != 0) {
        planned.output = plan.ranks[rank - 1].output;
        planned.errors = plan.ranks[rank - 1].errors;
    } else if (open_streams(job_.ranks[rank].streams, planned.output, planned.errors)) {
        inherited.insert(inherited.end(), {planned.output, planned.errors});
    } else {
        return false;
    }
    if (!job_.line.library.empty()) {
        what = "rank " + std::to_string(job_.world_rank(rank)) + ": a socket pair";
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            return false;
        }
        job_.ranks[rank].manager = ends[0];
        planned.manager = ends[1];
        inherited.push_back(ends[1]);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        job_.events.watch(ends[0], Source::manager, rank);
    }
    if (!plan_.bindings.sets.empty()) {
        planned.processors = std::make_shared<const CpuSet>(plan_.bindings.sets[rank]);
    }
    return true;
}

// Fills the part of the plan that all ranks share.
void JobStart::describe_host(HostPlan& plan) {
    const std::string& library = job_.line.library;
    plan.library = library.empty() ? own_folder() + library_folder + library_name : "";
    plan.workers = plan_.workers;
    plan.verbose = job_.line.verbose;
    plan.segment = segment_number_;
    plan.loads_offset = job_.segment.header().directory[balance::loads].offset;
    plan_balancing(plan);
    plan.stack_bytes = job_.line.stack_bytes;
    plan.kept = topology_.descriptors();
    plan.kept.insert(plan.kept.end(), {segment_number_, lifeline_number_});
    if (book_number_ >= 0) {
        plan.kept.push_back(book_number_);
    }
    plan.first_rank = job_.world_rank(0);
    plan.rank_stride = job_.world_rank(1) - plan.first_rank;
}

// Connects all ranks and writes the plan to a file that the host inherits. -1: the report has the
// reason.
int JobStart::write_host_plan(HostPlan& plan, std::vector<int>& inherited) {
    std::string what;
    const auto give_up = [&] {
        job_.report.fail(exit_failure, what + ": " + std::strerror(errno));
        return -1;
    };
    describe_programs(plan);
    for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
        if (!connect_rank(rank, plan, inherited, what)) {
            return give_up();
        }
    }
    int reports[2];
    if (pipe2(reports, O_CLOEXEC) != 0) {
        what = "a pipe for the host process";
        return give_up();
    }
    job_.processes[0].reports = reports[0];
    plan.reports = reports[1];
    fcntl(reports[0], F_SETFL, O_NONBLOCK);
    inherited.push_back(plan.reports);
    job_.manager = ProcessManager(job_.line.ranks(), "warren-" + job_.name);
    describe_host(plan);
    int file = -1;
    if (Error error = plan.write(file)) {
        job_.report.fail(error);
        return -1;
    }
    inherited.push_back(file);
    return file;
}

// Starts the one process of all ranks.
bool JobStart::start_host(Spawner& spawner) {
    HostPlan plan;
    std::vector<int> inherited; // by the host only, which closes what it starts nobody with
    const int file = write_host_plan(plan, inherited);
    bool started = false;
    if (file >= 0) {
        for (const int one : inherited) {
            fcntl(one, F_SETFD, 0);
        }
        std::string number = std::to_string(file);
        std::string path = plan_.host_path;
        // The arguments tell ps and top what the process is for.
        std::vector<char*> arguments{path.data(), number.data()};
        for (char* const* argument = plan_.programs[0].arguments(); *argument != nullptr;
             ++argument) {
            arguments.push_back(*argument);
        }
        arguments.push_back(nullptr);
        started = start_process(0,
                                {.path = path.c_str(),
                                 .arguments = arguments.data(),
                                 .shell_arguments = arguments.data(),
                                 .environment = host_environment_.pointers(),
                                 .standard_output = plan.ranks[0].output,
                                 .standard_error = plan.ranks[0].errors},
                                spawner);
        const SpawnFailure failure = spawner.finish(); // what it reads is gone afterwards
        if (started && failure.error_number != 0) {
            not_started(failure);
            started = false;
        }
    }
    for (const int one : inherited) {
        close(one);
    }
    if (started) {
        job_.events.watch(job_.processes[0].reports, Source::reports);
    }
    return started;
}

} // namespace warren::launch
