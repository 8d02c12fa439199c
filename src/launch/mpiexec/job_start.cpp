// Starts the job's processes: divides ranks among them, executes them or has them forked.
#include "launch/mpiexec/job_start.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/limits.hpp"
#include "launch/mpiexec/outcome.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "launch/mpiexec/preloaded_tools.hpp"
#include "launch/mpiexec/tuning.hpp"
#include "mpi/job/book.hpp"
#include "mpi/job/node_map.hpp"
#include "mpi/job/world_identity.hpp"

namespace warren::launch {

namespace {

// Ranks' descriptors have numbers from here: shell scripts that start programs use those of one
// digit for their own files (exec 3>&1), and shells keep theirs from 10. From 64 the kernel would
// need a larger table.
constexpr int first_for_ranks = 40;

// A program that was built for another MPI library finds Warren's of its ABI.
void find_foreign_libraries(JobState& job, const ResolvedProgram& program,
                            RankEnvironment& environment) {
    const ForeignNeed& need = program.foreign();
    environment.libraries = foreign_folders(need, own_folder());
    const std::string account = foreign_account(need, own_folder(), program.name());
    if (!account.empty()) {
        job.report.explain(account);
    }
    const std::string library = job.has_host() ? "" : foreign_preload(need, own_folder());
    if (!library.empty()) {
        environment.preload += (environment.preload.empty() ? "" : ":") + library;
    }
}

} // namespace

JobStart::~JobStart() {
    for (const int descriptor : {null_input_, segment_number_, lifeline_number_, book_number_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

bool JobStart::prepare() {
    if (Error error = raise_descriptor_limit(plan_.descriptors(job_.line), former_descriptors_,
                                             descriptors_raised_)) {
        job_.report.fail(error);
        return false;
    }
    return has_resources() && make_segment() && open_descriptors() && make_environments();
}

// Threads of fibres' programs come later, and are few.
bool JobStart::has_resources() {
    const bool fibres = job_.has_fibres();
    const std::uint64_t tasks = fibres ? plan_.workers.size() : job_.line.ranks();
    if (Error error = check_free_tasks(tasks)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        job_.report.fail(exit_failure, std::to_string(tasks) +
                                           (job_.has_host() ? " threads" : " processes") +
                                           " are too many: " + record->text +
                                           (fibres ? "" : "; fibres need none (--ranks fibres)"));
        return false;
    }
    job_.report.explain(describe_limits(shared_limits(job_.has_host()), job_.line.ranks()));
    return true;
}

bool JobStart::make_segment() {
    const node::SegmentOptions options = {.ranks = job_.line.ranks(),
                                          .cores = plan_.own_processors,
                                          .nodes = job_.agent ? job_.agent->plan.nodes() : 1,
                                          .verbose = job_.line.verbose,
                                          .keeps_going = job_.line.keeps_going,
                                          .fibres = job_.has_fibres(),
                                          .profiled = job_.line.profile,
                                          .commit = false};
    if (Error error = node::Segment::create(options, job_.segment)) {
        job_.report.fail(exit_failure, error);
        return false;
    }
    if (job_.agent != nullptr) {
        const NodePlan& plan = job_.agent->plan;
        *job_.segment.at(node::node_place) = {.node = plan.node,
                                              .nodes = plan.nodes(),
                                              .world_size = plan.world_size,
                                              .dealt = plan.dealt ? 1U : 0U,
                                              .secret = plan.secret};
        if (plan.nodes() > 1) {
            std::copy(plan.first_ranks.begin(), plan.first_ranks.end(),
                      job_.segment.at(node::first_ranks));
        }
    }
    node::WorldIdentity& identity = *job_.segment.at(node::world_identity);
    identity.initial_handler = static_cast<std::uint32_t>(job_.line.initial_handler);
    if (job_.spawned_by.is_spawned()) {
        identity.spawned = 1;
        job_.spawned_by.port().copy(identity.parent_port, sizeof identity.parent_port - 1);
    }
    const std::uint64_t committed = job_.segment.header().committed_bytes;
    if (Error error = check_free_memory(committed)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        job_.report.fail(exit_failure, "the node segment of " + std::to_string(job_.line.ranks()) +
                                           " ranks needs " + std::to_string(committed >> 10) +
                                           " kB, which do not fit " + record->text);
        return false;
    }
    if (Error error = job_.guardian.start(job_.segment, job_.name)) {
        job_.report.fail(exit_failure, error);
        return false;
    }
    if (Error error = job_.guardian.wait_for_memory(job_.segment)) {
        job_.report.fail(exit_failure, error);
        return false;
    }
    job_.group = job_.guardian.pid();
    job_.report.explain("the node segment takes " + std::to_string(committed >> 10) + " kB");
    return true;
}

// A copy of the descriptor, -1 if there can be none. Its number is one that ranks may have.
int JobStart::number_for_ranks(int descriptor, int command) const {
    constexpr int lowest = 3;
    const bool fits = former_descriptors_.rlim_cur > 2 * first_for_ranks;
    return fcntl(descriptor, command, fits ? first_for_ranks : lowest);
}

bool JobStart::open_descriptors() {
    null_input_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_input_ < 0) {
        job_.report.fail(exit_failure, std::string("/dev/null, the input of all ranks but the "
                                                   "first, can't be opened: ") +
                                           std::strerror(errno));
        return false;
    }
    segment_number_ = number_for_ranks(job_.segment.descriptor(), F_DUPFD); // they inherit it
    lifeline_number_ = number_for_ranks(job_.events.descriptor(), F_DUPFD_CLOEXEC);
    if (segment_number_ < 0 || lifeline_number_ < 0) {
        job_.report.fail(exit_failure,
                         std::string("descriptors of mpiexec itself: ") + std::strerror(errno));
        return false;
    }
    return job_.agent == nullptr || open_book();
}

// The book tells ranks about the other nodes.
bool JobStart::open_book() {
    int book = -1;
    if (Error error = node::Book::create(job_.agent->plan.names, book)) {
        job_.report.fail(exit_failure, error);
        return false;
    }
    book_number_ = number_for_ranks(book, F_DUPFD); // they inherit it
    close(book);
    job_.book = book_number_;
    if (book_number_ < 0) {
        job_.report.fail(exit_failure,
                         std::string("descriptors of mpiexec itself: ") + std::strerror(errno));
    }
    return book_number_ >= 0;
}

// The environment of each program's processes, or of the host process and each rank in it.
bool JobStart::make_environments() {
    RankEnvironment environment = {.size = job_.world_size(),
                                   .size_on_node = job_.line.ranks(),
                                   .segment = segment_number_,
                                   .lifeline = lifeline_number_,
                                   .ranks_here = job_.has_host() ? job_.line.ranks()
                                                 : job_.line.ranks_per_process > 1
                                                     ? job_.line.ranks_per_process
                                                     : 0,
                                   .job = job_.name};
    if (!topology_.publish(environment)) {
        return false;
    }
    if (book_number_ >= 0) {
        environment.more.push_back({"WARREN_BOOK", std::to_string(book_number_)});
    }
    if (job_.has_host()) {
        host_environment_.build(job_.line.environment, plan_.programs[0].settings(), environment,
                                environ);
        host_environment_.limit_preload(
            preloaded_libraries(host_environment_.pointers(), plan_.programs[0]).of_process);
        environment = {.size = job_.world_size(),
                       .size_on_node = job_.line.ranks(),
                       .job = job_.name,
                       .more = environment.more};
    }
    for (ResolvedProgram& program : plan_.programs) {
        RankEnvironment own = environment;
        if (!own.preload.empty()) {
            own.preload = JobTopology::preloaded_before(program) + own.preload;
        }
        for (EnvironmentSetting& setting : plan_threads(job_.line, program, job_.report, plan_)) {
            own.more.push_back(std::move(setting));
        }
        if (job_.line.library.empty()) {
            find_foreign_libraries(job_, program, own);
        }
        program.build_environment(job_.line.environment, own, environ);
        plan_forked_start(own, program);
    }
    return true;
}

// Which ranks are in which process, with which program and streams.
void JobStart::divide_ranks() {
    job_.ranks.resize(job_.line.ranks());
    std::uint32_t rank = 0;
    for (std::uint32_t program = 0; program < plan_.programs.size(); ++program) {
        for (std::uint32_t turn = 0; turn < plan_.programs[program].ranks(); ++turn, ++rank) {
            if (job_.has_host() ? rank == 0 : turn % job_.line.ranks_per_process == 0) {
                job_.processes.push_back(
                    {.first_rank = rank,
                     .ranks = job_.has_host() ? job_.line.ranks() : job_.line.ranks_per_process});
            }
            const auto process = static_cast<std::uint32_t>(job_.processes.size() - 1);
            job_.ranks[rank] = {.program = program,
                                .process = process,
                                .streams =
                                    job_.has_host() ? rank / plan_.ranks_per_stream : process};
            job_.segment.slot(rank).application = program;
            job_.segment.slot(rank).process = process;
        }
    }
    job_.output.set_streams(job_.ranks.back().streams + 1);
}

// Decides whether this program's further processes are forked from its first, and makes the first
// one's environment for that. Without a socket or the library they are executed.
void JobStart::plan_forked_start(const RankEnvironment& environment, ResolvedProgram& program) {
    std::unique_ptr<ForkedProgram>& forked = forked_programs_.emplace_back();
    const std::string library = ForkedStart::library();
    const std::uint32_t processes = program.ranks() / job_.line.ranks_per_process;
    if (job_.has_host() || processes <= most_executed_per_processor * plan_.processors ||
        library.empty() || !ForkedStart::fits(program)) {
        return;
    }
    auto made = std::make_unique<ForkedProgram>();
    if (!made->forked_start.open()) {
        return;
    }
    RankEnvironment own = environment;
    own.more.push_back(made->forked_start.setting());
    own.preload += (own.preload.empty() ? "" : ":") + library;
    made->of_first.build(job_.line.environment, program.settings(), own, environ);
    forked = std::move(made);
    job_.report.explain(program.name() + ": further processes are forked from the first");
}

bool JobStart::start_processes() {
    divide_ranks();
    job_.process_of.reserve(job_.processes.size());
    Spawner spawner(std::min(plan_.processors, starts_at_once));
    bool all_started = true;
    for (std::uint32_t number = 0; all_started && number < job_.processes.size(); ++number) {
        all_started = job_.has_host() ? start_host(spawner) : start_program(number, spawner);
    }
    if (!finish_forked() || !all_started) {
        return false;
    }
    const SpawnFailure failure = spawner.finish();
    if (failure.error_number != 0) {
        not_started(failure);
        return false;
    }
    char text[64];
    std::snprintf(text, sizeof text, "all ranks started after %.1f ms",
                  static_cast<double>(monotonic_ns() - job_.started_ns) * 1e-6);
    job_.report.explain(text);
    return true;
}

// Makes the pipes of these streams; the ends to write to are the caller's.
bool JobStart::open_streams(std::uint32_t number, int& output, int& errors) {
    std::string tag;
    if (job_.line.tag_output) {
        std::vector<std::uint32_t> writers;
        for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
            if (job_.ranks[rank].streams == number) {
                writers.push_back(rank);
            }
        }
        tag = "[" + describe_ranks(job_.world_ranks(writers)) + "] ";
    }
    return job_.output.add(number, tag, output, errors);
}

// Starts a process that is a program.
bool JobStart::start_program(std::uint32_t number, Spawner& spawner) {
    const std::uint32_t first = job_.processes[number].first_rank;
    ResolvedProgram& program = plan_.programs[job_.ranks[first].program];
    int output = -1;
    int errors = -1;
    if (!open_streams(number, output, errors)) {
        job_.report.fail(exit_failure, "rank " + std::to_string(job_.world_rank(first)) +
                                           ": pipes: " + std::strerror(errno));
        return false;
    }
    ForkedProgram* forked = forked_programs_[job_.ranks[first].program].get();
    const bool is_first = forked != nullptr && forked->forked_start.socket_of_first() >= 0;
    const bool started = start_process(
        number,
        {.path = program.path().c_str(),
         .arguments = program.arguments(),
         .shell_arguments = program.shell_arguments(),
         .environment = is_first ? forked->of_first.pointers() : program.environment(),
         .directory = program.directory().empty() ? nullptr : program.directory().c_str(),
         .standard_output = output,
         .standard_error = errors,
         .forked_start = is_first ? forked->forked_start.socket_of_first() : -1,
         .processors = plan_.bindings.sets.empty() ? nullptr : &plan_.bindings.sets[first]},
        spawner);
    if (is_first) {
        forked->forked_start.close_theirs();
    }
    close(output);
    close(errors);
    return started;
}

// Starts a process of the job; the request says what it runs and where its output goes.
bool JobStart::start_process(std::uint32_t number, SpawnRequest request, Spawner& spawner) {
    JobProcess& process = job_.processes[number];
    const std::uint32_t first = process.first_rank;
    int lifeline[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lifeline) != 0) {
        job_.report.fail(exit_failure, "rank " + std::to_string(job_.world_rank(first)) +
                                           ": a socket pair: " + std::strerror(errno));
        return false;
    }
    process.lifeline = lifeline[0];
    request.rank = first;
    request.world_rank = job_.world_rank(first);
    const bool reads = request.world_rank == 0;
    request.standard_input = !reads       ? null_input_
                             : job_.agent ? job_.input.open_relay(null_input_)
                                          : job_.input.open();
    if (job_.input.active()) {
        job_.output.expect_questions();
    }
    request.lifeline = lifeline[1];
    request.lifeline_number = lifeline_number_;
    request.group = job_.group;
    request.signals = &former_signals_;
    request.descriptors = descriptors_raised_ ? &former_descriptors_ : nullptr;
    const bool is_forked = start_forked(number, request);
    pid_t pid = -1;
    const SpawnFailure failure = is_forked ? SpawnFailure() : spawner.start(request, pid);
    job_.input.close_reader();
    close(lifeline[1]);
    if (!is_forked && pid < 0) {
        process.ended = true;
        not_started(failure);
        return false;
    }
    ++job_.alive;
    job_.events.watch(process.lifeline, Source::lifeline, number);
    if (!is_forked) {
        process_runs(number, pid);
        return true;
    }
    return take_forked(forked_programs_[job_.ranks[first].program]->forked_start, fork_window);
}

void JobStart::process_runs(std::uint32_t number, pid_t pid) {
    JobProcess& process = job_.processes[number];
    process.pid = pid;
    for (std::uint32_t rank = process.first_rank; rank < process.first_rank + process.ranks;
         ++rank) {
        // MPI_Init may have stored the number of a process further down already.
        std::int32_t none = 0;
        job_.segment.slot(rank).pid.compare_exchange_strong(none, pid, std::memory_order_relaxed);
    }
    job_.process_of.emplace(pid, number);
}

// --- processes forked from first processes

// Requests a fork; false when this process has to be executed.
bool JobStart::start_forked(std::uint32_t number, const SpawnRequest& request) {
    const std::uint32_t program = job_.ranks[job_.processes[number].first_rank].program;
    ForkedProgram* forked =
        program < forked_programs_.size() ? forked_programs_[program].get() : nullptr;
    return forked != nullptr && request.forked_start < 0 && forked->forked_start.ready() &&
           forked->forked_start.start(request);
}

// Records the forked processes that run, until at most `limit` requests are under way.
bool JobStart::take_forked(ForkedStart& forked_start, std::size_t limit) {
    std::vector<ForkedStart::Started> answers;
    if (!forked_start.collect(limit, answers)) {
        forked_start.give_up(answers);
    }
    const SpawnFailure* first = nullptr;
    for (const ForkedStart::Started& answer : answers) {
        if (answer.failure.error_number == 0) {
            process_runs(job_.ranks[answer.rank].process, answer.pid);
            continue;
        }
        JobProcess& process = job_.processes[job_.ranks[answer.rank].process];
        process.ended = true;
        --job_.alive;
        first = first == nullptr ? &answer.failure : first;
    }
    if (first != nullptr) {
        not_started(*first);
    }
    return first == nullptr;
}

// Lets the first processes go on, too.
bool JobStart::finish_forked() {
    bool all_run = true;
    for (const std::unique_ptr<ForkedProgram>& forked : forked_programs_) {
        if (forked != nullptr) {
            all_run = take_forked(forked->forked_start, 0) && all_run;
            forked->forked_start.close();
        }
    }
    return all_run;
}

void JobStart::not_started(const SpawnFailure& failure) {
    const JobRank& rank = job_.ranks[failure.rank];
    const int code = failure.error_number == EACCES   ? exit_not_executable
                     : failure.error_number == ENOENT ? exit_not_found
                                                      : exit_failure;
    std::string message = "rank " + std::to_string(job_.world_rank(failure.rank)) + " (" +
                          plan_.programs[rank.program].name() + "): " + failure.step + ": " +
                          std::strerror(failure.error_number);
    if (failure.error_number == EAGAIN) {
        message += "; the limit of processes (ulimit -u, or pids.max of a control group) is too "
                   "low for " +
                   std::to_string(job_.line.ranks()) + " ranks";
    } else if (failure.error_number == ENOENT) {
        message += " (is the interpreter in its first line there?)";
    }
    job_.report.fail(code, message);
}

} // namespace warren::launch
