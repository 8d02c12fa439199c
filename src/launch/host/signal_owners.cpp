#include "launch/host/signal_owners.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <memory>
#include <mutex>

#include "base/blocked_signals.hpp"
#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

// No signal of the timer is on its way; or it has no owner any more.
constexpr std::int64_t idle = -1;
constexpr std::int64_t released = -2;

struct Owner {
    std::atomic<std::uint32_t> rank{no_rank};
    std::atomic<std::uint32_t> generation{0}; // tells it from what it was before
    std::atomic<int> number{0};               // of the signal
    std::atomic<sigval> value{};
    std::atomic<timer_t> timer{nullptr};
    std::atomic<bool> has_timer{false};
    std::atomic<bool> deleted{false};
    std::atomic<std::int64_t> on_its_way{idle}; // overruns of the signal that is
    std::atomic<int> overruns{0};               // of the last one that the program has got
};

// A tag has a mark that no address has, the owner's generation, and its number: first come the
// ranks' alarms. Owners stay for ever, as signals may be on their way.
constexpr std::uint64_t mark = 0x5741;
constexpr int mark_shift = 48;
constexpr int generation_shift = 24;
constexpr std::uint32_t field_mask = 0xffffff;
constexpr std::size_t owners_of_chunk = 512;
constexpr std::size_t most_chunks = 512;
struct Chunk {
    Owner all[owners_of_chunk];
};

struct Owners {
    std::uint32_t ranks = 0;
    std::unique_ptr<Owner[]> alarms;
    std::mutex lock; // of making and forgetting them
    std::atomic<std::size_t> count{0};
    std::atomic<Chunk*> chunks[most_chunks] = {};
};

Owners& owners() {
    static Owners& only = *new Owners; // outlives everything
    return only;
}

Owner& owner_at(std::size_t index) {
    return owners()
        .chunks[index / owners_of_chunk]
        .load(std::memory_order_acquire)
        ->all[index % owners_of_chunk];
}

sigval tag_of(std::uint32_t number, const Owner& owner) {
    const std::uint64_t generation = owner.generation.load(std::memory_order_relaxed) & field_mask;
    sigval tag{};
    tag.sival_ptr = reinterpret_cast<void*>(mark << mark_shift | generation << generation_shift |
                                            std::uint64_t{number});
    return tag;
}

// Null: the value is a program's.
Owner* find_owner(sigval value) {
    const auto tag = reinterpret_cast<std::uintptr_t>(value.sival_ptr);
    const auto number = static_cast<std::uint32_t>(tag & field_mask);
    const Owners& own = owners();
    if (tag >> mark_shift != mark ||
        number >= own.ranks + own.count.load(std::memory_order_acquire)) {
        return nullptr;
    }
    return number < own.ranks ? &own.alarms[number] : &owner_at(number - own.ranks);
}

bool is_current(const Owner& owner, sigval value) {
    const auto tag = reinterpret_cast<std::uintptr_t>(value.sival_ptr);
    return (tag >> generation_shift & field_mask) ==
           (owner.generation.load(std::memory_order_acquire) & field_mask);
}

bool is_caused(const siginfo_t& information) {
    return information.si_code == SI_TIMER;
}

void release(Owner& owner) {
    owner.has_timer.store(false, std::memory_order_relaxed);
    owner.generation.fetch_add(1, std::memory_order_release);
    owner.rank.store(no_rank, std::memory_order_release);
}

// Its timer is deleted. Whoever gets the last signal that is on its way does this, too.
void release_if_idle(Owner& owner) {
    std::int64_t expected = idle;
    if (owner.deleted.load(std::memory_order_seq_cst) &&
        owner.on_its_way.compare_exchange_strong(expected, released, std::memory_order_seq_cst)) {
        release(owner);
    }
}

// False: one is on its way already, and this is an overrun of it.
bool begin_signal(Owner& owner, int overruns) {
    std::int64_t before = owner.on_its_way.load(std::memory_order_relaxed);
    std::int64_t now = 0;
    do {
        if (before == released) {
            return false;
        }
        now = std::min<std::int64_t>(before == idle ? overruns : before + 1 + overruns, INT_MAX);
    } while (!owner.on_its_way.compare_exchange_weak(before, now, std::memory_order_acq_rel));
    // A standard signal may be merged with another one on its way, so it is not waited for.
    return before == idle || owner.number.load(std::memory_order_relaxed) < __SIGRTMIN;
}

// Under the lock. Null: there is none that nobody has.
Owner* find_free(std::uint32_t& number) {
    Owners& own = owners();
    const std::size_t count = own.count.load(std::memory_order_relaxed);
    for (std::size_t index = 0; index < count; ++index) {
        if (owner_at(index).rank.load(std::memory_order_acquire) == no_rank) {
            number = own.ranks + static_cast<std::uint32_t>(index);
            return &owner_at(index);
        }
    }
    if (count == owners_of_chunk * most_chunks) {
        return nullptr;
    }
    std::atomic<Chunk*>& chunk = own.chunks[count / owners_of_chunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
        chunk.store(new Chunk, std::memory_order_release);
    }
    own.count.store(count + 1, std::memory_order_release);
    number = own.ranks + static_cast<std::uint32_t>(count);
    return &owner_at(count);
}

