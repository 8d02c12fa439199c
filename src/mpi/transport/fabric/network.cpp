#include "mpi/transport/fabric/network.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "base/futex.hpp"
#include "mpi.h"
#include "mpi/rank/doorbell.hpp"

namespace warren::transport::fabric {

namespace {

constexpr const char* port_key = "port";

// The card of a process's first rank; the port's address follows.
struct PortCard {
    std::uint32_t ranks;
    std::uint32_t pulse; // its place
};

// Ends the watcher's wait for the port.
void signal_watcher(int event) {
    const std::uint64_t one = 1;
    if (write(event, &one, sizeof one) < 0) {
        // It looks again by itself.
    }
}

} // namespace

Network::Network(const node::Segment& segment, std::uint32_t first_slot, std::uint32_t ranks,
                 std::unique_ptr<node::Bootstrap> names)
    : segment_(segment),
      endpoints_(segment),
      node_(segment.at(node::node_place)->node),
      first_slot_(first_slot),
      own_names_(std::move(names)),
      names_(own_names_.get()) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        members_.push_back(std::make_unique<Member>());
    }
}

Error Network::open(const node::Segment& segment, std::uint32_t first_slot, std::uint32_t ranks,
                    std::unique_ptr<node::Bootstrap> names, std::unique_ptr<Network>& opened) {
    Wish wish;
    if (Error error = Wish::parse(std::getenv("WARREN_NETWORK"), wish)) {
        return error;
    }
    std::unique_ptr<Network> network(new Network(segment, first_slot, ranks, std::move(names)));
    Network* const self = network.get();
    const Port::Identity identity = {.secret = segment.at(node::node_place)->secret,
                                     .process = self->endpoints_.world_rank(first_slot),
                                     .ranks = self->endpoints_.world_size()};
    if (Error error = Port::open(
            identity, wish,
            [self](std::uint32_t process, Address& address) {
                return self->resolve(process, address);
            },
            [self](std::uint32_t process, const std::string& cause) { self->lost(process, cause); },
            network->port_)) {
        return error;
    }
    network->pulse_.open(network->port_->address());
    network->stop_event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (network->stop_event_ < 0) {
        return fail(MPI_ERR_OTHER, "no descriptor for the thread that watches the network: %s",
                    std::strerror(errno));
    }
    try {
        network->start_watcher();
    } catch (const std::system_error& reason) {
        return fail(MPI_ERR_OTHER, "no thread that watches the network: %s", reason.what());
    }
    opened = std::move(network);
    return {};
}

Network::~Network() {
    if (watcher_.joinable()) {
        stops_.store(true);
        signal_watcher(stop_event_);
        watched_.fetch_add(1);
        kernel_wake(watched_, 1);
        watcher_.join();
    }
    if (stop_event_ >= 0) {
        close(stop_event_);
    }
}

// --- Addresses

Error Network::publish(node::Bootstrap& of_first_rank) const {
    const PortCard card = {.ranks = static_cast<std::uint32_t>(members_.size()),
                           .pulse = pulse_.place()};
    std::vector<std::byte> value(sizeof card);
    std::memcpy(value.data(), &card, sizeof card);
    value.insert(value.end(), port_->address().begin(), port_->address().end());
    return of_first_rank.put(port_key, value);
}

void Network::ask(node::Bootstrap* names) {
    const std::lock_guard guard(port_->lock());
    names_ = names;
}

Error Network::resolve(std::uint32_t process, Address& address) {
    if (names_ == nullptr) {
        return fail(MPI_ERR_OTHER, "rank %u is asked for when MPI ends", process);
    }
    std::vector<std::byte> value;
    if (Error error = names_->get(process, port_key, value)) {
        return error;
    }
    if (value.size() < sizeof(PortCard)) {
        return fail(MPI_ERR_OTHER, "the address of rank %u is damaged", process);
    }
    PortCard card;
    std::memcpy(&card, value.data(), sizeof card);
    address.assign(value.begin() + sizeof card, value.end());
    pulse_.watch(endpoints_.map().node_of(process), address, card.pulse);
    return {};
}

// The process of a slot of another node is the last before it that has put an address.
Error Network::find_process(std::uint32_t node, std::uint32_t slot, Process& found) {
    std::vector<Process>& known = processes_[node];
    for (const Process& process : known) {
        if (slot >= process.first_slot && slot - process.first_slot < process.ranks) {
            found = process;
            return {};
        }
    }
    for (std::uint32_t first = slot + 1; first-- > 0;) {
        std::vector<std::byte> value;
        Error error = names_ == nullptr ? fail(MPI_ERR_OTHER, "MPI ends")
                                        : names_->get(endpoints_.map().world_rank_at(node, first),
                                                      port_key, value);
        if (error) {
            error.drop();
            continue;
        }
        PortCard card = {};
        std::memcpy(&card, value.data(), std::min(sizeof card, value.size()));
        if (slot - first >= card.ranks) {
            break;
        }
        found = {.first_slot = first, .ranks = card.ranks};
        known.push_back(found);
        return {};
    }
    return fail(MPI_ERR_OTHER, "rank %u has no address: it has not called MPI_Init",
                endpoints_.map().world_rank_at(node, slot));
}

