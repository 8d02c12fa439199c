#include "mpi/entry/enrolment.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/futex.hpp"
#include "mpi.h"
#include "mpi/entry/rank_state.hpp"
#include "mpi/job/mpiexec_bootstrap.hpp"
#include "mpi/job/node_map.hpp"
#include "mpi/job/pmi_bootstrap.hpp"
#include "mpi/job/pmi_client.hpp"
#include "mpi/job/pmix_client.hpp"
#include "runtime/process_ranks/process_ranks.hpp"

namespace warren::mpi {

namespace {

// State that all ranks of this process share, from the first to the last of them.
struct Link {
    node::Segment segment;
    std::uint32_t first_rank = 0;
    std::uint32_t ranks = 1;
    std::uint32_t left = 0; // have left
    int lifeline = -1;
    int book = -1; // of the other nodes; -1: there are none
    // Talks to a launcher that is not Warren's, until its rank is there.
    std::unique_ptr<node::LauncherClient> client;
    // To other nodes, if there are any: by the rank's number in the process, or one for all.
    std::vector<std::unique_ptr<transport::fabric::Network>> networks;
};

constinit std::mutex link_mutex;
constinit Link* process_link = nullptr;

// The number behind an environment variable, or -1.
long environment_number(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') {
        return -1;
    }
    char* end = nullptr;
    const long number = std::strtol(text, &end, 10);
    return *end == '\0' ? number : -1;
}

// A program started by a launcher that Warren can't talk to would be so many programs of one rank
// each, which nobody wants. Refuses with what was seen.
Error refuse_foreign_launcher() {
    struct Sign {
        const char* variable;
        long from; // value that shows that there is more than one process
        const char* launcher;
        const char* other_way;
    };
    static constexpr Sign signs[] = {
        {"PMI_SIZE", 2, "a PMI launcher without the connection PMI_FD", ""},
        {"PMI_RANK", 1, "a PMI launcher without the connection PMI_FD", ""},
        {"OMPI_COMM_WORLD_SIZE", 2, "Open MPI's mpirun", ""},
        {"PMIX_RANK", 0, "a PMIx launcher without PMIX_NAMESPACE", ""},
        {"SLURM_STEP_NUM_TASKS", 2, "srun without PMI", " or srun --mpi=pmi2 or --mpi=pmix"},
    };
    for (const Sign& sign : signs) {
        const long value = environment_number(sign.variable);
        // A batch script's environment has the variables of its own step, of one task.
        const bool slurm = std::strncmp(sign.variable, "SLURM", 5) == 0;
        // A rank's child that has left the job still has the variables that mpiexec set beside
        // WARREN_RANK.
        const bool own = std::strncmp(sign.variable, "OMPI", 4) == 0;
        if (value >= sign.from && !(slurm && std::getenv("SLURM_PROCID") == nullptr) &&
            !(own && std::getenv("WARREN_JOB") != nullptr)) {
            return fail(
                MPI_ERR_OTHER,
                "this program was started by %s (%s=%ld), which Warren can't talk to; start "
                "it with Warren's mpiexec%s, or unset %s to run one rank",
                sign.launcher, sign.variable, value, sign.other_way, sign.variable);
        }
    }
    return {};
}

// A process that a rank starts inherits the rank's variables but is not the rank: another process
// is, or will be. The missing descriptors tell, because exec closes them.
Error refuse_child_of_rank() {
    return fail(MPI_ERR_OTHER,
                "this process was started by rank %.20s of a job (WARREN_RANK is set), or below "
                "it, without the rank's descriptors, as Python's multiprocessing (spawn) and "
                "subprocess do: it is not the rank and can't use MPI; start it with mpiexec -n 1, "
                "or unset WARREN_RANK and WARREN_SEGMENT, to make it a job of its own; what starts "
                "the rank's program and is no MPI program itself may pass the descriptors on "
                "(subprocess: close_fds=False)",
                std::getenv("WARREN_RANK"));
}

void close_on_exec(int descriptor) {
    fcntl(descriptor, F_SETFD, fcntl(descriptor, F_GETFD) | FD_CLOEXEC);
}

// Asks the kernel to end this process when mpiexec, which holds the other end, is gone.
void watch_lifeline(int descriptor) {
    close_on_exec(descriptor);
    fcntl(descriptor, F_SETOWN, getpid());
    fcntl(descriptor, F_SETSIG, SIGKILL);
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_ASYNC);
}

