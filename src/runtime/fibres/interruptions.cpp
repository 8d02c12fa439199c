// Interruptions: what has to be done in a fibre, because it may look at its stack and its
// thread-local variables, such as a handler of a signal. The fibre does it when it leaves the
// scheduler.
//
// An interrupter sets the fibre's flag and then looks where the fibre is. A fibre that is about to
// wait says where, and then looks at its flag; one that is resumed says that it runs, and then
// looks. The fence between both of the fibre is its lock's, or the one that sleeper_fence has all
// threads execute.
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "runtime/fibres/scheduler.hpp"

namespace warren::fibre {

void Inside::act() {
    interrupted.exchange(false, std::memory_order_seq_cst); // before it looks what for
    const Scheduler* const own = scheduler();
    if (Scheduler::current() != nullptr && own->enabled() &&
        own->options().interrupted != nullptr) {
        own->options().interrupted();
    }
}

int Scheduler::interrupt(std::uint32_t number) {
    Fibre& fibre = fibres_[number];
    std::atomic<bool>* const flag = fibre.is_interrupted.load(std::memory_order_acquire);
    if (flag == nullptr || !enabled()) {
        return 0;
    }
    flag->store(true, std::memory_order_seq_cst);
    if (!fibre.is_to_be_resumed.exchange(true, std::memory_order_seq_cst)) {
        Fibre* next = to_resume_.load(std::memory_order_relaxed);
        do {
            fibre.next_to_resume = next;
        } while (!to_resume_.compare_exchange_weak(next, &fibre, std::memory_order_seq_cst));
    }
    object_waits_.call_for_interrupted();
    // Without it, on old systems, a fibre that is resumed at this moment acts at its next visit.
    sleeper_fence();
    const int thread = thread_of(number);
    return thread != static_cast<int>(syscall(SYS_gettid)) ? thread : 0;
}

int Scheduler::thread_of(std::uint32_t number) const {
    const Fibre& one = fibres_[number];
    const Worker* const worker = one.worker.load(std::memory_order_acquire);
    return worker != nullptr && one.on_worker.load(std::memory_order_acquire) != 0 &&
                   worker->running.load(std::memory_order_relaxed) == &one
               ? worker->thread.load(std::memory_order_relaxed)
               : 0;
}

void Scheduler::resume_interrupted() {
    Fibre* fibre = to_resume_.exchange(nullptr, std::memory_order_seq_cst);
    while (fibre != nullptr) {
        Fibre* const next = fibre->next_to_resume;
        fibre->is_to_be_resumed.exchange(false, std::memory_order_seq_cst); // again from here on
        if (take_out_of_wait(*fibre)) {
            push(*fibre);
        }
        fibre = next;
    }
}

// False: it doesn't wait, and looks at its flag before it does.
bool Scheduler::take_out_of_wait(Fibre& fibre) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (fibre.state.load(std::memory_order_acquire) == State::waits_for_event) {
        EventWaiters& event_waiters = *fibre.event_waiters.load(std::memory_order_relaxed);
        const std::lock_guard guard(event_waiters.lock);
        const bool waits = waits_for_event(fibre, event_waiters);
        if (waits) {
            take_out(event_waiters, fibre);
        }
        return waits;
    }
    const void* const word = fibre.word.load(std::memory_order_relaxed);
    if (word == nullptr) {
        return false;
    }
    Bucket& bucket = bucket_of(word);
    const std::lock_guard guard(bucket.lock);
    for (Fibre** link = &bucket.first; *link != nullptr; link = &(*link)->next) {
        if (*link == &fibre) {
            take_off(bucket, link);
            fibre.next = nullptr;
            return true;
        }
    }
    return false;
}

} // namespace warren::fibre