Error Network::way_to(std::uint32_t endpoint, Way& way) {
    const auto known = ways_.find(endpoint);
    if (known != ways_.end()) [[likely]] {
        way = known->second;
        return {};
    }
    const std::uint32_t rank = endpoints_.world_rank(endpoint);
    const std::uint32_t node = endpoints_.map().node_of(rank);
    way.slot = endpoints_.map().slot_of(rank);
    Process process = {};
    if (Error error = find_process(node, way.slot, process)) {
        return error;
    }
    if (Error error =
            port_->link_to(endpoints_.map().world_rank_at(node, process.first_slot), way.link)) {
        return error;
    }
    ways_.emplace(endpoint, way);
    return {};
}

// --- Sending

bool Network::send(std::uint32_t slot, std::uint32_t endpoint, const Header& header,
                   const Extra* extra, const Source& source, std::size_t bytes) {
    const std::lock_guard guard(port_->lock());
    Way way = {};
    if (Error error = way_to(endpoint, way)) {
        ErrorRecord* const record = error.take();
        const std::string text = record->text;
        delete record;
        give_up(text);
    }
    const CellHeader cell = {.kind = header.kind,
                             .block = extra != nullptr ? std::uint16_t{1} : std::uint16_t{0},
                             .slot = way.slot,
                             .sender = endpoints_.world_rank(slot),
                             .context = header.context,
                             .source = header.source,
                             .tag = header.tag,
                             .bytes = static_cast<std::uint32_t>(bytes),
                             .reserved = 0};
    const bool sent = port_->send(*way.link, cell, extra, source);
    if (!port_->is_idle() && !patrols()) {
        begin_patrol();
    }
    return sent;
}

bool Network::is_idle() const {
    const std::lock_guard guard(port_->lock());
    return port_->is_idle();
}

void Network::want_space(std::uint32_t slot) {
    if (!member_of(slot).wants_space.exchange(true)) {
        space_wanted_.fetch_add(1);
    }
}

void Network::ring_for_space() {
    for (std::uint32_t member = 0; member < members_.size(); ++member) {
        if (members_[member]->wants_space.load(std::memory_order_relaxed) &&
            members_[member]->wants_space.exchange(false)) {
            space_wanted_.fetch_sub(1);
            ring(first_slot_ + member);
        }
    }
}

// --- Receiving

void Network::ring(std::uint32_t slot) const {
    Doorbell::ring(segment_.header(), segment_.slot(slot).doorbell);
}

void Network::deliver(const FrameCell& cell) {
    const std::uint32_t slot = cell.header.slot;
    if (!is_sound(cell) || slot < first_slot_ || slot - first_slot_ >= members_.size()) {
        give_up("a frame that a process of the job has sent is damaged");
    }
    Mail mail = {
        .header = cell.header, .extra = {}, .data = {cell.data, cell.data + cell.header.bytes}};
    if (cell.extra != nullptr) {
        std::memcpy(mail.extra, cell.extra, extra_bytes);
    }
    Member& member = member_of(slot);
    {
        const std::lock_guard guard(member.mutex);
        member.mail.push_back(std::move(mail));
        member.has_mail.store(true, std::memory_order_release);
    }
    ring(slot);
}

// --- Lost connections

void Network::give_up(const std::string& text) {
    std::fprintf(stderr, "warren: rank %u: %s\n", endpoints_.world_rank(first_slot_), text.c_str());
    if (names_ != nullptr) {
        names_->abort(node::JobEnd::fatal_error, 1, text.c_str());
    }
    std::_Exit(1);
}

std::string Network::described(std::uint32_t node) const {
    std::string ranks;
    std::uint32_t last = 0;
    for (std::uint32_t rank = 0; rank < endpoints_.world_size(); ++rank) {
        if (endpoints_.map().node_of(rank) != node) {
            continue;
        }
        const bool follows = !ranks.empty() && rank == last + 1;
        const bool ends =
            rank + 1 == endpoints_.world_size() || endpoints_.map().node_of(rank + 1) != node;
        last = rank;
        if (!follows) {
            ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
        } else if (ends) {
            ranks += "-" + std::to_string(rank);
        }
    }
    const std::string name = names_ != nullptr ? names_->name_of_node(node) : std::to_string(node);
    return "node " + name + " (ranks " + ranks + ")";
}

void Network::lost(std::uint32_t process, const std::string& cause) {
    if (ends_) {
        return;
    }
    usleep(agent_comes_first_us);
    give_up("the connection to rank " + std::to_string(process) + " on " +
            described(endpoints_.map().node_of(process)) + " was lost: " + cause);
}