// Fibres share their process's port. Ranks that are threads have one each, as processes: their
// threads may have descriptors of their own (launch/host), and a port is made of descriptors.
bool have_one_port() {
    return fibres() != nullptr;
}

// The port to the job's other nodes for a rank of this process.
Error open_network(Link& link, std::uint32_t number) {
    const bool together = have_one_port();
    std::unique_ptr<transport::fabric::Network>& network = link.networks[together ? 0 : number];
    if (network != nullptr) {
        return {};
    }
    const std::uint32_t first = together ? link.first_rank : link.first_rank + number;
    std::unique_ptr<node::Bootstrap> names;
    if (!link.client) {
        names =
            std::make_unique<node::MpiexecBootstrap>(link.segment, first, link.lifeline, link.book);
    }
    if (Error error = transport::fabric::Network::open(
            link.segment, first, together ? link.ranks : 1, std::move(names), network)) {
        return error;
    }
    if (link.segment.header().verbose != 0) {
        std::fprintf(stderr, "warren: node %u: network: %s\n",
                     link.segment.at(node::node_place)->node, network->why().c_str());
    }
    return {};
}

// Has others find a rank's port, if it has one of its own or is the first of those that share it.
Error publish_network(const RankState& rank_state, Enrolment& made) {
    return rank_state.number == 0 || !have_one_port() ? made.network->publish(*made.bootstrap)
                                                      : Error{};
}

// Waits until all ranks of the job have come here, so that all addresses are known. Fibres let
// others come.
Error meet_others(node::Bootstrap& bootstrap) {
    if (fibres() == nullptr) {
        return bootstrap.fence();
    }
    const std::uint32_t fence = bootstrap.enter_fence();
    while (!bootstrap.fence_is_over(fence)) {
        give_way();
    }
    return {};
}

// The rank of another launcher.
Error join_by(std::unique_ptr<node::LauncherClient> client, Link& link) {
    if (Error error = client->connect()) {
        return error;
    }
    if (Error error = node::PmiBootstrap::join(*client, link.segment, link.first_rank)) {
        return error;
    }
    prctl(PR_SET_PTRACER, static_cast<unsigned long>(link.segment.header().launcher_pid), 0, 0, 0);
    link.client = std::move(client);
    return {};
}

// The segment that mpiexec made, or one for a program started alone.
Error make_link(Link& link) {
    const long descriptor = environment_number("WARREN_SEGMENT");
    if (descriptor < 0) {
        if (std::getenv("WARREN_RANK") != nullptr) { // below a thread or a fibre
            return refuse_child_of_rank();
        }
        if (node::PmiClient::has_launcher()) {
            return join_by(std::make_unique<node::PmiClient>(), link);
        }
        if (node::PmixClient::has_launcher()) {
            return join_by(std::make_unique<node::PmixClient>(), link);
        }
        if (Error error = refuse_foreign_launcher()) {
            return error;
        }
        return node::Segment::create({.ranks = 1, .cores = 1}, link.segment);
    }
    const long first_rank = environment_number("WARREN_RANK");
    const long lifeline = environment_number("WARREN_LIFELINE");
    if (first_rank < 0 || lifeline < 0) {
        return fail(MPI_ERR_OTHER, "WARREN_SEGMENT is set, but WARREN_RANK or WARREN_LIFELINE is "
                                   "not: start the program with Warren's mpiexec");
    }
    const char* count = std::getenv(process_ranks::count_variable);
    const long ranks = count == nullptr ? 1 : environment_number(process_ranks::count_variable);
    if (ranks < 1) {
        return fail(MPI_ERR_OTHER,
                    "%s is \"%s\", not a number of ranks: start the program with "
                    "Warren's mpiexec",
                    process_ranks::count_variable, count);
    }
    if (!node::Segment::is_behind(static_cast<int>(descriptor))) {
        return refuse_child_of_rank();
    }
    if (Error error = node::Segment::attach(static_cast<int>(descriptor), link.segment)) {
        return error;
    }
    close_on_exec(static_cast<int>(descriptor));
    const node::NodePlace& place = *link.segment.at(node::node_place);
    const node::NodeMap map = node::NodeMap::of(link.segment);
    const auto world_rank = static_cast<std::uint32_t>(first_rank);
    if (first_rank >= static_cast<long>(place.world_size) ||
        map.node_of(world_rank) != place.node ||
        map.slot_of(world_rank) + ranks > static_cast<long>(link.segment.ranks())) {
        return fail(MPI_ERR_OTHER,
                    "WARREN_RANK is %ld for %ld ranks, but the job has %u ranks, %u of them on "
                    "this node",
                    first_rank, ranks, place.world_size, link.segment.ranks());
    }
    if (place.nodes > 1) {
        link.book = static_cast<int>(environment_number("WARREN_BOOK"));
        close_on_exec(link.book);
    }
    link.first_rank = map.slot_of(world_rank);
    link.ranks = static_cast<std::uint32_t>(ranks);
    link.lifeline = static_cast<int>(lifeline);
    watch_lifeline(link.lifeline);
    // Where Yama restricts ptrace, large messages are copied only by processes that the sender has
    // named: the ranks of a job are children of one mpiexec, whose descendants this one admits.
    prctl(PR_SET_PTRACER, static_cast<unsigned long>(link.segment.header().launcher_pid), 0, 0, 0);
    return {};
}

