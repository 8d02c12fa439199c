#include "runtime/fibres/object_waits.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <utility>

#include "runtime/fibres/scheduler.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

namespace {} // namespace

ObjectWaits::ObjectWaits(std::uint32_t fibres) {
    const std::uint64_t places = std::bit_ceil(std::max<std::uint64_t>(fibres, 16));
    places_ = std::make_unique<Place[]>(places);
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(places));
}

ObjectWait* ObjectWaits::find(const Place& place, const void* object) {
    ObjectWait* first = place.first;
    while (first != nullptr && first->object_ != object) {
        first = first->object_next_;
    }
    return first;
}

void ObjectWaits::put_in(Place& place, ObjectWait& wait) {
    wait.arrival_ = ++place.arrivals;
    wait.next_ = nullptr;
    ObjectWait* first = find(place, wait.object_);
    if (first != nullptr) {
        wait.before_ = first->last_;
        first->last_->next_ = &wait;
    } else {
        first = &wait;
        wait.before_ = nullptr;
        wait.round_ = 0;
        wait.object_before_ = nullptr;
        wait.object_next_ = std::exchange(place.first, &wait);
        if (wait.object_next_ != nullptr) {
            wait.object_next_->object_before_ = &wait;
        }
    }
    first->last_ = &wait;
    place.count.fetch_add(1, std::memory_order_seq_cst); // invariant 2
}

