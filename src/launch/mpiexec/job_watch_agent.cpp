// An agent's part of the watch: frames of mpiexec, fences, and rank 0's input.
#include <csignal>
#include <sys/socket.h>
#include <utility>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/job_watch.hpp"
#include "mpi/job/book.hpp"
#include "mpi/job/mpiexec_bootstrap.hpp"

namespace warren::launch {

// A rank aborts, or the last one of the node has come to a fence. The end of it: the process ends,
// which SIGCHLD tells.
void JobWatch::read_lifeline(JobProcess& process) {
    if (job_.agent == nullptr) {
        job_.events.forget(process.lifeline);
        look_for_recorded_end();
        return;
    }
    char word = 0;
    if (recv(process.lifeline, &word, 1, MSG_DONTWAIT) == 1 &&
        word == node::MpiexecBootstrap::fences) {
        job_.agent->link.send(FrameKind::fence, 0, node::collect_cards(job_.segment));
        return;
    }
    job_.events.forget(process.lifeline);
    look_for_recorded_end();
}

// Ranks of other nodes may wait for those that ended without MPI_Init.
void JobWatch::tell_without_init() {
    if (job_.agent == nullptr) {
        return;
    }
    EndedRanks ended = first_without_init_;
    ended.others_initialised = true;
    const Outcome outcome = judge(ended);
    job_.agent->link.send(FrameKind::without_init, static_cast<std::uint32_t>(outcome.exit_code),
                          outcome.message);
}

void JobWatch::read_link() {
    Link& link = job_.agent->link;
    const bool goes_on = link.receive();
    Frame frame;
    while (link.next(frame)) {
        take_frame(frame);
    }
    if (goes_on && !link.is_foreign()) {
        return;
    }
    // mpiexec has gone, or the way to it.
    job_.events.forget(link.input());
    job_.report.fail(exit_failure, "the connection to mpiexec has ended");
    kill_ranks();
}

void JobWatch::take_frame(const Frame& frame) {
    switch (frame.kind) {
    case FrameKind::input:
        job_.input.give(frame.payload);
        break;
    case FrameKind::signal:
        take_signal(static_cast<int>(frame.number));
        break;
    case FrameKind::states:
        print_states();
        break;
    case FrameKind::end_job:
        end_job(exit_failure, "");
        break;
    case FrameKind::output_broken:
        job_.output.break_output(static_cast<int>(frame.number));
        break;
    case FrameKind::fence_over:
        end_fence(frame);
        break;
    default: // an agent's own
        break;
    }
}

void JobWatch::end_fence(const Frame& frame) {
    Unpacker unpacker(frame.payload);
    const std::vector<std::string> cards = unpacker.texts();
    if (!unpacker.sound() || cards.size() != job_.agent->plan.nodes()) {
        end_job(exit_failure, "mpiexec and its agent are of different builds of Warren");
        return;
    }
    if (Error error = node::Book(job_.book).write_cards(cards)) {
        job_.report.fail(exit_failure, error);
        end_job(exit_failure, "");
        return;
    }
    node::MpiexecBootstrap::end_fence(job_.segment);
}

// Moves what has come from mpiexec to rank 0, and what waits for mpiexec on.
void JobWatch::update_link() {
    if (job_.agent == nullptr) {
        return;
    }
    Link& link = job_.agent->link;
    const std::size_t taken = job_.input.flush();
    if (taken > 0) {
        link.send(FrameKind::input_taken, static_cast<std::uint32_t>(taken));
    }
    const bool relays = job_.input.has_waiting();
    if (relays != std::exchange(relay_watched_, relays)) {
        relays ? job_.events.watch(job_.input.writer(), Source::input_taken)
               : job_.events.forget(job_.input.writer());
    }
    link.flush();
    const bool sends = link.backlog() > 0;
    if (sends != std::exchange(link_watched_, sends)) {
        sends ? job_.events.watch(link.output(), Source::link_takes)
              : job_.events.forget(link.output());
    }
}

} // namespace warren::launch
