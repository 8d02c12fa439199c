// fake_rank: what the launcher sees of an MPI process, without an MPI library: it attaches the node
// segment, goes through the states of a rank, and ends as told. So the launcher is tested alone.
//
//     fake_rank WHO DEED [ARGUMENT]     rank WHO ("all": every rank) does DEED, the others wait
//
// deeds: finish, leave CODE, abort CODE, crash SIGNAL, wait, stubborn (ignores signals),
// fork_and_leave (a background child survives the rank), late_init (initialises after 0.5 s,
// waits), skip CODE (ends without initialising)
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi/calls.hpp"
#include "mpi/job/segment.hpp"

namespace {

using warren::node::JobEnd;
using warren::node::RankStage;
using warren::node::Segment;

int number_of(const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : -1;
}

void wait_in_call(Segment& segment, std::uint32_t rank) {
    warren::node::Activity& activity = segment.slot(rank).activity;
    activity.call.store(warren::mpi::calls::MPI_Recv);
    activity.peer.store(static_cast<int>((rank + 1) % segment.ranks()));
    activity.tag.store(42);
    activity.posted.store(3);
    std::snprintf(activity.communicator_name, sizeof activity.communicator_name, "MPI_COMM_WORLD");
    activity.since_ns.store(warren::monotonic_ns(), std::memory_order_release);
    while (true) {
        pause();
    }
}

} // namespace

int main(int count, char** words) {
    if (count < 3) {
        return 2;
    }
    const std::string who = words[1];
    const std::string deed = words[2];
    const int argument = count > 3 ? std::atoi(words[3]) : 0;
    const int rank_number = number_of("WARREN_RANK");
    const auto rank = static_cast<std::uint32_t>(rank_number);
    const bool acts = who == "all" || who == std::to_string(rank_number);

    if (acts && deed == "skip") {
        return argument;
    }
    if (deed == "late_init" || (!acts && deed == "skip")) {
        usleep(500'000);
    }
    const int lifeline = number_of("WARREN_LIFELINE");
    Segment segment;
    warren::Error error = Segment::attach(number_of("WARREN_SEGMENT"), segment);
    if (error) {
        std::fprintf(stderr, "fake_rank: %s\n", error.take()->text.c_str());
        return 1;
    }
    fcntl(segment.descriptor(), F_SETFD, FD_CLOEXEC);
    fcntl(lifeline, F_SETFD, FD_CLOEXEC);
    segment.slot(rank).pid.store(getpid());
    segment.slot(rank).state.store(RankStage::initialised);
    if (!acts) {
        wait_in_call(segment, rank);
    }
    if (deed == "finish") {
        segment.slot(rank).state.store(RankStage::finalised);
        return argument;
    }
    usleep(100'000); // everybody is there
    if (deed == "leave") {
        return argument;
    }
    if (deed == "abort") {
        segment.slot(rank).state.store(RankStage::aborting);
        segment.record_end(JobEnd::aborted, rank, argument, "the density is negative");
        [[maybe_unused]] const ssize_t done = write(lifeline, "", 1);
        _exit(argument);
    }
    if (deed == "crash") {
        raise(argument);
    }
    if (deed == "fork_and_leave") {
        if (fork() == 0) {
            setpgid(0, 0);
            wait_in_call(segment, rank);
        }
        return argument;
    }
    if (deed == "stubborn") {
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
            signal(number, SIG_IGN);
        }
    }
    wait_in_call(segment, rank);
}
