#include "launch/mpiexec/outcome.hpp"

#include <csignal>
#include <cstring>
#include <sys/wait.h>

namespace warren::launch {

namespace {

// The exit code of a program that a signal ended is this plus the signal's number, as in a shell.
constexpr int killed_exit_code = 128;

// mpiexec's exit code for a code that a program or MPI_Abort gave: never a success by truncation.
int failure_code(int code) {
    const int low = code & 0xff;
    return low != 0 ? low : 1;
}

} // namespace

std::string describe_ranks(const std::vector<std::uint32_t>& ranks) {
    std::string text;
    for (std::size_t first = 0; first < ranks.size();) {
        std::size_t last = first;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
            ++last;
        }
        if (!text.empty()) {
            text += ',';
        }
        text += std::to_string(ranks[first]);
        if (last > first) {
            text += '-';
            text += std::to_string(ranks[last]);
        }
        first = last + 1;
    }
    return text;
}

std::string signal_name(int number) {
    const char* name = sigabbrev_np(number);
    const char* text = sigdescr_np(number);
    if (name == nullptr) {
        return "signal " + std::to_string(number);
    }
    return "SIG" + std::string(name) + (text != nullptr ? " (" + std::string(text) + ")" : "");
}

EndedRanks gravest(const std::vector<std::uint32_t>& ranks, const node::Segment& segment,
                   bool by_signal) {
    using State = node::RankStage;
    constexpr State by_weight[] = {State::initialised, State::aborting, State::not_started,
                                   State::finalised, State::doomed};
    EndedRanks gravest;
    for (const State state : by_weight) {
        for (const std::uint32_t rank : ranks) {
            if (segment.slot(rank).state.load(std::memory_order_acquire) == state) {
                gravest.ranks.push_back(rank);
            }
        }
        if (!gravest.ranks.empty()) {
            gravest.state = state;
            break;
        }
    }
    if (by_signal || gravest.ranks.empty()) { // the segment may hold anything
        gravest.ranks = ranks;
    }
    return gravest;
}

Outcome judge(const EndedRanks& ended) {
    const bool several = ended.ranks.size() > 1;
    const std::string who = (several ? "ranks " : "rank ") + describe_ranks(ended.ranks) + " (" +
                            ended.program + ", pid " + std::to_string(ended.pid) + ")";
    if (ended.state == node::RankStage::doomed) {
        return {}; // the rank that aborted is what has failed
    }
    if (WIFSIGNALED(ended.wait_status)) {
        const int number = WTERMSIG(ended.wait_status);
        std::string message =
            who + (several ? " were" : " was") + " killed by " + signal_name(number);
        if (number == ended.forwarded_signal) {
            return {Verdict::failed, killed_exit_code + number, message};
        }
        if (ended.overflowed) {
            message += ": its stack is full; a larger one: --stack-size SIZE";
        }
        if (number == SIGKILL) {
            message += ": by somebody, or by the kernel for want of memory";
        }
        return {Verdict::ends_job, killed_exit_code + number, message};
    }
    const int code = WEXITSTATUS(ended.wait_status);
    const std::string exited = who + " exited with code " + std::to_string(code);
    switch (ended.state) {
    case node::RankStage::initialised:
    case node::RankStage::aborting:
        return {Verdict::ends_job, failure_code(code), exited + " without calling MPI_Finalize"};
    case node::RankStage::finalised:
    case node::RankStage::doomed:
        break;
    case node::RankStage::not_started:
        if (ended.others_initialised) {
            return {Verdict::ends_job, failure_code(code),
                    exited + " without calling MPI_Init, and the others would wait for it"};
        }
        break;
    }
    if (code == 0) {
        return {};
    }
    return {Verdict::failed, code, exited};
}

Outcome recorded_end(const node::SegmentHeader& header, std::uint32_t rank,
                     const std::string& name) {
    // The text's end is the writer's duty; it may have died on the way.
    const std::string text(header.end_text, strnlen(header.end_text, sizeof header.end_text));
    const bool aborted = header.job_end.load(std::memory_order_acquire) == node::JobEnd::aborted;
    std::string message = "rank " + std::to_string(rank) + " (" + name + ") " +
                          (aborted ? "called MPI_Abort with code " + std::to_string(header.end_code)
                                   : "ended the job by a fatal error");
    if (!text.empty()) {
        message += ": " + text;
    }
    return {Verdict::ends_job, failure_code(header.end_code), message};
}

} // namespace warren::launch
