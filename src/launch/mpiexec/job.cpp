#include "launch/mpiexec/job.hpp"

#include <string>

#include "launch/mpiexec/guardian.hpp"
#include "launch/mpiexec/load_report.hpp"
#include "runtime/balance/load_table.hpp"

namespace warren::launch {

int Job::run() {
    if (watch_.open() && make_plan(state_.line, state_.report, plan_) && start_.prepare()) {
        if (!start_.start_processes()) {
            watch_.end_job(0, ""); // the report has the failure
        }
        watch_.run();
    }
    clean_up();
    return state_.report.exit_code();
}

void Job::clean_up() {
    topology_.report();
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
        const std::string text = load_summary(sample_loads(state_.segment, {}));
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = text.find('\n', begin);
            report.say(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    if (state_.guardian.running()) {
        state_.guardian.end();
    }
    if (report.failed() && !state_.ranks.empty()) {
        kill_stragglers(state_.name);
    }
    if (const int number = state_.output.finish(watch_.signals())) {
        report.end_by(number);
    }
}

} // namespace warren::launch
