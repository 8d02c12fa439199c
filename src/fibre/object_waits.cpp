#include "fibre/object_waits.hpp"

#include <algorithm>
#include <mutex>

#include "fibre/scheduler.hpp"

namespace warren::fibre {

namespace {

// The longest that one entry of the scheduler's timers is for: those of waits that have ended stay
// there until their time.
constexpr std::uint64_t longest_timer_ns = 100'000'000;

} // namespace

void ObjectWaits::take_out(Place& place, ObjectWait** link) {
    ObjectWait* const wait = *link;
    *link = wait->next_;
    if (place.end == &wait->next_) {
        place.end = link;
    }
    place.count.fetch_sub(1, std::memory_order_relaxed);
}

void ObjectWaits::tell(const void* object, std::uint32_t count) {
    std::atomic_thread_fence(std::memory_order_seq_cst); // invariant 2
    Place& place = place_of(object);
    if (place.count.load(std::memory_order_relaxed) == 0 || !scheduler()->enabled()) {
        return;
    }
    // No more than are there now: who is told may come again at once.
    std::uint32_t there = 0;
    {
        const std::lock_guard guard(place.lock);
        for (const ObjectWait* wait = place.first; wait != nullptr && there < count;
             wait = wait->next_) {
            there += wait->object_ == object ? 1 : 0;
        }
    }
    for (std::uint32_t left = there; left > 0; --left) {
        std::atomic<std::uint32_t>* told = nullptr;
        {
            const std::lock_guard guard(place.lock);
            ObjectWait** link = &place.first;
            while (*link != nullptr && (*link)->object_ != object) {
                link = &(*link)->next_;
            }
            if (*link == nullptr) {
                return;
            }
            told = &(*link)->told_;
            take_out(place, link);
            told->store(1, std::memory_order_release);
        }
        scheduler()->wake(*told, 1);
    }
}

ObjectWait::ObjectWait(const void* object)
    : object_(object), place_(scheduler()->object_waits().place_of(object)) {
    come();
}

void ObjectWait::come() {
    const std::lock_guard guard(place_.lock);
    next_ = nullptr;
    *place_.end = this;
    place_.end = &next_;
    place_.count.fetch_add(1, std::memory_order_seq_cst); // invariant 2
}

void ObjectWait::repeat() {
    told_.store(0, std::memory_order_relaxed);
    come();
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool ObjectWait::withdraw() {
    const std::lock_guard guard(place_.lock);
    if (told_.load(std::memory_order_relaxed) != 0) {
        return false;
    }
    for (ObjectWait** link = &place_.first; *link != nullptr; link = &(*link)->next_) {
        if (*link == this) {
            ObjectWaits::take_out(place_, link);
            break;
        }
    }
    return true;
}

bool ObjectWait::park(std::uint64_t until_ns) {
    while (told_.load(std::memory_order_acquire) == 0) {
        if (until_ns == UINT64_MAX) {
            scheduler()->wait(told_, 0, nullptr, nullptr);
            continue;
        }
        const std::uint64_t now = monotonic_ns();
        if (now >= until_ns) {
            return false;
        }
        const timespec left = time_of(std::min(until_ns - now, longest_timer_ns));
        scheduler()->wait(told_, 0, &left, nullptr);
    }
    return true;
}

} // namespace warren::fibre