// Null: the rank has no such timer.
Owner* find_timer(std::uint32_t rank, timer_t timer) {
    const std::size_t count = owners().count.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < count; ++index) {
        Owner& one = owner_at(index);
        if (one.rank.load(std::memory_order_acquire) == rank &&
            one.has_timer.load(std::memory_order_acquire) &&
            one.timer.load(std::memory_order_relaxed) == timer) {
            return &one;
        }
    }
    return nullptr;
}

} // namespace

void prepare_owners(std::uint32_t ranks) {
    owners().ranks = ranks;
    owners().alarms = std::make_unique<Owner[]>(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        Owner& alarm = owners().alarms[rank];
        alarm.number = SIGALRM;
        alarm.rank = rank;
    }
}

sigval tag_of_alarm(std::uint32_t rank) {
    return tag_of(rank, owners().alarms[rank]);
}

bool make_owner(std::uint32_t rank, const sigevent& event, sigval& tag) {
    const std::lock_guard guard(owners().lock);
    std::uint32_t number = 0;
    Owner* owner = find_free(number);
    if (owner == nullptr) {
        return false;
    }
    owner->number.store(event.sigev_signo, std::memory_order_relaxed);
    owner->value.store(event.sigev_value, std::memory_order_relaxed);
    owner->deleted.store(false, std::memory_order_relaxed);
    owner->overruns.store(0, std::memory_order_relaxed);
    owner->on_its_way.store(idle, std::memory_order_release);
    owner->rank.store(rank, std::memory_order_release);
    tag = tag_of(number, *owner);
    return true;
}

void note_timer(sigval tag, const timer_t* timer) {
    Owner* owner = find_owner(tag);
    if (owner == nullptr) {
        return; // of a process
    }
    if (timer == nullptr) {
        release(*owner);
        return;
    }
    owner->timer.store(*timer, std::memory_order_relaxed);
    owner->has_timer.store(true, std::memory_order_release);
}

void forget_timer(std::uint32_t rank, timer_t timer) {
    const std::lock_guard guard(owners().lock);
    if (Owner* owner = find_timer(rank, timer)) {
        owner->has_timer.store(false, std::memory_order_relaxed);
        owner->deleted.store(true, std::memory_order_seq_cst);
        release_if_idle(*owner);
    }
}

bool a_timer_runs() {
    Owners& own = owners();
    const BlockedSignals blocked;
    const std::lock_guard guard(own.lock);
    const std::size_t count = own.count.load(std::memory_order_relaxed);
    for (std::size_t index = 0; index < count; ++index) {
        const Owner& owner = owner_at(index);
        itimerspec times{};
        if (owner.has_timer.load(std::memory_order_acquire) &&
            timer_gettime(owner.timer.load(std::memory_order_relaxed), &times) == 0 &&
            (times.it_value.tv_sec != 0 || times.it_value.tv_nsec != 0)) {
            return true;
        }
    }
    return false;
}

void end_owners(std::uint32_t rank) {
    const std::lock_guard guard(owners().lock);
    for (std::size_t index = 0; index < owners().count.load(std::memory_order_relaxed); ++index) {
        Owner& one = owner_at(index);
        if (one.rank.load(std::memory_order_acquire) == rank) {
            if (one.has_timer.load(std::memory_order_acquire)) {
                timer_delete(one.timer.load(std::memory_order_relaxed));
            }
            release(one);
        }
    }
}

bool has_owner(const siginfo_t& information) {
    return is_caused(information) && find_owner(information.si_value) != nullptr;
}

std::uint32_t owner_of_signal(siginfo_t& information) {
    Owner* owner = is_caused(information) ? find_owner(information.si_value) : nullptr;
    if (owner == nullptr) {
        return no_rank;
    }
    const std::uint32_t rank = owner->rank.load(std::memory_order_acquire);
    if (rank == no_rank || !is_current(*owner, information.si_value)) {
        return nobody;
    }
    information.si_signo = owner->number.load(std::memory_order_relaxed);
    return begin_signal(*owner, information.si_overrun) ? rank : nobody;
}

void note_taken(siginfo_t& information) {
    Owner* owner = is_caused(information) ? find_owner(information.si_value) : nullptr;
    if (owner == nullptr) {
        return;
    }
    const bool is_its = is_current(*owner, information.si_value);
    information.si_value = is_its ? owner->value.load(std::memory_order_relaxed) : sigval{};
    if (is_its) {
        const std::int64_t overruns = owner->on_its_way.exchange(idle, std::memory_order_seq_cst);
        information.si_overrun = static_cast<int>(std::max<std::int64_t>(overruns, 0));
        owner->overruns.store(information.si_overrun, std::memory_order_relaxed);
        release_if_idle(*owner);
    }
}

int overruns_of(std::uint32_t rank, timer_t timer) {
    const Owner* owner = find_timer(rank, timer);
    return owner != nullptr ? owner->overruns.load(std::memory_order_relaxed) : -1;
}

} // namespace warren::launch
