#include "mpi/tool/events.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/futex.hpp"
#include "mpi/tool/tuning.hpp"

namespace warren::tool {

namespace {

#define WARREN_ELEMENT(type, member)                                                               \
    { type, offsetof(EventData, member), sizeof(EventData::member) }

const EventElement message_elements[] = {
    WARREN_ELEMENT(MPI_INT, message.source),
    WARREN_ELEMENT(MPI_INT, message.tag),
    WARREN_ELEMENT(MPI_UNSIGNED, message.context),
    WARREN_ELEMENT(MPI_UNSIGNED_LONG_LONG, message.bytes),
    WARREN_ELEMENT(MPI_UNSIGNED, message.queue_length),
    WARREN_ELEMENT(MPI_UNSIGNED_LONG_LONG, message.queued_bytes),
};
const EventElement wait_elements[] = {
    WARREN_ELEMENT(MPI_INT, wait.call),
    WARREN_ELEMENT(MPI_INT, wait.peer),
    WARREN_ELEMENT(MPI_INT, wait.tag),
    WARREN_ELEMENT(MPI_UNSIGNED_LONG_LONG, wait.duration_ns),
};
const EventElement lock_elements[] = {
    WARREN_ELEMENT(MPI_UNSIGNED_LONG_LONG, lock.duration_ns),
};

#undef WARREN_ELEMENT

const EventType types[] = {
    {.name = "unexpected_message",
     .description = "A message has come before its receive: source (rank in MPI_COMM_WORLD), tag, "
                    "number of its communicator, bytes; messages and bytes that wait, with it",
     .verbosity = MPI_T_VERBOSITY_USER_BASIC,
     .elements = message_elements,
     .bytes = sizeof(EventData::message),
     .enumeration = nullptr},
    {.name = "long_wait",
     .description = "A wait of at least long_wait_ns has ended: call (an item of the "
                    "enumeration), peer, tag, duration in nanoseconds",
     .verbosity = MPI_T_VERBOSITY_USER_BASIC,
     .elements = wait_elements,
     .bytes = sizeof(EventData::wait),
     .enumeration = &enumerations::procedures},
    {.name = "thread_lock_wait",
     .description = "A call has waited for another thread of the rank: duration in nanoseconds",
     .verbosity = MPI_T_VERBOSITY_USER_DETAIL,
     .elements = lock_elements,
     .bytes = sizeof(EventData::lock),
     .enumeration = nullptr},
};
static_assert(std::size(types) == static_cast<std::size_t>(EventKind::count));

constexpr MPI_T_cb_safety safeties[safety_levels] = {
    MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_T_CB_REQUIRE_THREAD_SAFE,
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};

} // namespace

std::span<const EventType> event_types() {
    return types;
}

MPI_Count source_time() {
    return static_cast<MPI_Count>(monotonic_ns());
}

int safety_index(const MPI_T_cb_safety& safety) {
    std::underlying_type_t<MPI_T_cb_safety> value; // a program's, maybe none of the enumeration
    std::memcpy(&value, &safety, sizeof value);
    const auto* found = std::find_if(std::begin(safeties), std::end(safeties), [&](auto known) {
        return static_cast<decltype(value)>(known) == value;
    });
    return found != std::end(safeties) ? static_cast<int>(found - std::begin(safeties)) : -1;
}

int Registration::level() const {
    for (int level = 0; level < safety_levels; ++level) {
        if (callbacks[level].function != nullptr) {
            return level;
        }
    }
    return -1;
}

MPI_T_cb_safety Registration::told_safety(int level) const {
    const MPI_T_cb_safety its = safeties[level];
    return safety_number == nullptr ? its : static_cast<MPI_T_cb_safety>(safety_number(its));
}

Registration* Events::add(EventKind kind) {
    Registration* made = registrations_.insert();
    if (made != nullptr) {
        made->kind = kind;
    }
    return made;
}

Registration* Events::find(MPI_T_event_registration handle) {
    Registration* found = registrations_.find(handle);
    return found != nullptr && !found->freed ? found : nullptr;
}

MPI_T_event_registration Events::handle_of(const Registration& registration) {
    return static_cast<MPI_T_event_registration>(
        LateHandleTable<Registration>::handle_of(registration));
}

void Events::set_callback(Registration& registration, int level, MPI_T_event_cb_function* function,
                          void* user_data) {
    if (queue_ == nullptr) {
        queue_ = std::make_unique<Instance[]>(queued_events);
    }
    const bool had = registration.level() >= 0;
    registration.callbacks[level] = {.function = function, .user_data = user_data};
    const bool has = registration.level() >= 0;
    if (!had) {
        registration.since = next_;
    }
    wanted_[static_cast<std::size_t>(registration.kind)] += static_cast<int>(has) - had;
}

void Events::remove(Registration& registration, MPI_T_event_free_cb_function* function,
                    void* user_data, std::unique_lock<std::mutex>& lock) {
    if (registration.level() >= 0) {
        --wanted_[static_cast<std::size_t>(registration.kind)];
    }
    registration.freed = true;
    registration.free_function = function;
    registration.free_data = user_data;
    ++registration.running;
    end_run(registration, lock);
}

void Events::remove_all() {
    registrations_.for_each([this](Registration& registration) {
        registration.freed = true;
        registration.free_function = nullptr;
        if (registration.running == 0) {
            registrations_.remove(registration);
        }
    });
    std::fill(std::begin(wanted_), std::end(wanted_), 0);
    first_ = next_;
    dropped_ = false;
}

bool Events::any_wanted() const {
    return std::any_of(std::begin(wanted_), std::end(wanted_),
                       [](int number) { return number > 0; });
}

void Events::note(EventKind kind, const EventData& data) {
    if (next_ - first_ == queued_events) {
        registrations_.for_each([this, kind](Registration& registration) {
            if (registration.kind == kind && !registration.freed && registration.level() >= 0) {
                ++registration.dropped;
                dropped_ = true;
            }
        });
        return;
    }
    queue_[next_ % queued_events] = {
        .kind = kind, .data = data, .time = source_time(), .number = next_};
    ++next_;
}

bool Events::take(Instance& instance) {
    if (first_ == next_) {
        return false;
    }
    instance = queue_[first_ % queued_events];
    ++first_;
    return true;
}

std::vector<Registration*> Events::held(EventKind kind, bool all) {
    std::vector<Registration*> found;
    registrations_.for_each([&](Registration& registration) {
        if ((all || registration.kind == kind) && !registration.freed &&
            registration.level() >= 0) {
            ++registration.running;
            found.push_back(&registration);
        }
    });
    return found;
}

void Events::end_run(Registration& registration, std::unique_lock<std::mutex>& lock) {
    if (--registration.running > 0 || !registration.freed) {
        return;
    }
    const auto function = registration.free_function;
    void* const data = registration.free_data;
    const MPI_T_event_registration handle = handle_of(registration);
    const MPI_T_cb_safety safety = registration.told_safety(0);
    if (function != nullptr) {
        ++registration.running; // the handle is no other's meanwhile
        lock.unlock();
        function(handle, safety, data);
        lock.lock();
    }
    registrations_.remove(registration);
}

void Events::tell(Registration& registration, Instance& instance,
                  std::unique_lock<std::mutex>& lock) {
    const int level = registration.level();
    if (!registration.freed && level >= 0 && instance.number >= registration.since) {
        const auto callback = registration.callbacks[level];
        lock.unlock();
        callback.function(reinterpret_cast<MPI_T_event_instance>(&instance),
                          handle_of(registration), registration.told_safety(level),
                          callback.user_data);
        lock.lock();
    }
    end_run(registration, lock);
}

void Events::tell_dropped(Registration& registration, std::unique_lock<std::mutex>& lock) {
    const int level = registration.level();
    if (!registration.freed && level >= 0 && registration.dropped > 0 &&
        registration.dropped_function != nullptr) {
        const MPI_Count dropped = std::exchange(registration.dropped, 0);
        const auto function = registration.dropped_function;
        void* const data = registration.callbacks[level].user_data;
        lock.unlock();
        function(dropped, handle_of(registration), 0, registration.told_safety(level), data);
        lock.lock();
    }
    end_run(registration, lock);
}

void Events::deliver() {
    std::unique_lock<std::mutex> lock(mutex_);
    Instance instance = {};
    while (take(instance)) {
        instance.next = told_;
        told_ = &instance;
        for (Registration* registration : held(instance.kind, false)) {
            tell(*registration, instance, lock);
        }
        Instance** link = &told_;
        while (*link != &instance) {
            link = &(*link)->next;
        }
        *link = instance.next;
    }
    if (std::exchange(dropped_, false)) {
        for (Registration* registration : held({}, true)) {
            tell_dropped(*registration, lock);
        }
    }
}

const Instance* Events::find(MPI_T_event_instance handle) const {
    const Instance* told = told_;
    while (told != nullptr && reinterpret_cast<const void*>(told) != handle) {
        told = told->next;
    }
    return told;
}

} // namespace warren::tool
