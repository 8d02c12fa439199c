#include "mpi/job/pmi_bootstrap.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "mpi.h"

namespace warren::node {

namespace {

std::string key_of(const char* what, std::uint32_t node) {
    return std::string("warren-") + what + "-" + std::to_string(node);
}

// Processors that the ranks of the node may use together: each may be bound to a few, but their
// parent, the launcher's part on the node, is not.
std::uint32_t processors_of_job() {
    cpu_set_t set;
    int count = 1;
    for (const pid_t pid : {getpid(), getppid()}) {
        if (sched_getaffinity(pid, sizeof set, &set) == 0) {
            count = std::max(count, CPU_COUNT(&set));
        }
    }
    return static_cast<std::uint32_t>(count);
}

// Which form of node map these nodes have, numbered in the order of their first ranks.
Error make_map(std::vector<std::uint32_t> node_of_rank, std::uint32_t rank, NodePlace& place,
               std::vector<std::uint32_t>& first) {
    std::vector<std::uint32_t> numbers; // by Warren's number, the launcher's
    for (std::uint32_t& node : node_of_rank) {
        const auto found = std::find(numbers.begin(), numbers.end(), node);
        const auto number = static_cast<std::uint32_t>(found - numbers.begin());
        if (found == numbers.end()) {
            numbers.push_back(node);
        }
        node = number;
    }
    place.node = node_of_rank[rank];
    place.nodes = static_cast<std::uint32_t>(numbers.size());
    place.world_size = static_cast<std::uint32_t>(node_of_rank.size());
    bool dealt = place.nodes > 1;
    bool filled = true;
    first.assign(place.nodes, 0);
    for (std::uint32_t at = 0; at < node_of_rank.size(); ++at) {
        dealt = dealt && node_of_rank[at] == at % place.nodes;
        if (at == 0 || node_of_rank[at] != node_of_rank[at - 1]) {
            filled = filled && (at == 0 || node_of_rank[at] > node_of_rank[at - 1]);
            first[node_of_rank[at]] = at;
        }
    }
    first.push_back(place.world_size);
    place.dealt = !filled && dealt ? 1 : 0;
    return filled || dealt ? Error{}
                           : fail(MPI_ERR_OTHER,
                                  "the launcher has placed the ranks neither node after node nor "
                                  "in turn on the nodes (Hydra: -ppn as many as a node is to have; "
                                  "srun: --distribution=block or cyclic)");
}

std::uint32_t ranks_here(const NodePlace& place, const std::vector<std::uint32_t>& first) {
    return place.dealt != 0 ? place.world_size / place.nodes +
                                  (place.node < place.world_size % place.nodes ? 1 : 0)
                            : first[place.node + 1] - first[place.node];
}

// Makes the node's segment, in its first process.
Error make_segment(LauncherClient& client, const NodePlace& place,
                   const std::vector<std::uint32_t>& first, Segment& segment) {
    if (Error error = Segment::create(
            {.ranks = ranks_here(place, first), .cores = processors_of_job(), .nodes = place.nodes},
            segment)) {
        return error;
    }
    *segment.at(node_place) = place;
    if (place.nodes > 1) {
        std::copy(first.begin(), first.end(), segment.at(first_ranks));
    }
    // Yama lets the descendants of this one copy large messages between each other.
    segment.header().launcher_pid = static_cast<std::uint32_t>(getppid());
    char name[HOST_NAME_MAX + 1] = {};
    gethostname(name, sizeof name - 1);
    if (Error error = client.put(key_of("name", place.node), name)) {
        return error;
    }
    const std::string where = std::to_string(getpid()) + " " + std::to_string(segment.descriptor());
    return client.put(key_of("segment", place.node), where);
}

Error open_segment(LauncherClient& client, const NodePlace& place, std::uint32_t first_of_node,
                   Segment& segment) {
    std::string where;
    if (Error error = client.get(first_of_node, key_of("segment", place.node), where)) {
        return error;
    }
    int pid = 0;
    int number = 0;
    char path[64];
    if (std::sscanf(where.c_str(), "%d %d", &pid, &number) != 2) {
        return fail(MPI_ERR_OTHER, "the launcher has a strange place of the node segment");
    }
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    const int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
        return fail(MPI_ERR_OTHER,
                    "the node segment that the node's first rank has made (%s): %s; ranks of a "
                    "node have to see each other's processes, as they don't in containers of their "
                    "own",
                    path, std::strerror(errno));
    }
    return Segment::attach(descriptor, segment);
}

} // namespace