void Network::look_after_nodes() {
    std::uint32_t node;
    std::string cause;
    if (!pulse_.look(node, cause)) {
        return;
    }
    {
        const std::lock_guard guard(port_->lock());
        if (ends_) {
            return;
        }
    }
    usleep(agent_comes_first_us);
    const std::lock_guard guard(port_->lock());
    if (!ends_) {
        give_up("the connection to " + described(node) + " was lost: " + cause);
    }
}

void Network::leave() {
    const std::lock_guard guard(port_->lock());
    ends_ = ++left_ >= members_.size();
}

// --- The watcher

void Network::falls_asleep(std::uint32_t slot) {
    Member& member = member_of(slot);
    if (!member.asleep) {
        member.asleep = true;
        if ((watched_.fetch_add(1) & ~patrol_bit) == 0) {
            kernel_wake(watched_, 1);
            return;
        }
    }
    // The watcher may wait for the descriptor since before this rank's last look, which may have
    // taken a part of what the provider had, and for longer than what waits to leave can stand.
    bool may_wait;
    const std::lock_guard guard(port_->lock());
    if (poll_for_all(may_wait) || !may_wait) {
        signal_watcher(stop_event_);
    }
}

void Network::wakes(Member& member) {
    member.asleep = false;
    watched_.fetch_sub(1);
}

void Network::start_watcher() {
    const BlockedSignals blocked; // signals are the program's
    watcher_ = std::thread([this] { watch(); });
}

bool Network::poll_for_all(bool& may_wait) {
    const std::lock_guard guard(port_->lock());
    const bool moved = port_->poll([this](const FrameCell& cell) { deliver(cell); });
    if (moved && space_wanted_.load(std::memory_order_relaxed) != 0) {
        ring_for_space();
    }
    may_wait = !moved && port_->may_wait();
    return moved;
}

void Network::watch() {
    std::uint32_t rounds = 0;
    while (!stops_.load()) {
        const std::uint32_t watched = watched_.load();
        if (watched == 0) {
            // Ranks that poll look at the port, but not after other nodes.
            kernel_wait(watched_, 0, &look_after_nodes_every);
            look_after_nodes();
            continue;
        }
        bool waits = true;
        if (watched == patrol_bit) {
            const timespec time = patrol_time();
            kernel_wait(watched_, patrol_bit, &time);
        } else {
            bool may_wait;
            waits = !poll_for_all(may_wait);
            if (waits) {
                wait_for_port(may_wait);
            }
        }
        if (patrols()) {
            patrol();
        }
        if ((waits && watched != patrol_bit) || ++rounds % rounds_per_look_at_nodes == 0) {
            look_after_nodes();
        }
    }
}

// Under the port's lock.
void Network::begin_patrol() {
    patrol_us_.store(shortest_patrol_us, std::memory_order_relaxed);
    polls_at_patrol_ = port_->polls();
    watched_.fetch_or(patrol_bit);
    kernel_wake(watched_, 1);
    signal_watcher(stop_event_);
}

void Network::patrol() {
    const std::unique_lock guard(port_->lock(), std::try_to_lock);
    if (!guard.owns_lock()) {
        return; // who has it sends or polls
    }
    bool moved = false;
    bool may_wait;
    if (port_->polls() == polls_at_patrol_ && !port_->is_idle()) {
        moved = poll_for_all(may_wait);
    }
    polls_at_patrol_ = port_->polls();
    const std::uint32_t us = patrol_us_.load(std::memory_order_relaxed);
    if (us >= longest_patrol_us && port_->is_idle()) {
        watched_.fetch_and(~patrol_bit);
    }
    patrol_us_.store(moved ? shortest_patrol_us : std::min(2 * us, longest_patrol_us),
                     std::memory_order_relaxed);
}

timespec Network::patrol_time() const {
    return {.tv_sec = 0,
            .tv_nsec = std::int64_t{patrol_us_.load(std::memory_order_relaxed)} * 1000};
}

void Network::wait_for_port(bool by_descriptor) const {
    const int descriptor = port_->wait_descriptor();
    pollfd places[] = {{.fd = stop_event_, .events = POLLIN, .revents = 0},
                       {.fd = pulse_.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = descriptor, .events = POLLIN, .revents = 0}};
    const bool waits_for_it = by_descriptor && descriptor >= 0;
    timespec longest = look_again;
    if (patrols()) {
        longest = patrol_time();
    } else if (waits_for_it) {
        // A provider may have had no room for what was to be sent, and does not tell when it has.
        longest = look_at_port_again;
    }
    ::ppoll(places, waits_for_it ? 3 : 2, &longest, nullptr);
    std::uint64_t signals;
    if ((places[0].revents & POLLIN) != 0 && read(stop_event_, &signals, sizeof signals) < 0) {
        // Another thread can't have read it: the wait is over anyway.
    }
}

} // namespace warren::transport::fabric