void ObjectWaits::take_out(Place& place, ObjectWait& wait) {
    if (wait.next_ != nullptr) {
        wait.next_->before_ = wait.before_;
    } else {
        find(place, wait.object_)->last_ = wait.before_;
    }
    if (wait.before_ != nullptr) {
        wait.before_->next_ = wait.next_;
    } else {
        // The next one stands for the object in its stead.
        ObjectWait* const heir = wait.next_ != nullptr ? wait.next_ : wait.object_next_;
        (wait.object_before_ == nullptr ? place.first : wait.object_before_->object_next_) = heir;
        if (wait.next_ != nullptr) {
            heir->last_ = wait.last_;
            heir->round_ = wait.round_;
            heir->object_before_ = wait.object_before_;
            heir->object_next_ = wait.object_next_;
            if (heir->object_next_ != nullptr) {
                heir->object_next_->object_before_ = heir;
            }
        } else if (heir != nullptr) {
            heir->object_before_ = wait.object_before_;
        }
    }
    place.count.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t ObjectWaits::tell(const void* object, std::uint32_t count) {
    std::atomic_thread_fence(std::memory_order_seq_cst); // invariant 2
    Place& place = place_of(object);
    if (place.count.load(std::memory_order_relaxed) == 0 || !scheduler()->enabled()) {
        return 0;
    }
    const Inside inside;
    std::uint64_t last_arrival = 0; // no more than are there now: who is told may come again
    std::uint32_t told = 0;
    std::array<std::atomic<std::uint32_t>*, told_at_once> waits{};
    std::size_t number = 0;
    do {
        number = 0;
        {
            const std::lock_guard guard(place.lock);
            last_arrival = last_arrival != 0 ? last_arrival : place.arrivals;
            while (number < waits.size() && told < count) {
                ObjectWait* const first = find(place, object);
                if (first == nullptr || first->arrival_ > last_arrival) {
                    break;
                }
                waits[number++] = &first->told_;
                ++told;
                take_out(place, *first);
                first->told_.store(1, std::memory_order_release); // from here on it may be gone
            }
        }
        for (std::size_t index = 0; index < number; ++index) {
            scheduler()->wake(*waits[index], 1);
        }
    } while (number == waits.size() && told < count);
    return told;
}

bool ObjectWaits::is_waited_for(const void* object) {
    Place& place = place_of(object);
    if (place.count.load(std::memory_order_relaxed) == 0) {
        return false;
    }
    const Inside inside;
    const std::lock_guard guard(place.lock);
    return find(place, object) != nullptr;
}

std::uint32_t ObjectWaits::tell_safely(const void* object, std::uint32_t count) {
    if (!Inside::has_caller()) {
        return tell(object, count);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst); // invariant 2
    Place& place = place_of(object);
    if (place.count.load(std::memory_order_relaxed) != 0 && scheduler()->enabled()) {
        place.is_due_for_nothing.store(true, std::memory_order_seq_cst);
        call_for(place);
    }
    return 0;
}

void ObjectWaits::tell_soon(const void* object) {
    std::atomic_thread_fence(std::memory_order_seq_cst); // invariant 2
    Place& place = place_of(object);
    if (place.count.load(std::memory_order_relaxed) == 0 || !scheduler()->enabled()) {
        return;
    }
    call_for(place);
}

void ObjectWaits::call_for(Place& place) {
    if (!place.is_due.exchange(true, std::memory_order_seq_cst)) {
        Place* next = due_.load(std::memory_order_relaxed);
        do {
            place.next_due = next;
        } while (!due_.compare_exchange_weak(next, &place, std::memory_order_seq_cst));
    }
    scheduler()->call_one_that_sleeps();
}

void ObjectWaits::tell_due() {
    const Inside inside;
    Place* place = due_.exchange(nullptr, std::memory_order_seq_cst);
    while (place != nullptr) {
        Place* const next = place->next_due;
        place->is_due.exchange(false, std::memory_order_seq_cst); // it may come again from here on
        if (place == &interrupted_) {
            scheduler()->resume_interrupted();
            place = next;
            continue;
        }
        tell_due(*place, place->is_due_for_nothing.exchange(false, std::memory_order_seq_cst));
        place = next;
    }
}

void ObjectWaits::tell_due(Place& place, bool for_nothing) {
    using ByHandlers = Looks::ByHandlers;
    struct Found {
        const void* object;
        std::uint32_t count;
    };
    std::array<Found, told_at_once> found{};
    std::size_t number = 0;
    std::uint64_t round = 0; // each object once in it, but for those that come meanwhile
    std::uint64_t last_arrival = 0;
    do {
        number = 0;
        {
            const std::lock_guard guard(place.lock);
            if (round == 0) {
                round = ++place.rounds;
                last_arrival = place.arrivals;
            }
            for (ObjectWait* first = place.first; first != nullptr && number < found.size();
                 first = first->object_next_) {
                const ByHandlers way = first->looks_.by_handlers;
                if (first->round_ == round || first->arrival_ > last_arrival) {
                    continue;
                }
                if (way == ByHandlers::if_free &&
                    first->looks_.may_be_free(first->object_, first->expected_)) {
                    found[number++] = {first->object_, 1};
                } else if (way == ByHandlers::for_nothing && for_nothing) {
                    found[number++] = {first->object_, UINT32_MAX};
                }
                first->round_ = round;
            }
        }
        for (std::size_t index = 0; index < number; ++index) {
            tell(found[index].object, found[index].count);
        }
    } while (number == found.size());
}

ObjectWait::ObjectWait(const void* object, const Looks& looks, std::uint32_t expected)
    : was_postponed_(Inside::postpone(true)),
      object_(object),
      place_(scheduler()->object_waits().place_of(object)),
      looks_(looks),
      expected_(expected),
      begin_ns_(monotonic_ns()) {
    const Inside inside;
    const std::lock_guard guard(place_.lock);
    ObjectWaits::put_in(place_, *this);
}

ObjectWait::~ObjectWait() {
    withdraw();
    Inside::postpone(was_postponed_);
    if (!was_postponed_ && Inside::is_interrupted() && !Inside::has_caller()) {
        Inside::act();
    }
}

void ObjectWait::repeat() {
    told_.store(0, std::memory_order_relaxed);
    begin_ns_ = monotonic_ns(); // who told it was perhaps about to free it
    {
        const Inside inside;
        const std::lock_guard guard(place_.lock);
        ObjectWaits::put_in(place_, *this);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool ObjectWait::withdraw() {
    const Inside inside;
    const std::lock_guard guard(place_.lock);
    if (told_.load(std::memory_order_relaxed) != 0) {
        return false;
    }
    if (arrival_ != 0) {
        ObjectWaits::take_out(place_, *this);
        arrival_ = 0;
    }
    return true;
}

// True: it has been told before.
bool ObjectWait::act() {
    if (!withdraw()) {
        return true;
    }
    was_away_ = true;
    Inside::postpone(false);
    Inside::act();
    Inside::postpone(true);
    repeat();
    return false;
}

// Those of many waits come together: at multiples of a power of two.
std::uint64_t ObjectWait::next_look(std::uint64_t now_ns) const {
    const std::uint64_t wait_ns =
        std::clamp((now_ns - begin_ns_) / looks_per_wait, looks_.shortest_ns, looks_.longest_ns);
    const std::uint64_t step_ns = std::bit_floor(wait_ns);
    return std::min(until_ns_, (now_ns + wait_ns + step_ns - 1) & ~(step_ns - 1));
}

std::uint64_t ObjectWait::look(std::uint64_t now_ns) {
    if (now_ns >= until_ns_ ||
        (looks_.may_be_free != nullptr && looks_.may_be_free(object_, expected_))) {
        return 0;
    }
    return next_look(now_ns);
}

bool ObjectWait::park(std::uint64_t until_ns) {
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= until_ns) {
        return told_.load(std::memory_order_acquire) != 0;
    }
    until_ns_ = until_ns;
    if (looks_.may_be_free == nullptr && until_ns == UINT64_MAX) {
        scheduler()->wait(told_, 0, nullptr, nullptr);
    } else {
        scheduler()->wait_looking(told_, next_look(now_ns), *this);
    }
    if (Inside::is_interrupted() && !Inside::has_caller()) [[unlikely]] {
        return act();
    }
    return told_.load(std::memory_order_acquire) != 0;
}

} // namespace warren::fibre