void end_link() {
    if (process_link->lifeline >= 0) {
        close(process_link->lifeline);
    }
    delete process_link;
    process_link = nullptr;
}

} // namespace

namespace {

// All but to wait for others.
Error join_process(const RankState& rank_state, Enrolment& made) {
    if (!rank_state.bound) {
        return fail(MPI_ERR_OTHER,
                    "this process has several ranks (%s=%s), and the calling thread is none of "
                    "them: call warren_rank_bind before (warren/ranks.h, -lwarren)",
                    process_ranks::count_variable, std::getenv(process_ranks::count_variable));
    }
    const std::lock_guard guard(link_mutex);
    if (process_link == nullptr) {
        auto link = std::make_unique<Link>();
        if (Error error = make_link(*link)) {
            return error;
        }
        link->networks.resize(link->ranks);
        process_link = link.release();
    }
    Link& link = *process_link;
    if (rank_state.number >= link.ranks) {
        return fail(MPI_ERR_OTHER, "the calling thread is rank %u of this process, which has %u",
                    rank_state.number, link.ranks);
    }
    const std::uint32_t rank = link.first_rank + rank_state.number;
    if (link.lifeline >= 0) {
        // A script that runs two MPI programs: the second would find the queues in the middle of
        // the first one's traffic. Initialised already now, so that of two at once one is refused.
        node::RankSlot& slot = link.segment.slot(rank);
        node::RankStage before = node::RankStage::not_started;
        if (!slot.state.compare_exchange_strong(before, node::RankStage::initialised)) {
            const std::int32_t pid = slot.pid.load(std::memory_order_relaxed);
            if (link.ranks == 1) {
                end_link();
            }
            return fail(MPI_ERR_OTHER,
                        "rank %u of this job has been process %d already: a rank is one MPI "
                        "program, start the next one with an mpiexec of its own",
                        rank, pid);
        }
        slot.pid.store(getpid(), std::memory_order_relaxed);
    }
    made.segment = link.segment;
    if (link.segment.at(node::node_place)->nodes > 1) {
        if (Error error = open_network(link, rank_state.number)) {
            return error;
        }
        made.network = link.networks[have_one_port() ? 0 : rank_state.number].get();
    }
    if (link.client) {
        made.bootstrap =
            std::make_unique<node::PmiBootstrap>(link.segment, rank, std::move(link.client));
        if (made.network != nullptr) {
            made.network->ask(made.bootstrap.get());
        }
    } else {
        made.bootstrap =
            std::make_unique<node::MpiexecBootstrap>(link.segment, rank, link.lifeline, link.book);
    }
    return made.network != nullptr ? publish_network(rank_state, made) : Error{};
}

} // namespace

Error enrol(const RankState& rank_state, Enrolment& made) {
    if (Error error = join_process(rank_state, made)) {
        return error;
    }
    return made.network != nullptr ? meet_others(*made.bootstrap) : Error{};
}

void leave_job(const RankState& rank_state) {
    const std::lock_guard guard(link_mutex);
    if (!have_one_port()) {
        process_link->networks[rank_state.number].reset();
    }
    if (++process_link->left == process_link->ranks) {
        end_link();
    }
}

} // namespace warren::mpi
