#include "mpi/rank/rank.hpp"

#include <cstring>
#include <sched.h>
#include <utility>

#include "mpi/job/mpiexec_bootstrap.hpp"

namespace warren {

Rank::Rank(const node::Segment& own_segment, std::uint32_t own_index)
    : Rank(own_segment, std::make_unique<node::MpiexecBootstrap>(own_segment, own_index, -1)) {}

Rank::Rank(node::Segment own_segment, std::unique_ptr<node::Bootstrap> bootstrap)
    : segment(std::move(own_segment)),
      index(bootstrap->numbers().node_rank),
      size(bootstrap->numbers().node_size),
      world_rank(bootstrap->numbers().world_rank),
      world_size(bootstrap->numbers().world_size),
      slot(segment.slot(index)),
      doorbell(segment.header(), slot.doorbell),
      waits(WaitPolicy::choose(segment.header().oversubscribed != 0, segment.header().fibres != 0,
                               fibres(), size == world_size)),
      load(waits.functions != nullptr
               ? &balance::LoadTable::at(segment.at(balance::loads)).ranks[index]
               : nullptr),
      profile(segment, index),
      bootstrap_(std::move(bootstrap)),
      vain_looks_(waits.shares_processor),
      looks_counted_(waits.looks),
      looks_left_(looks_counted_) {
    doorbell.join();
    if (profile.on()) {
        lock.guard();
    }
}

namespace {

std::uint32_t usable_processors() {
    cpu_set_t set;
    // Refused for more processors than the set has room for: plenty.
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&set))
                                                       : CPU_SETSIZE;
}

} // namespace

void Rank::share_by_threads() {
    const std::uint32_t processors = waits.shares_processor ? 1 : usable_processors();
    threads_.set_processors(processors);
    lock.share(processors);
}

bool Rank::looked_in_vain(std::uint64_t begin) {
    const std::uint64_t end = fibre::ticks();
    if (waits.functions != nullptr) {
        looks_left_ = looks_counted_;
        const bool shared = lock.shared();
        lock.unlock();
        const bool sleeps = waits.functions->found_nothing(looks_counted_ * (end - begin));
        if (sleeps && shared) { // the doorbell is for those that wait: see below
            give_way();
        }
        lock.lock();
        return sleeps && !shared;
    }
    const VainLooks::Next next =
        vain_looks_.after(looks_counted_, begin, end, VainLooks::count_switches);
    looks_counted_ = next.looks;
    looks_left_ = next.looks;
    // If there are several threads, those that wait have arrangements of their own for the
    // doorbell.
    const bool sleeps = next.then == VainLooks::Then::sleep && !lock.shared();
    if (next.then != VainLooks::Then::look_on && !sleeps) {
        lock.unlock();
        give_way();
        lock.lock();
        vain_looks_.yielded(end, fibre::ticks());
    }
    return sleeps;
}

void Rank::publish(const WaitReason& reason) {
    node::Activity& activity = slot.activity;
    constexpr auto relaxed = std::memory_order_relaxed;
    activity.call.store(reason.call, relaxed);
    activity.peer.store(reason.peer, relaxed);
    activity.peer_in_world.store(reason.peer_in_world, relaxed);
    activity.tag.store(reason.tag, relaxed);
    activity.context.store(reason.context, relaxed);
    activity.posted.store(reason.posted, relaxed);
    activity.unexpected.store(reason.unexpected, relaxed);
    activity.pending_sends.store(reason.pending_sends, relaxed);
    activity.requests.store(reason.requests, relaxed);
    std::strncpy(activity.communicator_name, reason.communicator_name,
                 sizeof activity.communicator_name - 1);
    // Readers take it as "waiting since": last, so that the rest is there.
    activity.since_ns.store(monotonic_ns(), std::memory_order_release);
}

void Rank::record_wait(const WaitReason& reason, std::uint64_t since, std::uint64_t ticks) {
    const bool known = reason.peer_in_world && reason.peer >= 0;
    profile.waited(reason.call, known ? static_cast<std::uint32_t>(reason.peer) : profile::nobody,
                   since, ticks);
}

void Rank::unpublish() {
    slot.activity.since_ns.store(0, std::memory_order_release);
}

} // namespace warren
