#include "mpi/tool/tool.hpp"

#include "base/futex.hpp"

namespace warren::tool {

void Tool::attach(const Subject& subject) {
    {
        const std::lock_guard lock(mutex_);
        subject_ = subject;
        settings_.apply(subject);
        sessions_.attach(subject);
    }
    rank_lock_.store(&subject.rank->lock, std::memory_order_release);
    const Guard guard(*this);
    look_anew();
}

void Tool::detach() {
    {
        const Guard guard(*this);
        rank_lock_.store(nullptr, std::memory_order_seq_cst);
        if (subject_) {
            sessions_.detach(*subject_);
            message::EngineView(*subject_->messages).observe(false);
            subject_->rank->lock.observer.store(nullptr, std::memory_order_relaxed);
            subject_.reset();
        }
    }
    // Other threads may have the lock or wait for it, and it ends with the rank.
    while (guards_.load(std::memory_order_acquire) != 0) {
        give_way();
    }
}

void Tool::end() {
    Guard guard(*this);
    sessions_.free_all();
    events_.remove_all();
    controls_.for_each([this](ControlHandle& handle) { controls_.remove(handle); });
    look_anew();
}

void Tool::look_anew() {
    news_.store(events_.has_news() ? 1 : 0, std::memory_order_relaxed);
    if (!subject_) {
        return;
    }
    const bool events = events_.any_wanted();
    message::EngineView(*subject_->messages).observe(events || sessions_.observing() > 0);
    subject_->rank->lock.observer.store(events || sessions_.marks() > 0 ? this : nullptr,
                                        std::memory_order_relaxed);
}

void Tool::note(EventKind kind, const EventData& data) {
    if (events_.wanted(kind)) {
        events_.note(kind, data);
        news_.store(1, std::memory_order_relaxed);
    }
}

void Tool::message_kept(const Arrival& arrival) {
    const std::lock_guard lock(mutex_);
    if (!subject_) {
        return;
    }
    sessions_.raise(*subject_);
    EventData data = {};
    data.message = {.bytes = arrival.bytes,
                    .queued_bytes = arrival.queued_bytes,
                    .source = static_cast<int>(arrival.source),
                    .tag = arrival.tag,
                    .context = arrival.context,
                    .queue_length = arrival.length};
    note(EventKind::unexpected_message, data);
}

void Tool::waited(std::uint32_t call, std::int32_t peer, std::int32_t tag,
                  std::uint64_t duration_ns) {
    const std::lock_guard lock(mutex_);
    if (duration_ns < settings_.read(long_wait_variable(), nullptr)) {
        return;
    }
    EventData data = {};
    data.wait = {
        .duration_ns = duration_ns, .call = static_cast<int>(call), .peer = peer, .tag = tag};
    note(EventKind::long_wait, data);
}

void Tool::lock_waited(std::uint64_t duration_ns) {
    const std::lock_guard lock(mutex_);
    EventData data = {};
    data.lock = {.duration_ns = duration_ns};
    note(EventKind::thread_lock_wait, data);
}

void Tool::deliver() {
    news_.store(0, std::memory_order_relaxed);
    events_.deliver();
}

} // namespace warren::tool
