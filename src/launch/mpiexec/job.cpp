#include "launch/mpiexec/job.hpp"

#include <cerrno>
#include <string>
#include <vector>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/guardian.hpp"
#include "launch/mpiexec/load_report.hpp"
#include "runtime/balance/load_table.hpp"

namespace warren::launch {

namespace {

// Programs that were built for another MPI library and have found that: as many single ranks,
// silently.
void report_other_libraries(const JobState& job, const JobPlan& plan, Report& report) {
    if (report.failed() || job.line.ranks() < 2 || !job.line.library.empty() || !job.segment) {
        return;
    }
    for (std::uint32_t rank = 0; rank < job.line.ranks(); ++rank) {
        if (job.segment.slot(rank).state.load() != node::RankStage::not_started) {
            return;
        }
    }
    for (const ResolvedProgram& program : plan.programs) {
        const ForeignNeed& need = program.foreign();
        if (need.abi != Abi::unknown && !need.is_met()) {
            report.say("no rank of '" + program.name() +
                       "' called MPI_Init of Warren's library: each was alone in another " +
                       need.library + ", or called none");
        }
    }
}

} // namespace

int Job::run() {
    plan_.agent = state_.agent;
    plan_.others = state_.spawned_by.others();
    if (watch_.open() && open_profile() && make_plan(state_.line, state_.report, plan_) &&
        start_.prepare()) {
        watch_.open_spawning(); // ranks may ask at once
        if (!start_.start_processes()) {
            watch_.end_job(0, ""); // the report has the failure
        }
        watch_.run();
    }
    clean_up();
    if (state_.spawned_by.has_told()) {
        return 0; // the failure is an error of the program that has spawned this job
    }
    const int exit_code = state_.report.exit_code();
    return exit_code != 0 ? exit_code : watch_.spawned().exit_code();
}

void Job::say_lines(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        state_.report.say(text.substr(begin, end - begin));
        begin = end + 1;
    }
}

bool Job::open_profile() {
    if (state_.line.profile_page.empty()) {
        return true;
    }
    Error error = profile_page_.open(state_.line.profile_page);
    if (error) {
        state_.report.fail(error);
        return false;
    }
    return true;
}

// Also of a job that has failed: up to then.
void Job::show_profile() {
    const ProfileReport profile = read_profile(state_.segment);
    say_lines(profile_table(profile));
    if (!profile_page_.is_open() || profile.without_mpi == profile.ranks) {
        return;
    }
    std::string command;
    for (const Program& program : state_.line.programs) {
        command += command.empty() ? "" : " : ";
        for (const std::string& word : program.arguments) {
            command += (&word == program.arguments.data() ? "" : " ") + word;
        }
    }
    if (Error error = profile_page_.write(profile_html(profile, command))) {
        state_.report.fail(error);
    }
}

void Job::clean_up() {
    topology_.report();
    if (!state_.has_other_library) {
        report_other_libraries(state_, plan_, state_.report);
    }
    const CommandLine& line = state_.line;
    Report& report = state_.report;
    const auto loads = [this] { return balance::LoadTable::at(state_.segment.at(balance::loads)); };
    if (!line.balance_record.empty() && !report.failed() &&
        loads().job->balancings.load(std::memory_order_relaxed) == 0) {
        report.say("--balance-record " + line.balance_record +
                   ": nothing is written, because the job ended before the balancer looked "
                   "(--balance-at)");
    }
    if (line.load_summary && state_.segment) {
        say_lines(load_summary(sample_loads(state_.segment, {})));
    }
    if (line.profile && state_.segment) {
        show_profile();
    }
    if (state_.guardian.running()) {
        state_.guardian.end();
    }
    if (report.failed() && !state_.ranks.empty()) {
        kill_stragglers(state_.name);
    }
    if (state_.segment) {
        state_.finish_writes();
    }
    int number = state_.output.finish(watch_.signals());
    const int write_error = state_.output.write_error();
    // Without a reader, or when it was closed from the beginning, nobody misses the output.
    if (write_error != 0 && write_error != EPIPE && write_error != EBADF) {
        report.fail(exit_failure, describe_write_error(write_error));
        number = number != 0 ? number : state_.output.finish(watch_.signals());
    }
    if (number != 0) {
        report.end_by(number);
    }
}

} // namespace warren::launch