Error PmiBootstrap::join(LauncherClient& client, Segment& segment, std::uint32_t& node_rank) {
    std::vector<std::uint32_t> node_of_rank;
    if (Error error = client.nodes(node_of_rank)) {
        return error;
    }
    NodePlace place = {};
    std::vector<std::uint32_t> first;
    if (Error error = make_map(std::move(node_of_rank), client.rank(), place, first)) {
        return error;
    }
    const NodeMap map(place, first.data());
    node_rank = map.slot_of(client.rank());
    const bool is_first = node_rank == 0;
    constexpr const char* secret_key = "warren-secret";
    if (is_first) {
        if (Error error = make_segment(client, place, first, segment)) {
            return error;
        }
        if (place.node == 0 && place.nodes > 1) {
            while (getrandom(&place.secret, sizeof place.secret, 0) < 0 && errno == EINTR) {
            }
            if (Error error = client.put(secret_key, {reinterpret_cast<const char*>(&place.secret),
                                                      sizeof place.secret})) {
                return error;
            }
        }
    }
    if (Error error = client.barrier()) {
        return error;
    }
    if (!is_first) {
        if (Error error = open_segment(client, place, map.world_rank_at(place.node, 0), segment)) {
            return error;
        }
    } else if (place.nodes > 1) {
        std::string secret;
        if (Error error = client.get(map.world_rank_at(0, 0), secret_key, secret)) {
            return error;
        }
        std::memcpy(&segment.at(node_place)->secret, secret.data(),
                    std::min(secret.size(), sizeof place.secret));
    }
    return client.barrier(); // the segment has been opened by all
}

PmiBootstrap::PmiBootstrap(Segment segment, std::uint32_t node_rank,
                           std::unique_ptr<LauncherClient> client)
    : MpiexecBootstrap(std::move(segment), node_rank, -1), client_(std::move(client)) {}

PmiBootstrap::~PmiBootstrap() {
    client_->finalize();
}

// Gets what the first rank of a node has put.
Error PmiBootstrap::ask(const char* what, std::uint32_t node, const std::string& end,
                        std::string& bytes) const {
    return client_->get(world_rank_at(node, 0), key_of(what, node) + end, bytes);
}

std::string PmiBootstrap::name_of_node(std::uint32_t node) const {
    std::string name;
    if (Error error = ask("name", node, "", name)) {
        error.drop();
    }
    return name;
}

std::uint32_t PmiBootstrap::enter_fence() {
    const std::uint32_t number = segment().at(job_counts)->fence.load(std::memory_order_acquire);
    if (Error error = fence()) {
        error.drop(); // get() finds nothing then
    }
    return number;
}

// The ranks of this node.
void PmiBootstrap::fence_node() {
    JobCounts& counts = *segment().at(job_counts);
    const std::uint32_t number = counts.fence.load(std::memory_order_acquire);
    if (counts.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == numbers().node_size) {
        end_fence(segment());
    }
    while (!fence_is_over(number)) {
        futex_wait(counts.fence, number);
    }
}

Error PmiBootstrap::fence() {
    fence_node();
    if (numbers().nodes == 1) {
        return {};
    }
    known_node_ = UINT32_MAX;
    ++fences_;
    if (numbers().node_rank == 0) {
        // A key is put once.
        if (Error error =
                client_->put(key_of("cards", numbers().node) + "-" + std::to_string(fences_) + "-",
                             collect_cards(segment()))) {
            return error;
        }
    }
    return client_->barrier();
}

std::vector<std::byte> PmiBootstrap::card_elsewhere(std::uint32_t node, std::uint32_t slot) {
    if (node != known_node_) {
        known_node_ = UINT32_MAX;
        if (Error error = ask("cards", node, "-" + std::to_string(fences_) + "-", known_cards_)) {
            error.drop(); // get() says that nothing is there
            return {};
        }
        if (!are_records(known_cards_)) {
            return {};
        }
        known_node_ = node;
    }
    return card_in(known_cards_, slot);
}

Bootstrap::Told PmiBootstrap::abort(JobEnd end, int code, const char* text) {
    if (!segment().record_end(end, numbers().node_rank, code, text)) {
        return Told::before;
    }
    // The launcher doesn't say why it ends the ranks, and this one may be the first that it ends.
    const std::string line = std::string("warren: ") + text + "\n";
    const bool is_said = write(STDERR_FILENO, line.data(), line.size()) > 0;
    client_->abort(code, text);
    return is_said ? Told::launcher : Told::nobody;
}

} // namespace warren::node
